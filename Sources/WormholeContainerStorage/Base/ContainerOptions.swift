package import WormholeSyscalls

/// The failures that a change survives once the call has returned.
@nonexhaustive
public enum Durability: Hashable, Sendable {
  /// The death of any process. A power cut may cost the last changes, never the value.
  case process
  /// A power cut too.
  case power
}

/// Makes a call at a moment or later, on another thread.
package typealias CallLater =
  @Sendable (_ moment: Instant, _ call: @escaping @Sendable () -> Void) -> Void

/// Options for opening a container.
@usableFromInline package struct ContainerOptions: Sendable {
  package var sharing = Sharing.owner
  /// How long a holder's heartbeat may stop before waiters take the lock over.
  package var lease = Lease.defaultTime
  /// How long a running update may hold the lock.
  package var cap = LockPolicy.defaultCap
  /// The largest file that is written or read.
  package var largestFile = Self.defaultLargestFile
  /// The maximum age of the previous value that is retained for a power cut (P7).
  package var keptAge = Duration.seconds(1)
  /// Makes a call that may take long, at a moment or later, on another thread.
  ///
  /// Nil: values are not saved after their commits, and a change syncs its own file more often.
  package var callLater: CallLater?
  /// Whether the caller only reads: preparations for writers are left out.
  package var isForReading = false
  package var environment = Environment()

  /// The size limit if the options of a container state no other.
  @usableFromInline package static let defaultLargestFile = 64 << 20

  package init() {}

  /// The lease by which running holders renew their heartbeat: at most the default lease.
  ///
  /// A longer lease of this process does not bind other processes: with the default lease they take
  /// a lock over sooner.
  var shownLease: Duration { min(lease, Lease.defaultTime) }
}
