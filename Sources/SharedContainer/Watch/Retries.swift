internal import Syscalls

/// Has somebody look again and again, as long as it could not: nobody tells once more of what it
/// has missed.
package final class Retries: Sendable {
  private let watch = Monitor<Watch?>(nil)

  package init() {}

  /// - Parameter look: is called until this is ended; it must not wait.
  /// - Returns: whether it did not go on already.
  @discardableResult
  package func begin(_ look: @escaping @Sendable () -> Void) -> Bool {
    watch.withLock { watch in
      guard watch == nil else { return false }
      watch = Watcher.shared.poll { _ in look() }
      return true
    }
  }

  package func end() { watch.withLock { $0.take() }?.stop() }

  deinit { end() }
}
