package import Syscalls

/// What a change survives once the call that made it has returned.
@nonexhaustive
public enum Durability: Hashable, Sendable {
  /// The death of any process. A power cut may cost the last moments, never the value.
  case process
  /// A power cut too.
  case power
}

/// How a container is opened.
package struct ContainerOptions: Sendable {
  package var sharing = Sharing.owner
  /// How long a holder's mark may stand still before others take the lock over.
  package var lease = Duration.seconds(1)
  /// For how long a running update may keep the lock.
  package var cap = Duration.seconds(10)
  /// The largest file that is written, or read.
  package var largestFile = 64 << 20
  /// How old the earlier value that is kept for a power cut may become (P7).
  package var keptAge = Duration.seconds(1)
  /// Whether nothing but reading is meant: then what only writers need is not seen to.
  package var isForReading = false
  package var environment = Environment()

  package init() {}

  /// The lease by which running holders show themselves: no longer than the usual one.
  ///
  /// Others may have the usual one where this process is more patient, and ask for less before they
  /// take a lock over.
  var shownLease: Duration { min(lease, .seconds(1)) }
}

/// For how long a call waits, and what may end the wait earlier.
package struct Patience: Sendable {
  package var deadline: Instant?
  package var cancellation: Cancellation?

  package init(until deadline: Instant? = nil, cancellation: Cancellation? = nil) {
    self.deadline = deadline
    self.cancellation = cancellation
  }

  package static let unlimited = Patience()
}
