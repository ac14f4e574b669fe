package import WormholeContainerStorage
package import WormholeSyscalls

/// A serial queue of calls: a queue of the library, or of the program.
package protocol CallQueue: Sendable {
  /// Makes a call soon, and does not wait for it.
  func soon(_ call: @escaping @Sendable () -> Void)
  /// Makes a call at a moment or soon after it, and does not wait for the call.
  func later(_ moment: Instant, _ call: @escaping @Sendable () -> Void)
  /// Makes a call after all earlier calls, and waits until the call has returned.
  func wait<Result>(for call: () -> Result) -> Result
}

extension CallQueue {
  /// As ``soon(_:)``, after a time.
  package func soon(after pause: Duration, _ call: @escaping @Sendable () -> Void) {
    later(.now + pause, call)
  }
}

extension Worker {
  /// A worker whose task runs on a queue.
  ///
  /// Unless the worker stays on its queue, a task for which a notice is the trigger runs on the
  /// thread that notices changes, after this thread has notified all listeners: no second thread
  /// need wake up.
  ///
  /// - Parameters:
  ///   - staysOnQueue: whether the task runs on the queue only, because it may wait for other
  ///     threads.
  ///   - time: the clock of the alarm.
  package convenience init(
    on queue: any CallQueue, staysOnQueue: Bool = false, _ time: MailTime = MailTime()
  ) {
    self.init(followsNotices: !staysOnQueue) {
      queue.soon($0)
    } now: {
      time.now
    } ring: {
      time.ring(at: $0, on: queue, $1)
    }
  }
}
