internal import WormholeSyscalls

/// The queue of a process's own threads before a lock: first come, first served.
///
/// Whoever gives the turn back wakes the next thread, and no other: of a thousand waiting threads,
/// all would otherwise wake at each turn.
final class ThreadQueue: Sendable {
  private final class Waiter: Sendable {
    /// Whether the turn was handed to this thread.
    let hasTurn = Monitor(false)
  }

  private struct State {
    var isTaken = false
    var queue: [Waiter] = []
  }

  private let monitor = Monitor(State())

  /// The number of threads that wait for their turn, for tests.
  var waitingCount: Int { monitor.withLock { $0.queue.count } }

  /// Waits for the thread's turn; false if the deadline passed or the wait was cancelled first.
  func take(_ patience: Patience) -> Bool {
    let waiting = monitor.withLock { state -> (waiter: Waiter, before: Int)? in
      guard state.isTaken else {
        state.isTaken = true
        return nil
      }
      let waiter = Waiter()
      defer { state.queue.append(waiter) }
      return (waiter, state.queue.count)
    }
    guard let (waiter, before) = waiting else { return true }
    // A thread that is far behind looks less often whether its wait was cancelled.
    let tick = Duration.milliseconds(25) * min(40, 1 + before / 8)
    while true {
      let look = min(patience.deadline ?? .distantFuture, .now + tick)
      if waiter.hasTurn.wait(until: look, { $0 ? true : nil }) == true { return true }
      guard patience.hasEnded(at: .now) else { continue }
      let hasLeft = monitor.withLock { state in
        guard let index = state.queue.firstIndex(where: { $0 === waiter }) else { return false }
        state.queue.remove(at: index)
        return true
      }
      // Otherwise the turn was handed over at this moment.
      if !hasLeft { giveBack() }
      return false
    }
  }

  /// Takes the turn if the turn is free.
  func tryTake() -> Bool {
    monitor.withLock { state in
      guard !state.isTaken else { return false }
      state.isTaken = true
      return true
    }
  }

  func giveBack() {
    let next = monitor.withLock { state -> Waiter? in
      guard state.queue.isEmpty else { return state.queue.removeFirst() }
      state.isTaken = false
      return nil
    }
    next?.hasTurn.signal { $0 = true }
  }
}

extension Patience {
  func hasEnded(at now: Instant) -> Bool {
    if let cancellation, cancellation.isCancelled { return true }
    if let deadline { return now >= deadline }
    return false
  }
}
