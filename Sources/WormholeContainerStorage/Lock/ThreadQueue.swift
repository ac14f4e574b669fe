internal import WormholeSyscalls

/// The queue of a process's own threads before a lock: first come, first served.
final class ThreadQueue: Sendable {
  private struct State {
    var isTaken = false
    var next = 0
    var queue: [Int] = []
  }

  private let monitor = Monitor(State())

  /// Waits for the thread's turn; false if the deadline passed or the wait was cancelled first.
  func take(_ patience: Patience, now: () -> Instant) -> Bool {
    let ticket: Int? = monitor.withLock { state in
      if !state.isTaken, state.queue.isEmpty {
        state.isTaken = true
        return nil
      }
      state.next += 1
      state.queue.append(state.next)
      return state.next
    }
    guard let ticket else { return true }
    while true {
      let look = min(patience.deadline ?? .distantFuture, .now + .milliseconds(25))
      let isMine = monitor.wait(until: look) { state -> Bool? in
        guard !state.isTaken, state.queue.first == ticket else { return nil }
        state.queue.removeFirst()
        state.isTaken = true
        return true
      }
      if isMine == true { return true }
      guard patience.hasEnded(at: now()) else { continue }
      monitor.signal { $0.queue.removeAll { $0 == ticket } }
      return false
    }
  }

  /// Takes the turn if the turn is free and no thread waits.
  func tryTake() -> Bool {
    monitor.withLock { state in
      guard !state.isTaken, state.queue.isEmpty else { return false }
      state.isTaken = true
      return true
    }
  }

  func giveBack() {
    monitor.withLock { state in
      state.isTaken = false
      if !state.queue.isEmpty { monitor.broadcast() }
    }
  }
}

extension Patience {
  func hasEnded(at now: Instant) -> Bool {
    if let cancellation, cancellation.isCancelled { return true }
    if let deadline { return now >= deadline }
    return false
  }
}
