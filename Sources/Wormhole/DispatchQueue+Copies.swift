internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// What works in a copy of a process, as `fork` makes it: Dispatch has no threads there any more,
/// and without them no queue and no task gets on.
extension DispatchQueue {
  /// Does something soon: on the queue, or in a copy on a thread of its own.
  func soon(_ body: @escaping @Sendable () -> Void) {
    guard ProcessCopy.isCopy else { return async(execute: body) }
    guard let thread = try? Thread("wormhole-copy", body) else { return body() }
    thread.detach()
  }

  /// Does something on the thread that tells of changes, once that has told all; or soon, if that
  /// is not where this is called, or it has enough to do.
  func afterTelling(_ body: @escaping @Sendable () -> Void) {
    if !Watcher.shared.afterwards(body) { soon(body) }
  }

  /// As ``soon(_:)``, after a time.
  func soon(after pause: Duration, _ body: @escaping @Sendable () -> Void) {
    guard ProcessCopy.isCopy else {
      return asyncAfter(deadline: .now() + .nanoseconds(Int(pause.inNanoseconds)), execute: body)
    }
    soon {
      let _: Void? = Monitor(()).wait(until: .now + pause) { _ in nil }
      body()
    }
  }
}

extension WormholeError {
  /// Throws in a copy, for what needs queues or tasks.
  static func checkQueues(
    _ operation: @autoclosure () -> String, _ subject: @autoclosure () -> String
  ) throws(WormholeError) {
    guard ProcessCopy.isCopy else { return }
    throw WormholeError(
      .forked, operation(), subject(),
      because: "this process is a copy, as fork makes it, in which queues and tasks do not get on",
      hint: "do it before the container is first opened, or in a program that is started anew")
  }
}
