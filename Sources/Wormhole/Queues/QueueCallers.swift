package import WormholeSyscalls

/// A worker of a queue without tasks.
package struct QueueCallers: Sendable {
  let worker: FollowingWorker

  /// Waits on the calling thread; nil once the worker has stopped, or at the deadline.
  package func next(until deadline: Instant) -> Message? { worker.next(until: deadline) }

  package func stop() { worker.stop() }
}

extension QueueWorker {
  /// Waits on the calling thread for the next message; nil once the worker has stopped, or at the
  /// deadline.
  func next(until deadline: Instant) -> Message? {
    let (ticket, isOver) = (newTicket, Monitor(false))
    ask(ticket) { isOver.signal { $0 = true } }
    let _: Bool? = isOver.wait(until: deadline) { $0 ? true : nil }
    return state.withLock { state in
      _ = state.takeAsking(ticket)
      return state.handed.removeValue(forKey: ticket)
    }
  }
}
