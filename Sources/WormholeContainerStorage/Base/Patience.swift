internal import Synchronization
package import WormholeSyscalls

/// The timeout of a call, and a cancellation that may end the wait earlier.
package struct Patience: Sendable {
  package var deadline: Instant?
  package var cancellation: CancellationFlag?

  package init(until deadline: Instant? = nil, cancellation: CancellationFlag? = nil) {
    self.deadline = deadline
    self.cancellation = cancellation
  }

  /// The timeout of a call that begins now.
  package init(within timeout: Duration, cancellation: CancellationFlag? = nil) {
    self.init(until: .now + timeout, cancellation: cancellation)
  }

  package static let unlimited = Patience()
}

/// A request from another thread to end a wait.
///
/// Waiters check for it every few milliseconds.
package final class CancellationFlag: Sendable {
  private let wanted = Atomic<Bool>(false)

  package init() {}

  package func cancel() { wanted.store(true, ordering: .relaxed) }
  package var isCancelled: Bool { wanted.load(ordering: .relaxed) }
}
