import WormholeSyscalls
#if canImport(Testing)
  package import Testing

  /// Runs tests that block their thread on threads of their own.
  ///
  /// Tests run on the threads of tasks, one for each processor. While as many tests wait for
  /// processes on these threads, no task makes progress, and the tests that wait for tasks would
  /// time out.
  package struct Blocking: SuiteTrait, TestTrait, TestScoping {
    package var isRecursive: Bool { true }

    @concurrent package func provideScope(
      for test: Test, testCase: Test.Case?,
      performing function: @concurrent @Sendable () async throws -> Void
    ) async throws {
      try await withTaskExecutorPreference(BlockingExecutor.shared) {
        // At this point the test has a thread: the wait for a thread is not part of the duration.
        try await TestTimes.measure(test) { try await function() }
      }
    }
  }

  extension Trait where Self == Blocking {
    /// For all tests that are not asynchronous: nearly every test waits somewhere.
    ///
    /// No blocking test has a time limit: a limit would count the wait for a thread, too, which on
    /// a slow machine is longer than any useful limit.
    package static var blocking: Self { Self() }
  }

  /// More threads than test machines usually have processors: many of the tests wait.
  ///
  /// On two processors six threads are never idle together; four were, for a quarter of the time.
  /// Under a sanitizer four threads take one processor's time, and more threads keep each other
  /// waiting for longer than the library's timeouts.
  private final class BlockingExecutor: TaskExecutor {
    static let shared = BlockingExecutor()
    private let jobs = Monitor<[UnownedJob]>([])

    private init() {
      for _ in 0..<(Processes.environment("WORMHOLE_SANITIZED") == nil ? 6 : 4) {
        // Without a thread no blocking test would ever run.
        try! Thread("blocking-tests") { self.run() }.detach()
      }
    }

    /// The last job runs first, so that the next test of a serialized suite does not wait for all
    /// other tests: a long serialized suite would be alone at the end.
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
