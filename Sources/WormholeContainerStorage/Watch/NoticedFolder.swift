internal import WormholeSyscalls

/// What has changed in one directory, for a listener that reads the directory or reports the names.
///
/// Notices are hints, the directory is the truth. The folder starts the watch once, and ends it
/// once. The listener decides how it takes the notices:
///
/// - A listener with a worker takes the names that have changed, or learns that any name may have
///   changed, and then lists the directory. One run of the worker's task is in progress at a time;
///   what changes during a run is kept for the next one.
/// - A listener that gives each notice to a state machine at once gives ``begin(_:)`` a watch with
///   a handler of its own. It may pass the notices for its worker on.
package final class NoticedFolder: Sendable {
  private let watch = Monitor<(any NoticeSource)?>(nil)
  /// Nil without a worker, which alone takes changes from here.
  private let changes: PendingChanges?

  private struct PendingChanges {
    let news = Monitor(WatchSignal.changed([]))
    let worker: Worker
  }

  /// - Parameter worker: runs the task, which takes the changes; nil if the handler of the watch
  ///   takes each notice at once.
  package init(_ worker: Worker? = nil) { changes = worker.map { PendingChanges(worker: $0) } }

  /// Starts the watch, unless it is active.
  ///
  /// - Parameter start: makes the watch, whose handler passes on what the task is to know.
  package func begin<Failure: Error>(
    _ start: (
      _ hear: @escaping @Sendable (WatchSignal) -> Void
    ) throws(Failure) -> any NoticeSource
  ) throws(Failure) {
    try watch.withLock { watch throws(Failure) in
      guard watch == nil else { return }
      watch = try start { [weak self] in self?.hear($0) }
    }
  }

  private func hear(_ signal: WatchSignal) {
    guard let changes else { return }
    changes.news.withLock { $0.add(signal) }
    changes.worker.trigger()
  }

  /// Returns what has changed since the last call.
  package func take() -> WatchSignal {
    changes?.news.withLock { exchange(&$0, with: .changed([])) } ?? .changed([])
  }

  /// Makes the next run of the task list the directory.
  package func loseTrack() { changes?.news.withLock { $0 = .lookAgain } }

  /// Repeats a run that has failed: the task lists the directory in a second.
  package func retry() {
    loseTrack()
    changes?.worker.retry()
  }

  /// Repeats a run that could not read one file: the task gets the file's name in a second, and
  /// need not list the directory.
  package func retry(_ name: String) {
    changes?.news.withLock { $0.add(.changed([name])) }
    changes?.worker.retry()
  }

  var isActive: Bool { watch.withLock { $0 != nil } }

  /// Whether the watch is polled, because inotify cannot serve it.
  var isPolling: Bool { watch.withLock { $0?.isPolling ?? false } }

  /// Makes a call as a handler of the watch is called: if the watch has a gate, never after
  /// ``stop()``.
  func call(_ body: () -> Void) { watch.withLock { $0 }?.call(body) }

  /// Calls the body with the active watch, or nil, while no other thread starts or ends the watch.
  package func withWatch<Result>(_ body: ((any NoticeSource)?) -> Result) -> Result {
    watch.withLock { body($0) }
  }

  /// Ends the watch; a run of the task may be in progress.
  package func stop() { watch.withLock { $0.take() }?.stop() }

  deinit { stop() }
}

/// The registration of a listener for one directory, which ends with ``stop()``: a watch on a name,
/// or a watch on an open directory.
package protocol NoticeSource: AnyObject, Sendable {
  /// Whether the watch is polled, because inotify cannot serve it.
  var isPolling: Bool { get }

  /// Makes a call as the handler is called.
  func call(_ body: () -> Void)

  /// Stops the notices of names; false if pausing is not possible.
  func pause() -> Bool

  /// Resumes all notices; changes during the pause are not reported.
  func resume()

  func stop()
}
