internal import Syscalls

/// A waiter's judgement of whether a lock's holder still runs.
///
/// It does not when its mark has stood still for a lease, on the waiter's own clock, while the
/// waiter itself was awake.
struct LeaseObservation<Mark: Equatable> {
  let lease: Duration
  private var mark: Mark?
  private var since: Instant
  private var lastLook: Instant

  init(lease: Duration, now: Instant) {
    self.lease = lease
    since = now
    lastLook = now
  }

  /// How long to wait until the next look.
  var interval: Duration { min(lease / 8, .milliseconds(25)) }

  /// Notes what is in the mark now; true when it has stood still for longer than the lease.
  ///
  /// A waiter that has not looked for half a lease was suspended itself, or so starved that the
  /// holder may have been too: its count begins again.
  mutating func stoodStill(_ seen: Mark, at now: Instant) -> Bool {
    let slept = now - lastLook > lease / 2 + interval
    lastLook = now
    if slept || mark != seen {
      mark = seen
      since = now
      return false
    }
    return now - since > lease
  }
}
