package import WormholeSyscalls

/// Runs a task after each trigger: one run at a time, and another run if a trigger arrived during
/// the last one.
///
/// After every trigger, a run begins. The thread that triggers the worker does not wait for the
/// run: handlers of the watcher use workers for long tasks.
///
/// A worker has an alarm: a trigger at a moment. The clock is set only for a moment earlier than
/// all moments already set. If the owner's task sets its next moment in each run, a distant moment
/// would otherwise cause ever more alarms and runs without a result.
package final class Worker: Sendable {
  private enum Phase { case idle, scheduled, running }

  private struct State {
    var task: (@Sendable () -> Void)?
    var isAsked: (@Sendable () -> Bool)?
    var phase = Phase.idle
    /// Whether a trigger has arrived since the last run began.
    var isTriggered = false
    /// The moments for which the clock is set; the earliest is the last.
    var alarms: [Instant] = []

    /// Returns the task of the next run; nil if no run is due.
    mutating func next() -> (@Sendable () -> Void)? {
      guard isTriggered, let task else {
        phase = .idle
        return nil
      }
      (phase, isTriggered) = (.running, false)
      return task
    }
  }

  private let state = Monitor(State())
  private let followsNotices: Bool
  private let soon: Runner
  private let now: @Sendable () -> Instant
  private let ring: @Sendable (Instant, @escaping @Sendable () -> Void) -> Void

  /// Makes a call soon, and does not wait for the call.
  package typealias Runner = @Sendable (@escaping @Sendable () -> Void) -> Void

  /// - Parameters:
  ///   - followsNotices: whether a run with a notice as its trigger is made on the notifying
  ///     thread, if this thread can accept it: see ``Watcher/afterwards(_:)``.
  ///   - soon: makes the call that runs the task.
  ///   - now: reads the clock of the alarm.
  ///   - ring: calls a closure at a moment of this clock, on a thread on which the task may run.
  package init(
    followsNotices: Bool = false, soon: @escaping Runner, now: @escaping @Sendable () -> Instant,
    ring: @escaping @Sendable (Instant, @escaping @Sendable () -> Void) -> Void
  ) {
    self.followsNotices = followsNotices
    self.soon = soon
    self.now = now
    self.ring = ring
  }

  /// A worker without an alarm, whose task runs on a free thread of the watcher.
  package convenience init() {
    self.init {
      Watcher.shared.soon($0)
    } now: {
      .now
    } ring: { _, _ in
      preconditionFailure("this worker has no alarm")
    }
  }

  /// Sets the task; earlier triggers have no effect.
  ///
  /// - Parameter isAsked: returns whether the result of the task is wanted; nil for always.
  package func begin(
    isAsked: (@Sendable () -> Bool)? = nil, _ task: @escaping @Sendable () -> Void
  ) {
    state.withLock { ($0.task, $0.isAsked) = (task, isAsked) }
  }

  /// Whether a trigger is unnecessary.
  ///
  /// Either the worker runs, and will look for more work before it ends; or the result is not
  /// wanted, and a later request for it will trigger the worker.
  package var isBusy: Bool {
    let (isIdle, isAsked) = state.withLock { ($0.phase == .idle, $0.isAsked) }
    return !isIdle || isAsked?() == false
  }

  package func trigger() {
    let begins = state.withLock { state in
      state.isTriggered = true
      guard state.phase == .idle, state.task != nil else { return false }
      state.phase = .scheduled
      return true
    }
    if begins { schedule() }
  }

  private func schedule() {
    let run = { @Sendable in self.runScheduled() }
    if followsNotices, Watcher.shared.afterwards(run) { return }
    soon(run)
  }

  /// Triggers the worker at a moment.
  ///
  /// - Returns: false if the clock is set for an earlier moment already; the run at that moment may
  ///   set the clock again.
  @discardableResult
  package func trigger(at moment: Instant) -> Bool {
    let isEarliest = state.withLock { state in
      guard state.task != nil, state.alarms.last.map({ moment < $0 }) ?? true else { return false }
      state.alarms.append(moment)
      return true
    }
    guard isEarliest else { return false }
    ring(moment) { [weak self] in
      guard let self else { return }
      runAlarm(of: moment)
    }
    return true
  }

  /// Runs the task on the thread of the alarm: no second thread need wake up.
  private func runAlarm(of moment: Instant) {
    perform(
      state.withLock { state -> (@Sendable () -> Void)? in
        state.alarms.removeAll { $0 == moment }
        state.isTriggered = true
        return state.phase == .idle ? state.next() : nil
      })
  }

  /// As ``trigger(at:)``, a second from now by the clock of the alarm: the pause before another
  /// attempt of a failed task, as no notice reports that the attempt can succeed.
  package func retry() { trigger(at: now() + .seconds(1)) }

  /// Runs the task on the calling thread, once a run in progress has ended.
  package func run() {
    let task = state.wait(until: nil) { state -> (@Sendable () -> Void)?? in
      guard state.phase != .running else { return nil }
      state.isTriggered = true
      return .some(state.next())
    }
    perform(task ?? nil)
  }

  private func runScheduled() {
    // The caller of `run()` may have taken the run over.
    perform(state.withLock { $0.phase == .scheduled ? $0.next() : nil })
  }

  private func perform(_ first: (@Sendable () -> Void)?) {
    var task = first
    while let next = task {
      next()
      task = state.signal { $0.next() }
    }
  }

  /// Releases the task: no run begins any more.
  ///
  /// Does not wait for a run in progress: see ``drain()``.
  package func end() {
    // Released after the lock.
    let released = state.withLock { ($0.task.take(), $0.isAsked.take()) }
    withExtendedLifetime(released) {}
  }

  /// Waits until no run is in progress; a run must not call this.
  package func drain() {
    let _: Void? = state.wait(until: nil) { $0.phase == .running ? nil : () }
  }
}
