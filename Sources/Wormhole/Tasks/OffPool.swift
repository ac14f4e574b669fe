internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Calls of tasks that wait or sync, made on threads of the module: the pool's threads are for
/// tasks, and there are as many as processors.
enum OffPool {
  /// The lane of the calls for one lock.
  struct Lane: Sendable {
    let slot: ObjectIdentifier
    let deadline: Instant

    /// - Parameters:
    ///   - slot: the slot whose lock the calls wait for; nil if they wait for none.
    ///   - timeout: how long a call waits.
    init?(_ slot: Slot?, within timeout: Duration) {
      guard let slot else { return nil }
      self.slot = ObjectIdentifier(slot)
      deadline = .now + timeout
    }
  }

  @TaskLocal static var terms: CallLimits?

  static var cancellation: CancellationFlag? { terms?.cancellation }

  /// Whether no task waits any more for the call in progress on this thread.
  static var isCancelled: Bool { cancellation?.isCancelled == true }

  /// Throws if no task waits any more for the call in progress on this thread.
  static func checkCancellation(
    _ operation: String, _ subject: String
  ) throws(WormholeError) {
    if isCancelled { throw cancelled(operation, subject) }
  }

  /// Makes a call, unless the task is cancelled before the call has begun.
  ///
  /// Once the call has begun, it runs to its end, which comes soon if the call waits in code that
  /// checks ``cancellation``.
  ///
  /// - Parameters:
  ///   - lane: the calls for the same lock are made in sequence, on a single thread, however many
  ///     calls wait; and no call waits longer than its limit.
  nonisolated(nonsending) static func run<Success: Sendable>(
    _ operation: String, _ subject: String, in lane: Lane? = nil,
    _ body: @escaping @Sendable () throws(WormholeError) -> Success
  ) async throws(WormholeError) -> Success {
    try WormholeError.checkQueues(operation, subject)
    let end = await end(in: lane) { Result { () throws(WormholeError) in try body() } }
    guard case .done(let result) = end else { throw end.error(operation, subject) }
    return try result.get()
  }

  /// As `run`, for a body that throws any error.
  nonisolated(nonsending) static func runAny<Success: Sendable>(
    _ operation: String, _ subject: String, in lane: Lane? = nil,
    _ body: @escaping @Sendable () throws -> Success
  ) async throws -> Success {
    try WormholeError.checkQueues(operation, subject)
    let end = await end(in: lane) { Result { try body() } }
    guard case .done(let result) = end else { throw end.error(operation, subject) }
    return try result.get()
  }

  /// As `run`, for a body that never waits for another thread or process.
  nonisolated(nonsending) static func runQuickly<Success: Sendable>(
    _ operation: String, _ subject: String,
    _ body: @escaping @Sendable () throws(WormholeError) -> Success
  ) async throws(WormholeError) -> Success {
    try WormholeError.checkQueues(operation, subject)
    if Task.isCancelled { throw cancelled(operation, subject) }
    let result = await withCheckedContinuation { continuation in
      CallThreads.quick.add {
        continuation.resume(returning: Result { () throws(WormholeError) in try body() })
      }
    }
    return try result.get()
  }

  /// Makes a call, cancelled or not.
  ///
  /// - Parameter threads: the threads for short calls, unless the call waits for closures of the
  ///   program: the closures may need a thread of the same pool.
  nonisolated(nonsending) static func runForSure(
    on threads: CallThreads = .quick, _ body: @escaping @Sendable () -> Void
  ) async {
    // In a forked child no thread would make the call.
    guard !ProcessCopy.isCopy else { return body() }
    // The function cannot fail. Without descriptors for the threads of tasks no task could be
    // resumed.
    guard (try? TaskPool.start("end", "a call")) != nil else { return body() }
    await withCheckedContinuation { continuation in
      threads.add {
        body()
        continuation.resume()
      }
    }
  }

