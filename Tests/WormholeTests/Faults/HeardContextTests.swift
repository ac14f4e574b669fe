import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// Contexts that listeners have received, and whose files cannot be renamed for a moment.
@Suite(.blocking) struct HeardContextTests {
  private let pair: Pair
  private let heard = Heard<Int>()
  private let watching: Subscription

  /// A directory has the name that a received context gets.
  init() throws {
    let heard = heard
    let pair = try Pair()
    watching = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    self.pair = pair
    try contexts().makeDirectory("phone", mode: 0o700)
    try pair.phone.setContext(1)
    try heard.waitForLast(1)
    pair.watch.settle()
  }

  private func contexts() throws -> Descriptor {
    try pair.meeting.folder("members/watch/context")
  }

  @Test func aContextWithoutItsLastNameIsHeardOnce() throws {
    #expect(try pair.files("context") == ["phone", "phone,taking"])
    #expect(try pair.watch.peer("phone").receivedContext?.value(as: Int.self) == 1)
    try contexts().removeDirectory("phone")
    try eventually("it has the name") { try pair.files("context") == ["phone"] }
    watching.stop()
    #expect(heard.all == [1])
    #expect(try pair.watch.peer("phone").receivedContext?.value(as: Int.self) == 1)
  }

  @Test func theNextContextIsHeardAsWell() throws {
    try pair.phone.setContext(2)
    try heard.waitForLast(2)
    try contexts().removeDirectory("phone")
    pair.watch.settle()
    watching.stop()
    #expect(heard.all == [1, 2])
    #expect(try pair.files("context") == ["phone"])
    #expect(try pair.phone.sentContext?.value(as: Int.self) == 2)
  }

  /// The next incarnation would receive the context again.
  @Test func aContextHasItsLastNameWhenItsMemberHasLeft() throws {
    try contexts().removeDirectory("phone")
    pair.watch.leave()
    watching.stop()
    #expect(try pair.files("context") == ["phone"])
    #expect(heard.all == [1])
  }
}
