package import WormholeContainerStorage

extension Worker {
  /// A worker whose task runs on a thread for work without a waiting caller.
  ///
  /// A worker makes one run at a time, and therefore needs a queue only if its task must not run
  /// beside other calls of the queue.
  ///
  /// Unless the worker stays off the threads of the watcher, a task for which a notice is the
  /// trigger runs on the thread that notices changes, after this thread has notified all
  /// listeners: no second thread need wake up.
  ///
  /// - Parameters:
  ///   - staysOffWatcher: whether the task never runs on a thread of the watcher, because the task
  ///     may wait for other threads.
  ///   - time: the clock of the alarm.
  package convenience init(staysOffWatcher: Bool, _ time: MailTime = MailTime()) {
    self.init {
      if staysOffWatcher { CallThreads.background.add($0) } else { CallThreads.addAfterTelling($0) }
    } ring: { moment, call in
      guard let clock = time.moved else {
        CallThreads.background.add(at: moment, call)
        return
      }
      clock.ring(at: moment) { CallThreads.background.add(call) }
    }
  }
}
