internal import WormholeSyscalls

/// The arrivals for a member as an asynchronous sequence, with one element at a time.
///
/// An element counts as handled when the loop requests the next one. Elements that were not
/// handled when the process ended are redelivered to the next process. The sequence ends when the
/// task is cancelled.
public struct Arrivals<Element: Sendable>: AsyncSequence, Sendable {
  /// The error that iterating throws.
  public typealias Failure = WormholeError

  let begin: @Sendable (Rendezvous<Element>) throws(WormholeError) -> any Stoppable

  /// Begins to listen.
  public func makeAsyncIterator() -> Iterator {
    Iterator(
      Result { () throws(WormholeError) in
        try TaskPool.start("wait for", "arrivals")
        let handover = Rendezvous<Element>()
        handover.keep(try begin(handover))
        return StopOnRelease(handover)
      })
  }

  /// One listener, for one task.
  public struct Iterator: AsyncIteratorProtocol {
    /// Nil once the error of a failed start was thrown.
    private var handover: Result<StopOnRelease<Rendezvous<Element>>, WormholeError>?

    fileprivate init(_ handover: Result<StopOnRelease<Rendezvous<Element>>, WormholeError>) {
      self.handover = handover
    }

    /// Returns the next element; nil when the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WormholeError) -> Element? {
      guard let handover = try self.handover.getFailingOnce() else { return nil }
      return await handover.one.next()
    }
  }
}

/// Hands elements from a thread to a waiting task: singly, without a buffer.
final class Rendezvous<Element: Sendable>: Stoppable {
  private struct State {
    var offered: Element?
    /// The number of offered elements, and of elements that the task has handled.
    var offers = 0
    var done = 0
    var isClaimed = false
    var waiter: CheckedContinuation<Element?, Never>?
    var isStopped = false
    /// The listener that offers elements.
    var listener: (any Stoppable)?
  }

  private let state = Monitor(State())
  private let owner = ProcessCopy.current

  /// Retains the offering listener, and ends with the listener.
  func keep(_ listener: any Stoppable) { state.withLock { $0.listener = listener } }

  /// Waits until the task has handled the element; returns false if the task never will.
  ///
  /// No two threads offer at the same time.
  func offer(_ element: Element) -> Bool {
    let (number, waiter) = state.withLock { state in
      state.offers += 1
      let waiter = state.waiter.take()
      if waiter == nil { state.offered = element } else { state.isClaimed = true }
      return (state.offers, waiter)
    }
    waiter?.resume(returning: element)
    let isDone = state.wait(until: nil) { state -> Bool? in
      if state.done >= number { return true }
      return state.isStopped ? false : nil
    }
    return isDone ?? false
  }

  /// Returns the next element; nil when the handover was stopped.
  func next() async -> Element? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let now = state.signal { state -> Element?? in
          if state.isClaimed {
            state.isClaimed = false
            state.done = state.offers
          }
          if state.isStopped { return .some(nil) }
          if let offered = state.offered.take() {
            state.isClaimed = true
            return .some(offered)
          }
          state.waiter = continuation
          return nil
        }
        if let now { continuation.resume(returning: now) }
      }
    } onCancel: {
      end()
    }
  }

  /// Ends the handover before the listener: stopping the listener waits for an offer in progress.
  func stop() {
    guard owner.isCurrent else { return }
    end()
    state.withLock { $0.listener.take() }?.stop()
  }

  /// Ends the handover: the task has stopped iterating, or no more elements will be offered.
  func end() {
    let waiter = state.signal { state in
      state.isStopped = true
      return state.waiter.take()
    }
    waiter?.resume(returning: nil)
  }
}
