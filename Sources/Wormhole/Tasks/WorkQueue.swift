package import WormholeSyscalls

/// A serial queue of the library, on the threads of ``CallThreads/background``.
///
/// A Dispatch queue in its place would end the process if its first timer gets no descriptor, and
/// would block each caller as long as no thread can be started. In a forked child this queue starts
/// empty, and makes the calls that are added in the child.
package final class WorkQueue: CallQueue {
  private struct State {
    var calls = CallLine()
    /// The calls whose moment has not come.
    var later = LaterCalls()
    /// Whether a thread makes calls, and whether a thread was requested.
    var isRunning = false
    var isScheduled = false
    let owner = ProcessCopy.current

    /// Counts the request of a thread; false if a thread makes the calls or is requested already.
    mutating func requestThread() -> Bool {
      guard !isRunning, !isScheduled else { return false }
      isScheduled = true
      return true
    }
  }

  private let state = Monitor(State())

  package init() {}

  package func soon(_ call: @escaping @Sendable () -> Void) {
    if add(call) { schedule() }
  }

  package func later(_ moment: Instant, _ call: @escaping @Sendable () -> Void) {
    renew()
    state.withLock { _ = $0.later.add(Action(call), at: moment) }
    CallThreads.background.add(at: moment) {
      // The present thread can make the calls as well.
      if self.addDue() { self.run() }
    }
  }

  /// Adds the calls whose moment has come, in the order of the moments.
  ///
  /// Several threads may be called for moments in quick succession, and the thread for the last
  /// moment may be the first to run.
  private func addDue() -> Bool {
    renew()
    return state.withLock { state in
      var isAny = false
      while let call = state.later.takeDue() {
        state.calls.add(call)
        isAny = true
      }
      return isAny && state.requestThread()
    }
  }

  package func wait<Result>(for call: () -> Result) -> Result {
    renew()
    // In a forked child this does not wait: nothing else runs there.
    let _: Void? = state.wait(until: nil) { state in
      guard !state.isRunning else { return nil }
      state.isRunning = true
      return ()
    }
    let before = state.withLock { $0.calls.count }
    for _ in 0..<before { state.withLock { $0.calls.take() }?.perform() }
    defer {
      let isNeeded = state.signal { state in
        state.isRunning = false
        return state.calls.count > 0 && state.requestThread()
      }
      if isNeeded { schedule() }
    }
    return call()
  }

  /// - Returns: whether a thread has to be requested for the queue; the request is counted already.
  private func add(_ call: @escaping @Sendable () -> Void) -> Bool {
    renew()
    return state.withLock { state in
      state.calls.add(Action(call))
      return state.requestThread()
    }
  }

  /// Resets the state in a forked child: waiting calls are the parent's, and their thread does not
  /// exist.
  private func renew() {
    let inherited = state.withLock { state -> State? in
      guard !state.owner.isCurrent else { return nil }
      return exchange(&state, with: State())
    }
    // Released after the lock.
    withExtendedLifetime(inherited) {}
  }

  private func schedule() { CallThreads.background.add { self.run() } }

  private func run() {
    let begins = state.withLock { state in
      state.isScheduled = false
      return !exchange(&state.isRunning, with: true)
    }
    // The thread that runs the queue makes all calls.
    guard begins else { return }
    while let call = next() { call.perform() }
  }

  private func next() -> Action? {
    let call = state.withLock { state in
      let call = state.calls.take()
      if call == nil { state.isRunning = false }
      return call
    }
    if call == nil { state.broadcast() }
    return call
  }
}
