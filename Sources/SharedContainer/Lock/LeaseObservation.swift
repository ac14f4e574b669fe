internal import Syscalls

/// A waiter's judgement of whether a lock's holder still runs.
///
/// It does not when its mark has stood still for a lease, on the waiter's own clock, while the
/// waiter itself was awake.
struct LeaseObservation<Mark: Equatable> {
  let lease: Duration
  private var mark: Mark?
  /// For how long it has stood still, as far as the waiter was awake to see it.
  private(set) var stood = Duration.zero
  private var lastLook: Instant

  init(lease: Duration, now: Instant) {
    self.lease = lease
    lastLook = now
  }

  /// How long to wait until the next look.
  var interval: Duration { min(lease / 8, .milliseconds(25)) }

  /// Notes what is in the mark now; true when it has stood still for longer than the lease.
  ///
  /// Between two looks that are far apart the waiter was suspended itself, or so starved that the
  /// holder may have been too: of that time no more than a quarter of the lease counts.
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
