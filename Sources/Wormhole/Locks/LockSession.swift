internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A lock that a thread holds for a task, because a task may change threads.
final class LockSession: Sendable {
  private struct State {
    var generation: Int?
    var hasBegun = false
    var hasExpired = false
    var isLeaving = false
    var end: Result<Bool, any Error>?
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let name: String
  private let state = Monitor(State())
  private let cancellation: CancellationFlag
  private let hold: @Sendable (LockSession) throws -> Bool

  /// - Parameter hold: takes the lock, calls ``enter(_:)``, and returns whether another process
  ///   took the lock over.
  init(
    _ name: String, _ cancellation: CancellationFlag,
    _ hold: @escaping @Sendable (LockSession) throws -> Bool
  ) {
    self.name = name
    self.cancellation = cancellation
    self.hold = hold
  }

  // MARK: On the thread

  func run() {
    let goes = state.withLock { state in
      state.hasBegun = !state.isLeaving
      return state.hasBegun
    }
    guard goes else { return }
    let end = Result {
      // A task that waited on this thread would never resume to release the lock.
      guard !CallThreads.isBorrowed else {
        throw WormholeError(
          .exhausted, "hold lock", name, because: "the system starts no thread for the lock",
          hint: "end other processes, or raise the limit of 'ulimit -u'")
      }
      return try hold(self)
    }
    resume { $0.end = end }
  }

  /// Reports to the task that the lock is held; returns when the lock is to be released.
  ///
  /// A task that is cancelled at this moment may have decided to leave already, and has not looked
  /// at the generation yet. The task must not learn the generation then: the lock is released at
  /// once.
  func enter(_ generation: Int) {
    resume { if !$0.isLeaving { $0.generation = generation } }
    state.wait(until: nil) { $0.isLeaving ? () : nil }
  }

  private func resume(_ change: (inout State) -> Void) {
    let waiter = state.withLock { state in
      change(&state)
      return state.waiter.take()
    }
    waiter?.resume()
  }

  // MARK: In the task

  /// Waits until the lock is held; stops waiting if the task is cancelled.
  func generation() async throws -> Int {
    await withTaskCancellationHandler {
      await wait { $0.generation != nil || $0.end != nil || $0.isLeaving }
    } onCancel: {
      cancellation.cancel()
      let waiter = state.signal { state in
        if state.generation == nil { state.isLeaving = true }
        return state.generation == nil ? state.waiter.take() : nil
      }
      waiter?.resume()
    }
    let (generation, end) = state.withLock { ($0.generation, $0.end) }
    if let generation { return generation }
    _ = try end?.get()
    guard state.withLock({ $0.hasExpired }) else {
      throw WormholeError(.cancelled, "hold lock", name, because: "the task was cancelled")
    }
    throw WormholeError(
      .timedOut, "hold lock", name,
      because: "the deadline passed while other tasks of this process were ahead in the queue")
  }

  /// Ends the wait in the queue of this process's tasks, at the deadline.
  func expire() {
    let waiter = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !state.hasBegun, !state.isLeaving else { return nil }
      (state.hasExpired, state.isLeaving) = (true, true)
      return state.waiter.take()
    }
    waiter?.resume()
  }

  /// Releases the lock; returns whether another process took it over.
  func leave() async throws -> Bool {
    state.signal { $0.isLeaving = true }
    await wait { $0.end != nil }
    return try state.withLock { $0.end }?.get() ?? false
  }

  private func wait(until isOver: (State) -> Bool) async {
    await withCheckedContinuation { continuation in
      let isNow = state.withLock { state in
        if !isOver(state) { state.waiter = continuation }
        return isOver(state)
      }
      if isNow { continuation.resume() }
    }
  }
}
