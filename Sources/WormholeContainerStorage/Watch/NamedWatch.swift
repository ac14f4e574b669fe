internal import WormholeSyscalls

/// A watch on whichever directory has a name: it continues when the directory is removed, moved
/// away or replaced.
///
/// The watch is a listener in the container's ``WatchTree``.
package final class NamedWatch: NoticeSource {
  private let tree: WatchTree
  private let ear: WatchTree.WatchObserver
  private let node: WatchTree.WatchedDirectory

  /// Starts to watch; the directory need not exist yet.
  ///
  /// The handlers read the directory themselves. They run on threads of the watcher and must not
  /// wait.
  ///
  /// - Parameters:
  ///   - path: the names that lead to the directory, from the container's own.
  ///   - mask: the events in the directory that are reported.
  ///   - name: the only name in the directory that is reported; nil for all names.
  ///   - pauses: whether the watch may pause: see ``pause()``.
  ///   - ended: called at most once, as the last call: the container is no longer the one at its
  ///     path.
  init(
    _ container: Container, _ path: [String], _ mask: InotifyMask, name: String? = nil,
    pauses: Bool = false, ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in },
    _ handler: @escaping @Sendable (WatchSignal) -> Void
  ) throws(Errno) {
    tree = container.watchTree()
    ear = WatchTree.WatchObserver(mask, name: name, pauses: pauses, ended: ended, handler)
    node = try tree.add(ear, at: path)
  }

  /// Calls the body as the handler would be called: never after ``stop()``.
  package func call(_ body: () -> Void) { ear.gate.call(body) }

  /// Whether the watch is polled, because inotify cannot serve it.
  package var isPolling: Bool { tree.isPolling(node) }

  /// Stops the notices of names in the directory, for a listener that reads the directory before it
  /// resumes; false if pausing is not possible.
  ///
  /// Each notice wakes a thread, and the process that makes the change pays for that too.
  package func pause() -> Bool { tree.pause(node) }

  /// Resumes all notices.
  ///
  /// Changes during the pause are not reported: read the directory after this call.
  package func resume() { tree.resume(node) }

  /// Ends the watch; once this has returned, the handler is not called again.
  ///
  /// Waits for a call in progress on another thread.
  package func stop() {
    ear.gate.close()
    tree.remove(ear, at: node)
    ear.gate.drain()
  }

  deinit { stop() }
}
