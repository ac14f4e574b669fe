package import WormholeSyscalls

/// What has changed in one directory, for a task that reads the directory or reports the names.
///
/// Notices are hints, the directory is the truth. The task takes the names that have changed, or
/// learns that any name may have changed, and then lists the directory. One run of the task is in
/// progress at a time; what changes during a run is kept for the next one.
package final class NoticedFolder: Sendable {
  private let news = Monitor(WatchSignal.changed([]))
  private let watch = Monitor<NamedWatch?>(nil)
  private let worker: Worker

  /// - Parameter worker: runs the task, which takes the changes.
  package init(_ worker: Worker) { self.worker = worker }

  /// Starts the watch, unless it is active.
  ///
  /// - Parameter start: makes the watch, whose handler passes on what the task is to know.
  package func begin(
    _ start: (_ hear: @escaping @Sendable (WatchSignal) -> Void) throws(Errno) -> NamedWatch
  ) throws(Errno) {
    try watch.withLock { watch throws(Errno) in
      guard watch == nil else { return }
      watch = try start { [weak self] in self?.hear($0) }
    }
  }

  private func hear(_ signal: WatchSignal) {
    news.withLock { $0.add(signal) }
    worker.trigger()
  }

  /// Returns what has changed since the last call.
  package func take() -> WatchSignal { news.withLock { exchange(&$0, with: .changed([])) } }

  /// Makes the next run of the task list the directory.
  package func loseTrack() { news.withLock { $0 = .lookAgain } }

  /// Repeats a run that has failed: the task lists the directory in a second.
  package func retry() {
    loseTrack()
    worker.retry()
  }

  var isActive: Bool { watch.withLock { $0 != nil } }

  /// Whether the watch is polled, because inotify cannot serve it.
  var isPolling: Bool { watch.withLock { $0?.isPolling ?? false } }

  /// Makes a call as a handler of the watch is called: never after ``stop()``.
  func call(_ body: () -> Void) { watch.withLock { $0 }?.call(body) }

  /// Ends the watch; a run of the task may be in progress.
  package func stop() { watch.withLock { $0.take() }?.stop() }

  deinit { stop() }
}
