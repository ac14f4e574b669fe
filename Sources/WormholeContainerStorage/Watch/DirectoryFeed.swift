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
  package enum Change: Sendable, Equatable {
    /// These names; a name may be among them several times.
    case names([String])
    /// All names are new: the directory was made, or another one has its name.
    case replaced
    /// Any name may have changed: the directory is polled.
    case polled
    /// Any name: notices were lost.
    case lost
  }

  private let due = Monitor<Change>(.names([]))
  private let worker = Worker()
  private let watch = Monitor<NamedWatch?>(nil)

  /// - Parameters:
  ///   - path: the names that lead to the directory, from the container's own.
  ///   - handler: may wait, and may read files.
  package init(
    _ container: Container, _ path: [String], _ interest: Interest,
    _ handler: @escaping @Sendable (Change) -> Void
  ) throws(WormholeError) {
    worker.begin { [due] in
      let change = due.withLock { exchange(&$0, with: .names([])) }
      if change != .names([]) { handler(change) }
    }
    do throws(Errno) {
      let watch = try NamedWatch(container, path, interest.mask) { [weak self] in self?.hear($0) }
      self.watch.withLock { $0 = watch }
    } catch {
      throw container.watchError(error, "watch", path.last ?? "", path.joined(separator: "/"))
    }
  }

  private func hear(_ signal: Watcher.Signal) {
    let isPolling = watch.withLock { $0?.isPolling ?? false }
    due.withLock { due in
      switch (signal, due) {
      case (.changed(let more), .names(let names)):
        // A handler that waits too long has lost notices, as with a full queue of the kernel.
        due =
          names.count + more.count <= Watcher.Signal.most ? .names(names + more) : .lost
      case (.changed, _): break
      case (.lookAgain, .lost): break
      case (.lookAgain, .replaced) where isPolling: break
      case (.lookAgain, _): due = isPolling ? .polled : .lost
      case (.replaced, .lost), (.gone, _): break
      case (.replaced, _): due = .replaced
      }
    }
    worker.trigger()
  }

  /// Ends the watch.
  package func stop() { watch.withLock { $0.take() }?.stop() }

  deinit { stop() }
}
