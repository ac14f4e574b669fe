import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists

@testable import WormholeBridge

/// The home of a channel moves, without servers.
@Suite(.blocking) struct ChannelMoveTests {
  private let directory: TemporaryDirectory
  private let (here, there): (SharedContainer, SharedContainer)
  private static let (asker, heir) = ("000000000000000c", "000000000000000b")

  init() throws {
    directory = try TemporaryDirectory()
    here = try SharedContainer(directory: directory.path + "/here")
    there = try SharedContainer(directory: directory.path + "/there")
    try here.channel("seats").put(10)
  }

  private func change(_ operation: String) -> Carrier.ChannelChange {
    Carrier.ChannelChange(channel: "seats", operation: operation, expected: nil, value: 9)
  }

  @Test func noChangeIsLostOrMadeTwice() throws {
    let (former, present) = (try Carrier(here), try Carrier(there))
    #expect(try former.make(change("x"), for: Self.asker).result == .made)
    let legacy = try former.giveAway("seats", to: Self.heir)
    #expect(legacy.content?.value == 9 && legacy.operations == [Self.asker: "x"])
    let seats = here.channel("seats", of: Int.self)
    let error = #expect(throws: WormholeError.self) { try seats.put(8) }
    #expect(error?.code == .unreachable)
    #expect(try seats.value == 9 && seats.metadata?.home == Self.heir)
    #expect(throws: WormholeError.self) { _ = try former.make(change("y"), for: Self.asker) }
    #expect(try former.giveAway("seats", to: Self.heir) == legacy)
    try present.store(legacy.content, of: "seats", from: "000000000000000a", changesTo: nil)
    for _ in 0..<2 { try present.adopt(legacy, as: "seats") }
    let moved = there.channel("seats", of: Int.self)
    #expect(try moved.value == 9 && moved.metadata?.home == nil)
    #expect(try moved.metadata?.version == legacy.content.map { $0.version + 1 })
    // The reply of the former home was lost: the change is asked again, and was made.
    try moved.put(5)
    #expect(try present.make(change("x"), for: Self.asker).result == .made)
    #expect(try moved.value == 5)
    #expect(try present.make(change("y"), for: Self.asker).result == .made)
    #expect(try moved.value == 9)
  }

  /// Whoever has the right may publish anything as the content of a channel.
  @Test(arguments: [0, -1, Int.max, Int.max - 1]) func anInventedVersionIsRefused(_ version: Int)
    throws
  {
    let bytes = try #require(copy(version))
    #expect(ChannelTraffic.copy(bytes, at: 0, offset: 0) == nil)
  }

  @Test func theGreatestVersionIsFollowedByAnother() throws {
    let content = Carrier.ChannelContent(
      version: Int.max - 2, sent: Date(), writer: "w", value: 1, until: nil)
    let present = try Carrier(there)
    try present.store(content, of: "seats", from: Self.heir, changesTo: nil)
    try present.adopt(Carrier.ChannelLegacy(content, [:]), as: "seats")
    let seats = there.channel("seats", of: Int.self)
    #expect(try seats.value == 1)
    try seats.put(2)
    #expect(try seats.value == 2)
  }

  /// Each later value has the IDs of all machines.
  @Test func theNumberOfMachinesIsLimited() throws {
    let carrier = try Carrier(there)
    let machines = (0..<Carrier.mostMachines).map { $0.fileName }
    let content = Carrier.ChannelContent(
      version: 1, sent: Date(), writer: "w", value: 1, until: nil)
    let operations = Dictionary(uniqueKeysWithValues: machines.map { ($0, "x") })
    try carrier.adopt(Carrier.ChannelLegacy(content, operations), as: "seats")
    let answer = try carrier.make(change("y"), for: "0000000000000fff")
    #expect(answer.result == .refused && answer.reason?.contains("256 machines") == true)
    #expect(try carrier.make(change("y"), for: machines[3]).result == .made)
  }

  @Test func inventedIDsAreNotHandedOn() throws {
    let long = String(repeating: "x", count: 65)
    let bytes = try #require(copy(1, [Self.asker: "x", "no machine": "y", Self.heir: long]))
    #expect(ChannelTraffic.copy(bytes, at: 0, offset: 0)?.operations == [Self.asker: "x"])
    let many = (0...Carrier.mostMachines).map { ($0.fileName, "x") }
    let more = try #require(copy(1, Dictionary(uniqueKeysWithValues: many)))
    #expect(ChannelTraffic.copy(more, at: 0, offset: 0)?.operations == [:])
    #expect(ChannelTraffic.change(.dictionary(ChannelTraffic.list(change(long)))) == nil)
  }

  private func copy(_ version: Int, _ operations: [String: String] = [:]) -> [UInt8]? {
    ChannelTraffic.bytes(
      Carrier.ChannelContent(version: version, sent: Date(), writer: "w", value: 1, until: nil),
      of: Self.heir, heir: Self.heir, operations, offset: 0)
  }

  /// A channel without a value moves, too.
  @Test func anEmptyChannelMoves() throws {
    let former = try Carrier(here)
    let legacy = try former.giveAway("other", to: Self.heir)
    #expect(legacy.content == nil)
    try Carrier(there).adopt(legacy, as: "other")
    try there.channel("other").put(1)
    #expect(throws: WormholeError.self) { try here.channel("other").put(1) }
  }
}
