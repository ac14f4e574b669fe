import Syscalls
import Testing

/// Runs tests, and what they wait with, on threads of their own.
///
/// Tests of processes wait for them, and the pool that tasks share has as many threads as the
/// machine has cores: a few tests that wait would hold up all others.
final class ThreadsForTests: TaskExecutor {
  static let shared = ThreadsForTests()

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    do throws(Errno) {
      try Thread("test") { job.runSynchronously(on: self.asUnownedTaskExecutor()) }.detach()
    } catch {
      preconditionFailure("a thread for a test: \(error)")
    }
  }
}

struct OnThreads: SuiteTrait, TestTrait, TestScoping {
  var isRecursive: Bool { true }

  @concurrent func provideScope(
    for test: Test, testCase: Test.Case?,
    performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    try await withTaskExecutorPreference(ThreadsForTests.shared) { try await function() }
  }
}

extension Trait where Self == OnThreads {
  /// For tests that wait for processes.
  static var onThreads: OnThreads { OnThreads() }
}
