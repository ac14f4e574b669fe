import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholePropertyLists

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
