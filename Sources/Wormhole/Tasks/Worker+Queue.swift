package import WormholeContainerStorage
internal import WormholeSyscalls

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
    self.init {
      if staysOnQueue { queue.soon($0) } else { queue.afterTelling($0) }
    } ring: {
      time.ring(at: $0, on: queue, $1)
    }
  }
}
