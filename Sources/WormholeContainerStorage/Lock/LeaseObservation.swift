internal import WormholeSyscalls

/// A waiter's decision whether a lock's holder still runs.
///
/// The holder counts as suspended if its heartbeat has stopped for a lease, by the waiter's own
/// clock, while the waiter itself ran.
struct LeaseObservation<Mark: Equatable> {
  let lease: Duration
  private var mark: Mark?
  /// How long the heartbeat has stopped, as far as the waiter ran and could check.
  private(set) var stood = Duration.zero
  private var lastLook: Instant

  init(lease: Duration, now: Instant) {
    self.lease = lease
    lastLook = now
  }

  /// The time until the next check.
  var interval: Duration { min(lease / 8, .milliseconds(25)) }

  /// Records the present mark; returns true if the mark has not changed for longer than the lease.
  ///
  /// If two checks are far apart, the waiter was suspended itself, or so starved that the holder
  /// may have been starved too: no more than a quarter of the lease counts of this time.
  mutating func stoodStill(_ seen: Mark, at now: Instant) -> Bool {
    let awake = min(now - lastLook, lease / 4)
    lastLook = now
    if mark != seen {
      mark = seen
      stood = .zero
      return false
    }
    stood += awake
    return stood > lease
  }
}
