package import Dispatch
internal import WormholeContainerStorage
package import WormholeSyscalls

/// A queue of the program.
///
/// In a forked child, Dispatch has no threads any more. Without its threads, no queue and no task
/// makes progress: there each call has a thread of its own.
extension DispatchQueue: CallQueue {
  package func soon(_ call: @escaping @Sendable () -> Void) {
    if ProcessCopy.isCopy { return CallThreads.background.add(call) }
    // The first thread of Dispatch ends a process that has no descriptors left.
    if (try? TaskPool.start("make calls on", "a queue")) != nil { return async(execute: call) }
    Self.callers.soon { self.sync(execute: call) }
  }

  /// Makes the calls on all queues, in their order, as long as Dispatch can start no thread.
  private static let callers = WorkQueue()

  /// Not with a Dispatch timer: the first timer ends a process that has no descriptors left.
  package func later(_ moment: Instant, _ call: @escaping @Sendable () -> Void) {
    CallThreads.background.add(at: moment) { self.soon(call) }
  }

  package func wait<Result>(for call: () -> Result) -> Result { sync(execute: call) }
}

extension WormholeError {
  /// Throws for calls that need queues of the program or tasks, if these make no progress.
  static func checkQueues(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(WormholeError) {
    try checkNoCopy(operation(), subject())
    try TaskPool.start(operation(), subject())
  }

  /// Throws in a forked child, in which queues and tasks make no progress.
  static func checkNoCopy(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(WormholeError) {
    guard ProcessCopy.isCopy else { return }
    throw WormholeError(
      .forked, operation(), subject(),
      because: "this process is a forked child, in which no queue and no task runs",
      hint: "make the call before the fork, or execute a program in the child")
  }
}
