import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Several channels changed in one call.
@Suite(.blocking) struct GroupUpdateTests {
  private let meeting: Meeting
  private var container: SharedContainer { meeting.container }

  // A takeover among the commits would be reported as partly done. On a busy machine, a short lease
  // turns any pause into a takeover.
  init() throws { meeting = try Meeting { $0.lease = .seconds(60) } }

  @Test func twoChannelsOfDifferentTypes() throws {
    let seats = container.channel("seats", of: [Int].self)
    let sold = container.channel("sold", of: Int.self)
    try seats.put([1, 2, 3])
    try container.update(seats, sold) { seats, sold in
      seats?.removeFirst()
      sold = (sold ?? 0) + 1
    }
    #expect(try seats.value == [2, 3])
    #expect(try sold.value == 1)
    try container.update(seats, sold) { _, sold in sold = nil }
    #expect(try seats.metadata?.version == 2, "what is left as it was is not written")
    #expect(try sold.metadata?.isCleared == true)
  }

  @Test func severalOfOneType() throws {
    let accounts = ["b", "a", "c"].map { container.channel($0, of: Int.self) }
    try container.update(accounts) { $0 = [2, 1, nil] }
    #expect(try accounts.map { try $0.value } == [2, 1, nil])
    #expect(try container.channels() == ["a", "b"])
    try container.update([Channel<Int>]()) { _ in }
  }

  @Test func anErrorChangesNone() throws {
    struct Mine: Error {}
    let accounts = ["a", "b"].map { container.channel($0, of: Int.self) }
    #expect(throws: Mine.self) {
      try container.update(accounts) { values in
        values = [1, 2]
        throw Mine()
      }
    }
    #expect(try container.channels() == [])
    try container.channel("b").put("text")
    let mismatch = try failure { try container.update(accounts) { $0 = [1, 2] } }
    #expect(mismatch.code == .typeMismatch)
    #expect(try container.channels() == ["b"])
    let twice = try failure { try container.update([accounts[0], accounts[0]]) { _ in } }
    #expect(twice.code == .nested)
  }

  /// Money is moved to and fro by several threads at once, in both orders; none is lost.
  @Test func movingKeepsTheSum() throws {
    let names = ["a", "b", "c", "d"]
    for name in names { try container.channel(name).put(100) }
    let moved = Monitor(0)
    let threads = try (0..<4).map { index in
      try Thread("mover") { [meeting] in
        guard let own = try? meeting.another({ $0.lease = .seconds(60) }) else { return }
        for step in 0..<50 {
          let (from, to) = (names[(index + step) % 4], names[(index + 2 * step + 1) % 4])
          guard from != to else { continue }
          let isDone: Void? = try? own.update(
            own.channel(from, of: Int.self), own.channel(to, of: Int.self)
          ) {
            $0 = ($0 ?? 0) - 1
            $1 = ($1 ?? 0) + 1
          }
          if isDone != nil { moved.withLock { $0 += 1 } }
        }
      }
    }
    for thread in threads { thread.join() }
    #expect(moved.withLock { $0 } == 4 * 38, "each step in four would move to where it is from")
    #expect(
      try names.compactMap { try container.channel($0, of: Int.self).value }.reduce(0, +) == 400)
  }
}
