import Syscalls
#if canImport(Testing)
  package import Testing

  /// Runs tests that block their thread on threads of their own.
  ///
  /// Tests run on the threads that tasks run on, one for each processor. While as many tests wait
  /// for
  /// processes there, no task gets on, and the tests that wait for tasks would run out of patience.
  package struct Blocking: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    @concurrent package func provideScope(
      for test: Test, testCase: Test.Case?,
      performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
      try await withTaskExecutorPreference(BlockingExecutor.shared) { try await function() }
    }
  }

  extension Trait where Self == Blocking {
    /// For all tests that are not asynchronous: nearly every one waits somewhere.
    ///
    /// None has a time limit: that would count the wait for its turn, too, and on a slow machine
    /// that is longer than any that would help.
    package static var blocking: Self { Self() }
  }

  /// More threads than there usually are processors to test on: many of the tests wait.
  ///
  /// On two processors six are never idle together; four were, for a quarter of the time. Under a
  /// sanitizer three are not either, and more keep each other waiting for longer than the library
  /// waits for anybody.
  private final class BlockingExecutor: TaskExecutor {
    static let shared = BlockingExecutor()
    private let jobs = Monitor<[UnownedJob]>([])

    private init() {
      for _ in 0..<(Processes.environment("WORMHOLE_SANITIZED") == nil ? 6 : 3) {
        // Without a thread no such test would ever run.
        try! Thread("blocking-tests") { self.run() }.detach()
      }
    }

    /// What came last is run first, so that the next test of a suite that runs them one after the
    /// other does not wait for all others: a long such suite would be alone at the end.
    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      jobs.signal { $0.append(job) }
    }

    private func run() {
      while true {
        let job = jobs.wait(until: nil) { $0.popLast() }
        job?.runSynchronously(on: asUnownedTaskExecutor())
      }
    }
  }
#endif
