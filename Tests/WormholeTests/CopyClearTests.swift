import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Clears and updates of a copy that does not have the home's present value.
///
/// A call that returns without an error has had its effect at the home, whatever the copy contains.
@Suite(.blocking) struct CopyClearTests {
  private let home: Meeting
  private let away: Meeting
  private let atHome: Carrier
  private let carrier: Carrier
  private let seats: Channel<Int>
  private let copy: Channel<Int>

  init() throws {
    (home, away) = (try Meeting(Meeting.havePatience), try Meeting(Meeting.havePatience))
    atHome = try Carrier(home.another(Meeting.havePatience))
    carrier = try Carrier(away.another(Meeting.havePatience))
    seats = home.container.channel("seats")
    copy = away.container.channel("seats")
  }

  /// Stores the home's content in the copy; changes of the copy are made at home from then on.
  private func connect() throws -> ChangeDesk {
    let atHome = atHome
    let desk = try carrier.takeChanges { change, answer in
      do {
        answer(try atHome.make(change, for: "away"))
      } catch {
        answer(Carrier.ChannelAnswer(.refused, reason: "\(error)"))
      }
    }
    try carrier.store(atHome.content(of: "seats"), of: "seats", from: "home", changesTo: desk)
    return desk
  }

  /// The carrier has not brought the value of the put when the same program clears the channel.
  @Test func aClearFollowsAPutThatTheCopyDoesNotHave() throws {
    try seats.put(40)
    try seats.clear()
    let desk = try connect()
    defer { desk.stop() }
    #expect(try copy.put(7) == 3)
    #expect(try seats.value == 7 && copy.value == nil)
    #expect(try copy.clear() == 4)
    #expect(try seats.value == nil && seats.latest?.version == 4)
  }

  /// The same for a copy that was stored before the first value.
  @Test func aClearFollowsTheFirstPutOfACopy() throws {
    let desk = try connect()
    defer { desk.stop() }
    try copy.put(7)
    #expect(try seats.value == 7 && copy.latest == nil)
    try copy.clear()
    #expect(try seats.value == nil)
  }

  @Test func nothingIsChangedWhereTheHomeHasNothing() throws {
    let desk = try connect()
    defer { desk.stop() }
    #expect(try copy.clear() == 0 && copy.clear(ifVersion: 0) == 0)
    #expect(try copy.update { _ in } == nil)
    #expect(try seats.latest == nil)
    try seats.put(40)
    #expect(try failure { try copy.clear(ifVersion: 0) }.code == .conflict)
    #expect(try seats.value == 40)
  }

  /// Without the home, nobody knows whether there is something to clear.
  @Test func aClearOfACopyWithoutAValueNeedsTheHome() throws {
    try connect().stop()
    #expect(try failure { try copy.clear() }.code == .unreachable)
    #expect(try failure { try copy.update { _ in } }.code == .unreachable)
  }

  private func damage() throws {
    try away.overwrite("channels/seats/value.plist", Array("damaged".utf8))
    try? away.folder("channels/seats").unlink("kept.plist")
    #expect(try failure { _ = try copy.value }.code == .damaged)
  }

  @Test func aDamagedCopyIsClearedAtHome() throws {
    try seats.put(40)
    let desk = try connect()
    defer { desk.stop() }
    try damage()
    #expect(try copy.clear() == 2)
    #expect(try seats.value == nil && seats.latest?.version == 2)
  }

  /// The body receives the home's value, not the absence of a value that can be read here.
  @Test func anUpdateOfADamagedCopyStartsFromTheHomesValue() throws {
    try seats.put(40)
    let desk = try connect()
    defer { desk.stop() }
    try damage()
    let after = try copy.update { value in
      if let present = value { value = present + 1 }
    }
    #expect(after == 41)
    #expect(try seats.value == 41)
  }
}
