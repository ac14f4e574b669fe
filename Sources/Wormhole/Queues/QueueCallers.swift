package import WormholeContainerStorage
package import WormholeSyscalls

/// A worker of a queue without tasks.
///
/// Swift's tasks need threads of Dispatch, which waits for ever where the system refuses a thread.
package struct QueueCallers: Sendable {
  let worker: FollowingWorker
  let subscription: Subscription

  /// Waits on the calling thread; nil once the worker has stopped, or at the deadline.
  package func next(until deadline: Instant?) -> Message? { worker.next(until: deadline) }

  /// Handles messages on the calling thread until the worker has stopped.
  ///
  /// The body's return and its errors have the meaning that they have in
  /// ``Queue/work(concurrency:handlingDeadline:_:)``.
  ///
  /// - Returns: the reason, if the container was removed or moved away.
  package func handle(_ body: (Message) throws -> Void) -> WormholeError? {
    while let message = next(until: nil) {
      // Claimed just before the stop.
      guard !worker.hasStopped else {
        message.requeue()
        break
      }
      do {
        try body(message)
        message.acknowledgeForSure()
      } catch {
        worker.settle(message, after: error)
      }
    }
    return subscription.wait()
  }

  package func stop() { subscription.stop() }
}

extension QueueWorker {
  /// Waits on the calling thread for the next message; nil once the worker has stopped, or at the
  /// deadline.
  func next(until deadline: Instant?) -> Message? {
    let (ticket, isOver) = (newTicket, Monitor(false))
    ask(ticket) { isOver.signal { $0 = true } }
    let _: Bool? = isOver.wait(until: deadline) { $0 ? true : nil }
    return state.withLock { state in
      _ = state.takeAsking(ticket)
      return state.handed.removeValue(forKey: ticket)
    }
  }
}
