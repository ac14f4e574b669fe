internal import Dispatch
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// A closure that is called until it is stopped: with changes, messages, requests or whatever it
  /// was begun for.
  ///
  /// It goes on whether or not anybody keeps this object, the member, or the opening that it was
  /// begun through, as timers do: until ``stop()``, `leave()` of its member,
  /// `close()`, or the end of the container or of the process. What its closures refer
  /// to lives as long.
  ///
  /// Any number of them may watch one thing. Each is called for itself, never twice at the same
  /// time, and holds up none of the others, however long its closure takes: what changes meanwhile
  /// it hears of afterwards, the newest of each channel. The last is never missed.
  public final class Subscription: Sendable {
    private struct State {
      /// Nil once it has ended, so that whoever keeps this keeps no closure.
      var one: (any Lasting)?
      /// The same: a call of it may be under way still.
      weak var last: (any Lasting)?
      var hasEnded: Bool
      var reason: WormholeError?
      var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let begun: Begun
    /// What calls under way go through, if it goes by itself whether they are.
    private let gate: CallGate?
    private let state: Monitor<State>
    private let owner = ProcessCopy.current

    /// - Parameter hasEnded: whether there is nothing to wait for.
    init(_ one: any Lasting, in begun: Begun, hasEnded: Bool = false) {
      self.begun = begun
      gate = one.callGate
      state = Monitor(State(one: hasEnded ? nil : one, hasEnded: hasEnded))
    }

    /// What it is about; nil once that has ended, and nobody needs it.
    var one: (any Lasting)? { state.withLock { $0.one ?? $0.last } }

    /// Ends it; once this has returned, the closure is not called again.
    ///
    /// A call that is under way on another thread is waited for, so this must not be called with
    /// anything held that the closure waits for; one of an asynchronous closure goes on. The
    /// closure itself may call it. Of messages, what is in hand and not acknowledged stays so; one
    /// that is just being taken is put back first, which waits for the file system, and for the log
    /// if that is told. A second time it does nothing.
    public func stop() {
      if let one {
        one.stop()
        begun.forget(one)
      }
      end(nil)
      gate?.drain()
    }

    /// Waits until it has ended: it was stopped, its member has left, or its container was closed.
    ///
    /// If the waiting task is cancelled it is stopped, as by ``stop()``, and waited for. So a
    /// program that does nothing else ends with its main task.
    ///
    /// - Throws: ``WormholeError/Code-swift.struct/notAContainer`` if it has ended because the
    ///   container was removed or moved away.
    public func finished() async throws(WormholeError) {
      guard owner.isCurrent else {
        throw WormholeError(.ownerDied, "wait for the end of", "a subscription")
      }
      await withTaskCancellationHandler {
        await withCheckedContinuation { continuation in
          let isOver = state.withLock { state in
            if !state.hasEnded { state.waiters.append(continuation) }
            return state.hasEnded
          }
          if isOver { continuation.resume() }
        }
      } onCancel: {
        // Not here: a call that is under way is waited for.
        DispatchQueue.global().async { self.stop() }
      }
      if let reason = state.withLock({ $0.reason }) { throw reason }
    }

    /// It has ended: tells those who wait; the first reason counts.
    func end(_ reason: WormholeError?) {
      // Let go of once the lock is free.
      let (waiters, one) = state.withLock { state in
        if !state.hasEnded { (state.hasEnded, state.reason) = (true, reason) }
        defer { state.waiters = [] }
        state.last = state.last ?? state.one
        return (state.waiters, state.one.take())
      }
      for waiter in waiters { waiter.resume() }
      withExtendedLifetime(one) {}
    }

    /// How often the watch was woken, for whatever reason.
    package var wakeUps: Int { (one as? Listener)?.signals ?? 0 }
  }
}
