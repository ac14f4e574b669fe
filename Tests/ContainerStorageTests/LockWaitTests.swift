import Foundation
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

  /// The lock file's thread fails when its caller has stopped waiting.
  @Test func anEarlierFailureIsNotReportedToTheNextWaiter() throws {
    try folder.write("", to: "lock")
    let path = folder.path + "/lock"
    let lock = LockFile(number: 1, file: try Descriptor.open(path: path, [.readWrite]))
    let own = try lock.file.duplicate()
    // The kernel locks no descriptor of this kind.
    let useless = try Descriptor.open(path: path, [.path])
    #expect(dup2(useless.rawValue, lock.file.rawValue) == lock.file.rawValue)
    try lock.request()
    lock.giveUp()
    #expect(throws: Errno.badDescriptor) {
      try eventually("the thread has failed") { try lock.tryLock() }
    }
    #expect(dup2(own.rawValue, lock.file.rawValue) == lock.file.rawValue)
    // While another open file has the lock, the thread waits.
    let other = try Descriptor.open(path: path, [.readWrite])
    #expect(try other.tryLock(.exclusive))
    try lock.request()
    #expect(throws: Never.self) { try lock.wait(until: .now) }
    try other.unlock()
    #expect(try lock.wait(until: .now + patience))
  }

  /// The thread gets the lock between the caller's last look and its end.
  @Test func aLockThatNobodyWantsAnyMoreIsReleased() throws {
    try folder.write("", to: "lock")
    let path = folder.path + "/lock"
    let lock = LockFile(number: 1, file: try Descriptor.open(path: path, [.readWrite]))
    try lock.request()
    // As long as its thread is in the queue, this takes no lock.
    try eventually("the thread has the lock") { try lock.tryLock() }
    lock.giveUp()
    let other = try Descriptor.open(path: path, [.readWrite])
    #expect(try other.tryLock(.exclusive))
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
