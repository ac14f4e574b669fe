internal import Syscalls

/// A watch on whichever directory has a name: it goes on when that one is removed, moved away or
/// replaced.
///
/// It is an ear at a directory of the container's ``WatchTree``.
package final class NamedWatch: Sendable {
  private let tree: WatchTree
  private let ear: WatchTree.Ear
  private let node: WatchTree.Node

  /// Begins to watch; the directory need not be there yet.
  ///
  /// The handlers look for themselves. They run on threads of the watcher's and must not wait.
  ///
  /// - Parameters:
  ///   - path: the names that lead to the directory, from the container's own.
  ///   - mask: what is to be heard of those in the directory.
  ///   - name: the one name in the directory to be told of; nil for all.
  ///   - pauses: whether it may pause: see ``pause()``.
  ///   - ended: is called at most once, and then nothing more is: the container is no longer the
  ///     one at its path.
  init(
    _ container: Container, _ path: [String], _ mask: InotifyMask, name: String? = nil,
    pauses: Bool = false, ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in },
    _ handler: @escaping @Sendable (Watcher.Signal) -> Void
  ) throws(Errno) {
    tree = container.watchTree()
    ear = WatchTree.Ear(mask, name: name, pauses: pauses, ended: ended, handler)
    node = try tree.add(ear, at: path)
  }

  /// Makes a call as the handler is called: not once it has been stopped.
  func call(_ body: () -> Void) { ear.gate.call(body) }

  /// Whether it looks again and again, because inotify cannot serve it.
  package var isPolling: Bool { tree.isPolling(node) }

  /// Has no names in the directory told, for a listener that will look of its own accord before it
  /// resumes; false if that cannot be.
  ///
  /// Each notice wakes a thread, and the one who makes the change pays for that too.
  package func pause() -> Bool { tree.pause(node) }

  /// Has everything told again; what happened meanwhile is not: look once this has returned.
  package func resume() { tree.resume(node) }

  /// Ends it; once this has returned, the handler is not called again.
  ///
  /// A call under way on another thread is waited for.
  package func stop() {
    ear.gate.close()
    tree.remove(ear, at: node)
    ear.gate.drain()
  }

  deinit { stop() }
}
