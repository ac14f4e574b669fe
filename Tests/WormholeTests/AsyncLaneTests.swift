import TestSupport
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Calls of tasks that wait for each other.
@Suite struct AsyncLaneTests {
  /// However many tasks wait for a lock, only the first one's thread does.
  @Test func aPutWaitsForTheTasksAheadWithoutAThread() async throws {
    let meeting = try Meeting.patient()
    let lock = try HeldLock(of: "number", in: meeting)
    let container = try meeting.another {
      Meeting.havePatience(&$0)
      // A put that waits for the lock itself fails the test within this time.
      $0.timeout = patience
    }
    // Both instances have the same lock, but not the same time limit.
    var options = container.options
    options.timeout = .milliseconds(20)
    let hasty = SharedContainer(container.storage, options).channel("number", of: Int.self)
    let number = container.channel("number", of: Int.self)
    let first = Task { try await number.update(default: 0) { $0 += 1 } }
    try await lock.waitForWaiter()
    let error = try await failure { _ = try await hasty.put(1) }
    #expect(error.code == .timedOut && error.subject == "number")
    #expect(
      error.reason
        == "the deadline passed while other tasks of this process were ahead in the queue")
    lock.release()
    #expect(try await first.value == 1)
  }
}
