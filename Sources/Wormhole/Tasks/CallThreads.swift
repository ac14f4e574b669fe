internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// Threads that wait for tasks: as many as are needed at once, up to a bound, and gone after a
/// while.
final class CallThreads: Sendable {
  /// For calls that may wait long.
  static let waiting = CallThreads(most: 64)
  /// For locks that tasks hold: as many as there are, since what they do while they hold them may
  /// need one of the others.
  static let holding = CallThreads(most: 4096)
  /// For calls that wait for nobody, and must not stand behind those that do.
  static let quick = CallThreads(most: 8)

  private struct State {
    private var coming: [Action] = []
    /// Those that came before them, the next one last: a call that is taken is not kept, however
    /// many wait behind it.
    private var next: [Action] = []
    var idle = 0
    var threads = 0

    var left: Int { coming.count + next.count }

    mutating func add(_ call: Action) { coming.append(call) }

    mutating func take() -> Action? {
      if next.isEmpty {
        if next.capacity > 64 { next = [] }
        swap(&coming, &next)
        next.reverse()
      }
      return next.popLast()
    }
  }

  private let state = Monitor(State())
  private let most: Int
  private let hire: @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void

  /// - Parameter hire: starts a thread, which ends by itself.
  init(
    most: Int,
    hire: @escaping @Sendable (_ body: @escaping @Sendable () -> Void) throws(Errno) -> Void = {
      body throws(Errno) in
      try Thread("wormhole-call", body).detach()
    }
  ) {
    self.most = most
    self.hire = hire
  }

  /// Has a call made on one of them.
  func add(_ call: @escaping @Sendable () -> Void) {
    let needsThread = state.signal { state in
      state.add(Action(call))
      guard state.left > state.idle, state.threads < most else { return false }
      state.threads += 1
      return true
    }
    guard needsThread else { return }
    do throws(Errno) {
      try hire { self.work() }
    } catch {
      // Out of threads: those that there are make it, or else this one, whoever waits for that.
      let own = state.withLock { state in
        state.threads -= 1
        return state.threads == 0 ? state.take() : nil
      }
      if let own { Self.$isBorrowed.withValue(true) { own.perform() } }
    }
  }

  /// Whether the call that is under way is made on the thread of whoever has asked for it, as no
  /// other could be had.
  @TaskLocal static var isBorrowed = false

  private func work() {
    while let call = next() { call.perform() }
  }

  private func next() -> Action? {
    let now = state.withLock { state -> Action? in
      if let call = state.take() { return call }
      state.idle += 1
      return nil
    }
    if let now { return now }
    let call = state.wait(until: .now + .seconds(1)) { state -> Action? in
      guard let call = state.take() else { return nil }
      // Here, as whoever comes next must not count on this thread.
      state.idle -= 1
      return call
    }
    if let call { return call }
    return state.withLock { state in
      state.idle -= 1
      // One may have come since patience ended.
      if let call = state.take() { return call }
      state.threads -= 1
      return nil
    }
  }
}

/// Calls that would wait for each other: one after the other, on one thread.
///
/// However many tasks wait for a lock, one thread does.
final class CallLanes: Sendable {
  static let waiting = CallLanes(.waiting)
  static let holding = CallLanes(.holding)

  private struct Waiting {
    let call: Action
    let deadline: Instant
    let expire: Action
  }

  private struct State {
    /// What waits in each lane that is in use.
    var lanes: [ObjectIdentifier: [Waiting]] = [:]
    /// When is looked next for those whose deadline has passed: one alarm, however many calls are
    /// made before it rings.
    var alarm: Instant?
  }

  private let state = Monitor(State())
  private let threads: CallThreads
  private let ring: @Sendable (_ pause: Duration, _ body: @escaping @Sendable () -> Void) -> Void

  /// - Parameter ring: does something after a time.
  init(
    _ threads: CallThreads,
    ring: @escaping @Sendable (Duration, @escaping @Sendable () -> Void) -> Void = {
      DispatchQueue.global().soon(after: $0, $1)
    }
  ) {
    self.threads = threads
    self.ring = ring
  }

  /// Has a call made once it is its turn.
  ///
  /// - Parameters:
  ///   - deadline: how long it waits for others of its lane.
  ///   - expire: is called if its turn has not come by then.
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
        Waiting(call: Action(call), deadline: deadline, expire: Action(expire)))
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

  /// Lets go of those whose deadline has passed, and sets the alarm for the next one.
  private func expire(_ moment: Instant) {
    let (late, next) = state.withLock { state -> ([Waiting], Instant?) in
      // An earlier one has taken its place.
      guard state.alarm == moment else { return ([], nil) }
      let now = Instant.now
      var late: [Waiting] = []
      var next = Instant.distantFuture
      for (lane, waiting) in state.lanes {
        let isLate = waiting.filter { $0.deadline <= now }
        next = waiting.reduce(next) { $1.deadline <= now ? $0 : min($0, $1.deadline) }
        guard !isLate.isEmpty else { continue }
        late += isLate
        state.lanes[lane]?.removeAll { $0.deadline <= now }
      }
      // Not one alarm for each of many.
      state.alarm = next == .distantFuture ? nil : max(next, now + .milliseconds(10))
      return (late, state.alarm)
    }
    for waiting in late { waiting.expire.perform() }
    if let next { setAlarm(next) }
  }
}
