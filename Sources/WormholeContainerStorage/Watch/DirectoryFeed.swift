internal import WormholeSyscalls

/// A watch on the names in one directory, for listeners that read files or wait.
///
/// The names are reported on a thread that may wait, one call at a time; names that change during a
/// call are reported together by the next one. The directory need not exist yet.
package final class DirectoryFeed: Sendable {
  /// The changes that are reported.
  package enum Interest: Sendable {
    /// A name appears.
    case arrivals
    /// A name appears or disappears.
    case names
    /// A file is touched, or a name appears.
    case touches
    /// A file is touched, or is closed by a process that could write to it.
    case tenures

    fileprivate var mask: InotifyMask {
      switch self {
      case .arrivals: [.created, .movedTo]
      case .names: [.created, .movedTo, .movedFrom, .deleted]
      case .touches: [.created, .movedTo, .attributes]
      case .tenures: [.attributes, .closedAfterWriting]
      }
    }
  }

  /// What has changed.
  package enum DirectoryChange: Sendable, Equatable {
    /// These names; a name may be among them several times.
    case names([String])
    /// All names are new: the directory was made, or another one has its name.
    case replaced
    /// Any name may have changed: the directory is polled.
    case polled
    /// Any name: notices were lost.
    case lost
  }

  private let worker = Worker()
  private let folder: NoticedFolder
  /// Whether the directory was replaced since the last report.
  private let isReplaced = Monitor(false)

  /// - Parameters:
  ///   - path: the names that lead to the directory, from the container's own.
  ///   - handler: may wait, and may read files.
  package init(
    _ container: Container, _ path: [String], _ interest: Interest,
    _ handler: @escaping @Sendable (DirectoryChange) -> Void
  ) throws(WormholeError) {
    folder = NoticedFolder(worker)
    worker.begin { [weak folder, isReplaced] in
      guard let folder else { return }
      if let change = Self.take(from: folder, isReplaced) { handler(change) }
    }
    try container.watching("watch", path.last ?? "", path.joined(separator: "/")) {
      () throws(Errno) in
      try folder.begin { [isReplaced] hear throws(Errno) in
        try NamedWatch(container, path, interest.mask) { signal in
          if signal == .replaced { isReplaced.withLock { $0 = true } }
          if signal != .gone { hear(signal) }
        }
      }
    }
  }

  /// Returns what to report; nil for nothing.
  private static func take(
    from folder: NoticedFolder, _ isReplaced: Monitor<Bool>
  ) -> DirectoryChange? {
    let news = folder.take()
    if case .changed(let names) = news { return names.isEmpty ? nil : .names(names) }
    let wasReplaced = isReplaced.withLock { exchange(&$0, with: false) }
    return change(news, wasReplaced: wasReplaced, isPolling: folder.isPolling)
  }

  /// Returns what to report when any name may have changed.
  ///
  /// A loss is reported even if the directory was replaced as well: it concerns other watches too.
  package static func change(
    _ news: WatchSignal, wasReplaced: Bool, isPolling: Bool
  ) -> DirectoryChange {
    if news == .replaced { return .replaced }
    // A handler that waits too long has lost notices, as with a full queue of the kernel.
    return !isPolling ? .lost : wasReplaced ? .replaced : .polled
  }

  /// Ends the watch.
  package func stop() { folder.stop() }

  deinit { stop() }
}
