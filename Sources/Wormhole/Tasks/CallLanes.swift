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
  }

  private let state = Monitor(State())
  private let threads: CallThreads
  private let worker: Worker

  /// - Parameter worker: ends the calls whose deadline has passed.
  init(_ threads: CallThreads, _ worker: Worker = Worker(staysOffWatcher: true)) {
    self.threads = threads
    self.worker = worker
    worker.begin { [weak self] in self?.expire() }
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
    let isFirst = state.withLock { state in
      guard state.lanes[lane] != nil else {
        state.lanes[lane] = []
        return true
      }
      state.lanes[lane]?.append(
        WaitingCall(call: Action(call), deadline: deadline, expire: Action(expire)))
      return false
    }
    guard isFirst else {
      if deadline < .distantFuture { worker.trigger(at: deadline) }
      return
    }
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

  /// Ends the calls whose deadline has passed, and sets the alarm for the next deadline.
  private func expire() {
    let (late, next) = state.withLock { state -> ([WaitingCall], Instant) in
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
      return (late, max(next, now + .milliseconds(10)))
    }
    for waiting in late { waiting.expire.perform() }
    if next < .distantFuture { worker.trigger(at: next) }
  }
}
