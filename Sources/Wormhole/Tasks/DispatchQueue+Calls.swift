package import Dispatch
internal import WormholeContainerStorage
package import WormholeSyscalls

/// A queue of the program.
///
/// In a forked child, Dispatch has no threads any more. Without its threads, no queue and no task
/// makes progress: there each call has a thread of its own.
extension DispatchQueue: CallQueue {
  package func soon(_ call: @escaping @Sendable () -> Void) {
    guard ProcessCopy.isCopy else { return async(execute: call) }
    CallThreads.background.add(call)
  }

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
