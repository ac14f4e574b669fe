internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// Calls of tasks that wait or sync, made on threads of the module's own: those of the pool are for
/// tasks, and there are as many as processors.
enum OffPool {
  /// What the call that is under way on this thread heeds.
  struct Terms: Sendable {
    /// Says that nobody waits for it any more.
    let cancellation: Cancellation
    /// Until when it may wait; nil for as long as it likes.
    let deadline: Instant?
  }

  /// What the calls of one lock have in common.
  struct Lane: Sendable {
    let slot: ObjectIdentifier
    let deadline: Instant

    /// - Parameter slot: whose lock is waited for; without one nothing is.
    init?(_ slot: Slot?, _ hole: Wormhole) {
      guard let slot else { return nil }
      self.slot = ObjectIdentifier(slot)
      deadline = .now + hole.options.timeout
    }
  }

  @TaskLocal static var terms: Terms?

  static var cancellation: Cancellation? { terms?.cancellation }

  /// Whether nobody waits any more for the call that is under way on this thread.
  static var isCancelled: Bool { cancellation?.isCancelled == true }

  /// Throws if nobody waits any more for the call that is under way on this thread.
  static func checkCancellation(
    _ operation: String, _ subject: String
  ) throws(WormholeError) {
    if isCancelled { throw cancelled(operation, subject) }
  }

  /// Makes a call, unless the task is cancelled before it has begun.
  ///
  /// Once it has begun it ends by itself, soon if it waits for something that heeds
  /// ``cancellation``.
  ///
  /// - Parameters:
  ///   - lane: of calls for the same lock one is made after the other, on one thread, however many
  ///     wait; and none waits for longer than it may.
  nonisolated(nonsending) static func run<Success: Sendable>(
    _ operation: String, _ subject: String, in lane: Lane? = nil,
    _ body: @escaping @Sendable () throws(WormholeError) -> Success
  ) async throws(WormholeError) -> Success {
    try WormholeError.checkQueues(operation, subject)
    let end = await end(in: lane) { Result { () throws(WormholeError) in try body() } }
    guard case .done(let result) = end else { throw end.error(operation, subject) }
    return try result.get()
  }

  /// The same, for a body that throws what it likes.
  nonisolated(nonsending) static func runAny<Success: Sendable>(
    _ operation: String, _ subject: String, in lane: Lane? = nil,
    _ body: @escaping @Sendable () throws -> Success
  ) async throws -> Success {
    try WormholeError.checkQueues(operation, subject)
    let end = await end(in: lane) { Result { try body() } }
    guard case .done(let result) = end else { throw end.error(operation, subject) }
    return try result.get()
  }

  /// The same, for what waits for nobody.
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
  /// - Parameter threads: those for what takes no time to speak of, unless it waits for closures of
  ///   the program's, which may need one of the others.
  nonisolated(nonsending) static func runForSure(
    on threads: CallThreads = .quick, _ body: @escaping @Sendable () -> Void
  ) async {
    // In a copy there is nobody who would run it.
    guard !ProcessCopy.isCopy else { return body() }
    await withCheckedContinuation { continuation in
      threads.add {
        body()
        continuation.resume()
      }
    }
  }

  /// Tells of the progress of a copy, and ends it once the task is cancelled.
  static func heeding(
    _ progress: (@Sendable (Wormhole.FileProgress) -> Wormhole.FileDecision)?
  ) -> (Wormhole.FileProgress) -> Wormhole.FileDecision {
    { now in
      let decision = progress?(now) ?? .goOn
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
    // What it found before the lock was free: that the resumption comes after it, the runtime does
    // not always tell the thread sanitizer.
    call.settle()
    return end
  }
}

/// How a call of a task's has ended.
private enum CallEnd<Success: Sendable, Failure: Error>: Sendable {
  case done(Result<Success, Failure>)
  /// Before it had begun.
  case cancelled
  /// Before it had begun.
  case expired

  /// Why it was not made.
  func error(_ operation: String, _ subject: String) -> WormholeError {
    guard case .expired = self else { return OffPool.cancelled(operation, subject) }
    return WormholeError(
      .timedOut, operation, subject,
      because: "the deadline passed while other tasks of this process waited for it")
  }
}

/// One call of a task's.
private final class Call<Success: Sendable, Failure: Error>: Sendable {
  private struct State {
    var waiter: CheckedContinuation<CallEnd<Success, Failure>, Never>?
    var hasBegun = false
    /// Why it is not to be made.
    var end: CallEnd<Success, Failure>?
  }

  private let state = Monitor(State())
  private let lane: OffPool.Lane?
  private let cancellation = Cancellation()
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
    let terms = OffPool.Terms(cancellation: cancellation, deadline: lane?.deadline)
    let result = OffPool.$terms.withValue(terms) { body() }
    state.withLock { $0.waiter.take() }?.resume(returning: .done(result))
  }

  func cancel() {
    cancellation.cancel()
    giveUp(.cancelled)
  }

  /// Does not make it, if it has not begun.
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
