internal import Synchronization

/// A wish, given from another thread, that a wait should end.
///
/// Waits look at it every few
/// milliseconds.
package final class Cancellation: Sendable {
  private let wanted = Atomic<Bool>(false)

  package init() {}

  package func cancel() { wanted.store(true, ordering: .relaxed) }
  package var isCancelled: Bool { wanted.load(ordering: .relaxed) }
}
