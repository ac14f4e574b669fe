internal import WormholeSyscalls

/// How long the heartbeat of a lock's holder may stop before waiters take the lock over.
///
/// Usable from the default arguments of public functions: the initializer of `Options` names the
/// default time.
@usableFromInline package enum Lease {
  /// The lease if the options of a container state no other.
  ///
  /// Running holders renew their heartbeat as often as this lease requires, unless theirs is
  /// shorter.
  @usableFromInline package static let defaultTime = Duration.seconds(1)
}

/// How to wait for a lock, and how long to hold it.
package struct LockPolicy: Sendable {
  package static let defaultCap = Duration.seconds(10)

  /// How long the heartbeat of a holder may stop before waiters supersede the holder; nil: forever.
  package let lease: Duration?
  /// How long the mark of a running holder is renewed, in nanoseconds; nil: as long as it holds the
  /// lock.
  let cap: Int64?
  /// Whether to determine if another process has held the lock since the last tenure.
  var asksWhoWasLast = false
  /// Whether a missing directory or lock is made.
  var makesMissing = true

  package init(lease: Duration?, cap: Duration?) {
    self.lease = lease
    self.cap = cap?.inNanoseconds
  }
}
