internal import Syscalls

extension Wormhole {
  /// What arrives for a member, one after the other, as an asynchronous sequence.
  ///
  /// Each element counts as handled when the loop asks for the next, and what has not been handled
  /// when the process ends is told again to the next one. It ends when the task is cancelled.
  public struct Arrivals<Element: Sendable>: AsyncSequence, Sendable {
    /// What iterating may throw.
    public typealias Failure = WormholeError

    let begin: @Sendable (Rendezvous<Element>) throws(WormholeError) -> any Sendable

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator {
      let handover = Rendezvous<Element>()
      let registration = Result { () throws(WormholeError) in try begin(handover) }
      return Iterator(Lifeline(handover, registration))
    }

    /// One listener, for one task.
    public struct Iterator: AsyncIteratorProtocol {
      private let lifeline: Lifeline<Element>
      private var hasFailed = false

      fileprivate init(_ lifeline: Lifeline<Element>) { self.lifeline = lifeline }

      /// The next one; nil when the task is cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(WormholeError) -> Element? {
        if case .failure(let error) = lifeline.registration {
          if hasFailed { return nil }
          hasFailed = true
          throw error
        }
        return await lifeline.handover.next()
      }
    }
  }
}

/// Ends the handing over when nobody iterates any more, and then the listening: that waits for what
/// is being handed over.
final class Lifeline<Element: Sendable>: Sendable {
  let handover: Rendezvous<Element>
  let registration: Result<any Sendable, WormholeError>
  private let owner = ProcessCopy.current

  init(_ handover: Rendezvous<Element>, _ registration: Result<any Sendable, WormholeError>) {
    self.handover = handover
    self.registration = registration
  }

  deinit { if owner.isCurrent { handover.stop() } }
}

/// A hand from a thread that has something to a task that asks: one element at a time, and nothing
/// is buffered.
final class Rendezvous<Element: Sendable>: Sendable {
  private struct State {
    var offered: Element?
    /// How many were offered, and how many the task is done with.
    var offers = 0
    var done = 0
    var isInHand = false
    var waiter: CheckedContinuation<Element?, Never>?
    var isStopped = false
  }

  private let state = Monitor(State())

  /// Waits until the task is done with the element; false if it never will be.
  ///
  /// One thread offers at a time.
  func offer(_ element: Element) -> Bool {
    let (number, waiter) = state.withLock { state in
      state.offers += 1
      let waiter = state.waiter.take()
      if waiter == nil { state.offered = element } else { state.isInHand = true }
      return (state.offers, waiter)
    }
    waiter?.resume(returning: element)
    let isDone = state.wait(until: nil) { state -> Bool? in
      if state.done >= number { return true }
      return state.isStopped ? false : nil
    }
    return isDone ?? false
  }

  /// The next element; nil when it was stopped.
  func next() async -> Element? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let now = state.signal { state -> Element?? in
          if state.isInHand {
            state.isInHand = false
            state.done = state.offers
          }
          if state.isStopped { return .some(nil) }
          if let offered = state.offered.take() {
            state.isInHand = true
            return .some(offered)
          }
          state.waiter = continuation
          return nil
        }
        if let now { continuation.resume(returning: now) }
      }
    } onCancel: {
      stop()
    }
  }

  func stop() {
    let waiter = state.signal { state in
      state.isStopped = true
      return state.waiter.take()
    }
    waiter?.resume(returning: nil)
  }
}
