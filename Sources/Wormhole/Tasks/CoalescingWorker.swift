internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Runs the work of a receiver after each trigger: one run at a time, and another run if a trigger
/// came during the last one.
///
/// The work runs on the thread that noticed a message, after this thread has notified all
/// listeners: no second thread need wake up. If the noticing thread may not run the work, or the
/// trigger comes from another thread, the work runs on a queue.
final class CoalescingWorker: Sendable {
  private struct State {
    var isRunning = false
    var isKicked = false
    var body: (@Sendable () -> Int64?)?
    var isAsked: (@Sendable () -> Bool)?
    /// The moments at which the clock will trigger the worker.
    var alarms = Alarms()
  }

  private let state = Monitor(State())
  private let queue = WorkQueue()
  private let staysOnQueue: Bool
  private let time: MailTime

  /// - Parameter staysOnQueue: whether the body may wait for other threads.
  init(staysOnQueue: Bool, _ time: MailTime = MailTime()) {
    self.staysOnQueue = staysOnQueue
    self.time = time
  }

  /// - Parameters:
  ///   - isAsked: returns whether the result of the work is wanted; nil for always.
  ///   - body: does the work, and returns the moment of the next work.
  func begin(
    isAsked: (@Sendable () -> Bool)? = nil, _ body: @escaping @Sendable () -> Int64?
  ) {
    state.withLock { state in
      state.body = body
      state.isAsked = isAsked
    }
    kick()
  }

  /// Whether a trigger is unnecessary.
  ///
  /// Either the worker runs, and will look for more work before it ends; or the result is not
  /// wanted, and a later request for it will trigger the worker.
  var isBusy: Bool {
    let (isRunning, isAsked) = state.withLock { ($0.isRunning, $0.isAsked) }
    return isRunning || isAsked?() == false
  }

  /// Releases the body; does not wait for a run in progress.
  func end() {
    state.withLock { state in
      state.body = nil
      state.isAsked = nil
    }
  }

  func kick() {
    let body = state.withLock { state -> (@Sendable () -> Int64?)? in
      state.isKicked = true
      guard !state.isRunning, let body = state.body else { return nil }
      state.isRunning = true
      return body
    }
    guard let body else { return }
    if staysOnQueue {
      queue.soon { self.run(body) }
    } else {
      queue.afterTelling { self.run(body) }
    }
  }

  private func run(_ body: @Sendable () -> Int64?) {
    while true {
      state.withLock { $0.isKicked = false }
      let due = body()
      let isOver = state.withLock { state in
        if state.isKicked, state.body != nil { return false }
        state.isRunning = false
        return true
      }
      guard isOver else { continue }
      if let due { kick(at: due) }
      return
    }
  }

  private func kick(at due: Int64) {
    guard state.withLock({ $0.alarms.add(due) }) else { return }
    time.ring(at: Instant(nanoseconds: due), on: queue) { [weak self] in
      guard let self else { return }
      state.withLock { $0.alarms.remove(due) }
      kick()
    }
  }
}
