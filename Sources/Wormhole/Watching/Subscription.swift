public import WormholeContainerStorage
internal import WormholeSyscalls

/// A closure that is called until the subscription is stopped: with changes, messages, requests
/// or whatever it was started for.
///
/// Like a timer, it continues even if the program has released this object, the member, or the
/// instance of the container. It ends with ``stop()``, `leave()` of its member, `close()`, or the
/// end of the container or of the process. The objects that its closures refer to live as long.
///
/// Any number of subscriptions may watch the same channel or member. Each has its own calls,
/// never two at the same time, and delays no other subscription, however long its closure takes.
/// After a slow call, the closure receives the newest value of each channel that changed in the
/// meantime. The last value is never missed.
public final class Subscription: Sendable {
  private struct State {
    /// Nil after the end of the subscription: a retained subscription retains no closure.
    var one: (any Stoppable)?
    /// The same object: one of its calls may still be in progress.
    weak var last: (any Stoppable)?
    var hasEnded: Bool
    var reason: WormholeError?
    var waiters: [CheckedContinuation<Void, Never>] = []
  }

  private let begun: ActiveSubscriptions
  /// The gate for calls in progress, if their end can be awaited without the object.
  private let gate: CallGate?
  /// The tasks of the asynchronous calls, if there are any.
  private let tasks: CallTasks?
  private let state: Monitor<State>
  private let owner = ProcessCopy.current

  /// - Parameter hasEnded: whether the subscription has ended already.
  init(_ one: any Stoppable, in begun: ActiveSubscriptions, hasEnded: Bool = false) {
    self.begun = begun
    (gate, tasks) = (one.callGate, one.callTasks)
    state = Monitor(State(one: hasEnded ? nil : one, hasEnded: hasEnded))
  }

  var hasEnded: Bool { state.withLock { $0.hasEnded } }

  /// The object behind the subscription; nil once it has ended and was released.
  var one: (any Stoppable)? { state.withLock { $0.one ?? $0.last } }

  /// Ends the subscription; once this has returned, the closure is not called again.
  ///
  /// It waits for a call in progress on another thread. So the caller must not hold a lock or
  /// resource for which the closure waits. The task of an asynchronous closure is cancelled, and
  /// the call does not wait for it: ``finished()`` does. The closure itself may call `stop()`.
  /// Claimed messages that are not acknowledged stay claimed. A message that is just being claimed
  /// is requeued first, which waits for the file system, and for the log if a warning is due. A
  /// second call does nothing.
  public func stop() {
    if let one {
      one.stop()
      begun.forget(one)
    }
    end(nil)
    gate?.drain()
  }

  /// Waits until the subscription has ended: it was stopped, its member has left, or its
  /// container was closed.
  ///
  /// An asynchronous call in progress is awaited as well.
  ///
  /// If the waiting task is cancelled, the subscription is stopped, as by ``stop()``, and its end
  /// is awaited. So a program without more work ends with its main task.
  ///
  /// - Throws: ``WormholeError/Code-swift.struct/notAContainer`` if the subscription has ended
  ///   because the container was removed or moved away.
  public func finished() async throws(WormholeError) {
    guard owner.isCurrent else {
      throw WormholeError(.ownerDied, "wait for the end of", "subscription")
    }
    try TaskPool.start("wait for the end of", "subscription")
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let isOver = state.withLock { state in
          if !state.hasEnded { state.waiters.append(continuation) }
          return state.hasEnded
        }
        if isOver { continuation.resume() }
      }
    } onCancel: {
      // On another thread: `stop()` waits for a call in progress.
      CallThreads.background.add { self.stop() }
    }
    await tasks?.finish()
    if let reason = state.withLock({ $0.reason }) { throw reason }
  }

  /// Waits on the calling thread until the subscription has ended.
  ///
  /// - Returns: the reason, if the container was removed or moved away.
  func wait() -> WormholeError? {
    state.wait(until: nil) { $0.hasEnded ? .some($0.reason) : nil } ?? nil
  }

  /// Records the end and resumes the waiting tasks; the first reason counts.
  func end(_ reason: WormholeError?) {
    // Released after the lock.
    let (waiters, one) = state.signal { state in
      if !state.hasEnded { (state.hasEnded, state.reason) = (true, reason) }
      defer { state.waiters = [] }
      state.last = state.last ?? state.one
      return (state.waiters, state.one.take())
    }
    for waiter in waiters { waiter.resume() }
    withExtendedLifetime(one) {}
  }

  /// How often the watch was woken, for any reason.
  package var wakeUps: Int { (one as? Listener)?.signals ?? 0 }
}
