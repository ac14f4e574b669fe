internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Lanes of calls that would wait for each other: the calls of a lane are made in sequence, on a
/// single thread.
///
/// However many tasks wait for a lock, only one thread waits.
final class CallLanes: Sendable {
  static let waiting = CallLanes(.waiting)
  static let holding = CallLanes(.holding)

  private struct WaitingCall {
    let call: Action
    let deadline: Instant
    let expire: Action
  }

  private struct State {
    /// The waiting calls of each lane in use.
    var lanes: [ObjectIdentifier: [WaitingCall]] = [:]
    /// The moment of the next check for passed deadlines: a single alarm, however many calls are
    /// made before the alarm rings.
    var alarm: Instant?
  }

  private let state = Monitor(State())
  private let threads: CallThreads
  private let ring: @Sendable (_ pause: Duration, _ body: @escaping @Sendable () -> Void) -> Void

  /// - Parameter ring: calls a closure after a time.
  init(
    _ threads: CallThreads,
    ring: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Void = {
      CallThreads.background.add(at: .now + $0, $1)
    }
  ) {
    self.threads = threads
    self.ring = ring
  }

  /// Adds a call, which is made when its turn comes.
  ///
  /// - Parameters:
  ///   - deadline: the end of the wait for other calls of the lane.
  ///   - expire: is called if the deadline passes before the turn.
  func add(
    _ lane: ObjectIdentifier, until deadline: Instant, _ call: @escaping @Sendable () -> Void,
    expire: @escaping @Sendable () -> Void
  ) {
    let (isFirst, alarm) = state.withLock { state -> (Bool, Instant?) in
      guard state.lanes[lane] != nil else {
        state.lanes[lane] = []
        return (true, nil)
      }
      state.lanes[lane]?.append(
        WaitingCall(call: Action(call), deadline: deadline, expire: Action(expire)))
      guard deadline < state.alarm ?? .distantFuture else { return (false, nil) }
      state.alarm = deadline
      return (false, deadline)
    }
    if let alarm { setAlarm(alarm) }
    guard isFirst else { return }
    threads.add {
      call()
      while let next = self.next(lane) { next.perform() }
    }
  }

  private func next(_ lane: ObjectIdentifier) -> Action? {
    state.withLock { state in
      if state.lanes[lane]?.isEmpty != false {
        state.lanes[lane] = nil
        return nil
      }
      return state.lanes[lane]?.removeFirst().call
    }
  }

  private func setAlarm(_ moment: Instant) {
    ring(moment - .now) { [self] in expire(moment) }
  }

  /// Ends the calls whose deadline has passed, and sets the alarm for the next deadline.
  private func expire(_ moment: Instant) {
    let (late, next) = state.withLock { state -> ([WaitingCall], Instant?) in
      // An earlier alarm has replaced the current alarm.
      guard state.alarm == moment else { return ([], nil) }
      let now = Instant.now
      var late: [WaitingCall] = []
      var next = Instant.distantFuture
      for (lane, waiting) in state.lanes {
        let isLate = waiting.filter { $0.deadline <= now }
        next = waiting.reduce(next) { $1.deadline <= now ? $0 : min($0, $1.deadline) }
        guard !isLate.isEmpty else { continue }
        late += isLate
        state.lanes[lane]?.removeAll { $0.deadline <= now }
      }
      // Many calls must not have one alarm each.
      state.alarm = next == .distantFuture ? nil : max(next, now + .milliseconds(10))
      return (late, state.alarm)
    }
    for waiting in late { waiting.expire.perform() }
    if let next { setAlarm(next) }
  }
}
