internal import Syscalls

extension Wormhole {
  /// What arrives for a member, one after the other, as an asynchronous sequence.
  ///
  /// Each element counts as handled when the loop asks for the next, and what has not been handled
  /// when the process ends is told again to the next one. It ends when the task is cancelled.
  public struct Arrivals<Element: Sendable>: AsyncSequence, Sendable {
    /// What iterating may throw.
    public typealias Failure = WormholeError

    let begin: @Sendable (Rendezvous<Element>) throws(WormholeError) -> any Lasting

    /// Begins to listen.
    public func makeAsyncIterator() -> Iterator {
      Iterator(
        Result { () throws(WormholeError) in
          let handover = Rendezvous<Element>()
          handover.keep(try begin(handover))
          return Brief(handover)
        })
    }

    /// One listener, for one task.
    public struct Iterator: AsyncIteratorProtocol {
      /// Nil once it was told that it could not begin.
      private var handover: Result<Brief<Rendezvous<Element>>, WormholeError>?

      fileprivate init(_ handover: Result<Brief<Rendezvous<Element>>, WormholeError>) {
        self.handover = handover
      }

      /// The next one; nil when the task is cancelled.
      public mutating func next(
        isolation actor: isolated (any Actor)?
      ) async throws(WormholeError) -> Element? {
        guard case .success(let handover)? = handover else {
          defer { handover = nil }
          if case .failure(let error)? = handover { throw error }
          return nil
        }
        return await handover.one.next()
      }
    }
  }
}

/// A hand from a thread that has something to a task that asks: one element at a time, and nothing
/// is buffered.
final class Rendezvous<Element: Sendable>: Lasting {
  private struct State {
    var offered: Element?
    /// How many were offered, and how many the task is done with.
    var offers = 0
    var done = 0
    var isInHand = false
    var waiter: CheckedContinuation<Element?, Never>?
    var isStopped = false
    /// What offers.
    var listener: (any Lasting)?
  }

  private let state = Monitor(State())
  private let owner = ProcessCopy.current

  /// Takes on what offers, and ends with it.
  func keep(_ listener: any Lasting) { state.withLock { $0.listener = listener } }

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
      end()
    }
  }

  /// Hands over no more, which has to come first: to stop what offers is to wait for that.
  func stop() {
    guard owner.isCurrent else { return }
    end()
    state.withLock { $0.listener.take() }?.stop()
  }

  /// Nobody asks any more, or nothing more comes.
  func end() {
    let waiter = state.signal { state in
      state.isStopped = true
      return state.waiter.take()
    }
    waiter?.resume(returning: nil)
  }
}
