internal import WormholeSyscalls

/// How to wait for a lock, and how long to hold it.
package struct LockPolicy: Sendable {
  // The initializer of `Options` has the same default lease; a test compares the two.
  package static let defaultLease = Duration.seconds(1)
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