  /// Reports the progress of a copy, and ends the copy once the task is cancelled.
  static func heeding(
    _ progress: (@Sendable (FileProgress) -> ProgressDecision)?
  ) -> (FileProgress) -> ProgressDecision {
    { now in
      let decision = progress?(now) ?? .continue
      return isCancelled ? .cancel : decision
    }
  }

  fileprivate static func cancelled(_ operation: String, _ subject: String) -> WormholeError {
    WormholeError(.cancelled, operation, subject, because: "the task was cancelled")
  }

  private nonisolated(nonsending) static func end<Success: Sendable, Failure: Error>(
    in lane: Lane?, _ body: @escaping @Sendable () -> Result<Success, Failure>
  ) async -> CallEnd<Success, Failure> {
    let call = Call(in: lane, body)
    let end = await withTaskCancellationHandler {
      await withCheckedContinuation { call.begin($0) }
    } onCancel: {
      call.cancel()
    }
    // The result was found before the lock was free. The runtime does not always report to the
    // thread sanitizer that the resumption comes later.
    call.settle()
    return end
  }
}

/// The limits of the call in progress on this thread.
struct CallLimits: Sendable {
  /// Cancelled when no task waits for the call any more.
  let cancellation: CancellationFlag
  /// The end of the time for which the call may wait; nil for no limit.
  let deadline: Instant?
}

/// The end of a task's call.
private enum CallEnd<Success: Sendable, Failure: Error>: Sendable {
  case done(Result<Success, Failure>)
  /// Before the call had begun.
  case cancelled
  /// Before the call had begun.
  case expired

  /// Returns the error for a call that was not made.
  func error(_ operation: String, _ subject: String) -> WormholeError {
    guard case .expired = self else { return OffPool.cancelled(operation, subject) }
    return WormholeError(
      .timedOut, operation, subject,
      because: "the deadline passed while other tasks of this process were ahead in the queue")
  }
}

/// One call of a task.
private final class Call<Success: Sendable, Failure: Error>: Sendable {
  private struct State {
    var waiter: CheckedContinuation<CallEnd<Success, Failure>, Never>?
    var hasBegun = false
    /// The reason why the call is not to be made.
    var end: CallEnd<Success, Failure>?
  }

  private let state = Monitor(State())
  private let lane: OffPool.Lane?
  private let cancellation = CancellationFlag()
  private let body: @Sendable () -> Result<Success, Failure>

  init(in lane: OffPool.Lane?, _ body: @escaping @Sendable () -> Result<Success, Failure>) {
    self.lane = lane
    self.body = body
  }

  func begin(_ waiter: CheckedContinuation<CallEnd<Success, Failure>, Never>) {
    let end = state.withLock { state in
      if state.end == nil { state.waiter = waiter }
      return state.end
    }
    if let end { return waiter.resume(returning: end) }
    guard let lane else { return CallThreads.waiting.add { self.run() } }
    CallLanes.waiting.add(lane.slot, until: lane.deadline) {
      self.run()
    } expire: {
      self.giveUp(.expired)
    }
  }

  private func run() {
    let goes = state.withLock { state in
      state.hasBegun = state.end == nil
      return state.hasBegun
    }
    guard goes else { return }
    let terms = CallLimits(cancellation: cancellation, deadline: lane?.deadline)
    let result = OffPool.$terms.withValue(terms) { body() }
    state.withLock { $0.waiter.take() }?.resume(returning: .done(result))
  }

  func cancel() {
    cancellation.cancel()
    giveUp(.cancelled)
  }

  /// Ends the call without making it, unless the call has begun.
  private func giveUp(_ end: CallEnd<Success, Failure>) {
    let waiter = state.withLock { state -> CheckedContinuation<CallEnd<Success, Failure>, Never>? in
      guard !state.hasBegun, state.end == nil else { return nil }
      state.end = end
      return state.waiter.take()
    }
    waiter?.resume(returning: end)
  }

  func settle() { state.withLock { _ in } }
}
