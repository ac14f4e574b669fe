import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Lock waits that fail, and their leftovers.
@Suite(.blocking) struct LockWaitTests {
  private let folder: TemporaryDirectory

  init() throws { folder = try TemporaryDirectory() }

  private func slot() throws -> Slot {
    try Container.open(folder.path + "/c", options: .testing()).slot(.system, "lock.print")
  }

  private func failure(
    _ slot: Slot, _ rules: [FaultRule] = [], within time: Duration
  ) throws -> WormholeError? {
    let failure = Monitor<WormholeError?>(nil)
    let thread = try Thread("waiter") {
      FaultPoints.with(rules) {
        do {
          _ = try slot.hold("lock", patience: Patience(until: .now + time)) { $0 }
        } catch {
          failure.withLock { $0 = error as? WormholeError }
        }
      }
    }
    thread.join()
    return failure.withLock { $0 }
  }

  /// The waiting thread in the kernel's queue gets the lock later, when no caller wants it any
  /// more.
  @Test func aWaitThatFailsDoesNotTakeTheLockLater() throws {
    let (first, second) = (try slot(), try slot())
    _ = try first.hold("lock") { (_: Int) throws in
      // The check before the lock is the first call.
      let rule = FaultRule(.fstatat, path: "lock/2", number: 2, .fail(.inputOutput))
      let error = try failure(second, [rule], within: patience)
      #expect(error?.errno == Errno.inputOutput.rawValue, "\(String(describing: error))")
    }
    // With a wait left over, `second` would be notified of a lock that it does not hold.
    for _ in 0..<200 { _ = try second.hold("lock") { $0 } }
    _ = try first.hold("lock") { (_: Int) throws in
      #expect(try failure(second, within: .milliseconds(100))?.code == .timedOut)
    }
    _ = try first.hold("lock", patience: Patience(until: .now + patience)) { $0 }
  }
}
