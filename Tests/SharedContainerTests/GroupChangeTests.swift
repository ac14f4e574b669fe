import PropertyLists
import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing

/// Several slots changed in one call.
@Suite(.blocking) struct GroupChangeTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let left: Slot
  private let right: Slot

  init() throws {
    (folder, container) = try Container.forTest()
    left = try container.slot(.channels, "left")
    right = try container.slot(.channels, "right")
  }

  /// Moves one from the first to the second.
  private static func move(_ container: Container, _ slots: [Slot]) throws {
    let time = Patience(until: .now + patience)
    try container.change(slots, "move", patience: time) { contents in
      let numbers = try contents.map(Slot.number(in:))
      return try [numbers[0] - 1, numbers[1] + 1].map { .put(try BinaryEncoder().encode($0)) }
    }
  }

  @Test func bothChangeInTheOrderGiven() throws {
    try Self.move(container, [right, left])
    #expect(try right.number() == -1)
    #expect(try left.number() == 1)
  }

  @Test func whatThrowsChangesNeither() throws {
    struct Mine: Error {}
    try left.add(3)
    #expect(throws: Mine.self) {
      try container.change([left, right], "move") { _ in throw Mine() }
    }
    #expect(try left.number() == 3)
    #expect(try right.number() == 0)
    #expect(try left.add() == 4)
  }

  @Test func oneSlotTwiceIsAnError() throws {
    let error = #expect(throws: WormholeError.self) {
      try container.change([left, left], "move") { _ in [.none, .none] }
    }
    #expect(error?.code == .nested)
  }

  /// In opposite orders, by threads of two open containers: the sum stays, and none waits for ever.
  @Test func callsInOppositeOrdersDoNotWaitForEachOther() throws {
    let path = container.path
    let takeovers = Monitor(0)
    try together(4) { number in
      // If two waited for each other, neither would be passed by in time.
      let own = try Container.open(path, options: .testing(lease: .seconds(60)))
      let slots = try [own.slot(.channels, "left"), own.slot(.channels, "right")]
      for _ in 0..<50 { try Self.move(own, number % 2 == 0 ? slots : slots.reversed()) }
      takeovers.withLock { $0 += own.counters.takeovers }
    }
    #expect(try left.number() == 0)
    #expect(try right.number() == 0)
    #expect(takeovers.withLock { $0 } == 0)
  }

  @Test func aStoppedHolderOfOneIsPassedBy() throws {
    let stopped = try Running(
      .stopInside(container.path, "right"))
    try stopped.waitUntilStopped()
    try Self.move(container, [left, right])
    #expect(try left.number() == -1)
    #expect(try right.number() == 1)
    #expect(try stopped.waitOrGo() == "done\n")
    #expect(try right.number() == 2)
  }
}
