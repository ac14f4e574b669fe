internal import Synchronization

/// A request from another thread to end a wait.
///
/// Waiters check for it every few milliseconds.
package final class CancellationFlag: Sendable {
  private let wanted = Atomic<Bool>(false)

  package init() {}

  package func cancel() { wanted.store(true, ordering: .relaxed) }
  package var isCancelled: Bool { wanted.load(ordering: .relaxed) }
}
