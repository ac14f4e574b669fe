import TestSupport
import TestTraits
import Testing

@testable import WormholeContainerStorage
@testable import WormholeSyscalls

/// P3: a process that takes a lock again and again lets a waiter go first.
@Suite(.blocking) final class StintTests {
  private let folder: TemporaryDirectory
  private let slot: Slot
  private let lock: Descriptor

  init() throws {
    folder = try TemporaryDirectory()
    // Nobody here renews a mark.
    let options = ContainerOptions.testing(lease: .seconds(60))
    let container = try Container.open(folder.path + "/c", options: options)
    slot = try container.slot(.channels, "n")
    try slot.add()
    lock = try Descriptor.open(path: container.path("channels", "n", "lock") + "/1", [.readWrite])
  }

  private func sign() throws -> UInt64 {
    var sign = UInt64(0)
    _ = try withUnsafeMutableBytes(of: &sign) { try lock.readFully(into: $0, at: 64) }
    return sign
  }

  /// The process waits for the waiter that has set its flag, for a short time, and once.
  @Test func whoHasALockAgainAndAgainStepsAside() throws {
    try lock.writeFully(CollectionOfOne(UInt64(7)).span.bytes, at: 64)
    let deadline = Instant.now + .seconds(10)
    var before = Instant.now
    while try sign() != 0, Instant.now < deadline {
      before = .now
      try slot.add()
    }
    #expect(try sign() == 0, "he has been asked")
    try slot.add()
    #expect(Instant.now - before >= .milliseconds(5))
    #expect(try lock.status().size == 72)
  }

  @Test func whoWaitsAsksAndThenDoesNot() throws {
    #expect(try lock.tryLock(.exclusive))
    let slot = slot
    let thread = try Thread("waiter") { _ = try? slot.add() }
    try eventually("it asks") { try sign() != 0 }
    try lock.unlock()
    thread.join()
    #expect(try sign() == 0)
    #expect(try slot.number() == 2)
  }

  @Test func whoGivesUpAsksNoMore() throws {
    #expect(try lock.tryLock(.exclusive))
    // On a busy machine, a short time may be over before it asks.
    for time in [20, 500, 5000] where try lock.status().size < 72 {
      let brief = Patience(until: .now + .milliseconds(time))
      let error = #expect(throws: WormholeError.self) {
        try slot.change("update", patience: brief) { _ in .none }
      }
      #expect(error?.code == .timedOut)
    }
    #expect(try sign() == 0)
    #expect(try lock.status().size == 72, "it had asked")
  }
}
