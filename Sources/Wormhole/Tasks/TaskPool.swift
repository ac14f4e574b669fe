internal import Synchronization
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The threads of Swift's tasks, which are Dispatch's, and of the program's queues.
///
/// When the first of these threads starts, Dispatch takes four descriptors, and ends the process if
/// it does not get them. So the first call that needs the threads checks whether enough descriptors
/// are free, and at once starts a task that takes the four.
enum TaskPool {
  private static let hasStarted = Atomic<Bool>(false)

  /// Throws if the threads could not be started.
  static func start(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(WormholeError) {
    guard !hasStarted.load(ordering: .acquiring), !isRunning, !ProcessCopy.isCopy,
      !ProcessCopy.isScheduled
    else { return }
    try naming(operation(), subject()) { () throws(Errno) in
      // Two descriptors each: more than four, because other threads may open files at the same
      // time.
      let pipes = try [SharedPipe(), SharedPipe(), SharedPipe()]
      withExtendedLifetime(pipes) {}
    }
    // The caller opens files next, which could take the descriptors before Dispatch does.
    let isThere = Monitor(false)
    Task.detached { isThere.signal { $0 = true } }
    _ = isThere.wait(until: .now + longestStart) { $0 ? () : nil }
    // Set where all threads are busy too: only the first call waits for a thread.
    hasStarted.store(true, ordering: .releasing)
  }

  /// How long the first thread is waited for; it starts at once unless there are too many threads.
  private static var longestStart: Duration { .milliseconds(500) }

  /// Whether the caller is a task on one of the pool's threads.
  private static var isRunning: Bool {
    withUnsafeCurrentTask { $0 != nil } && !Thread.isMain
  }
}
