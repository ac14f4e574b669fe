public import WormholeContainerStorage
internal import WormholeSyscalls

extension Member {
  /// The messages sent to this member, each with an explicit outcome.
  ///
  /// The program calls ``Message/acknowledge()``, ``Message/requeue(after:)`` or
  /// ``Message/fail(_:)`` for each message, at any time and on any thread. A message that is
  /// released without one of these calls counts as failed, and the log reports the first one. For a
  /// loop that handles one message after the other, take ``messages(of:kind:)``.
  public var deliveries: Deliveries { deliveries(kinds: nil) }

  /// As ``deliveries``, for some kinds.
  ///
  /// - Parameter kinds: the wanted kinds, as given by the sender; nil for all.
  public func deliveries(kinds: Set<String>?) -> Deliveries {
    Deliveries(mailbox: mailbox, kinds: kinds)
  }
}

/// The messages sent to a member, as an asynchronous sequence with explicit outcomes.
///
/// A message is claimed when the loop asks for it, so no message is claimed in advance of its
/// handling. Several loops take turns. The sequence ends when the task is cancelled, or when the
/// member leaves. After a member has left, its sequence throws
/// ``WormholeError/Code-swift.struct/notJoined``.
public struct Deliveries: AsyncSequence, Sendable {
  /// The errors of the iteration.
  public typealias Failure = WormholeError

  let mailbox: Mailbox
  let kinds: Set<String>?

  /// Starts to receive.
  public func makeAsyncIterator() -> Iterator {
    Iterator(Result { () throws(WormholeError) in StopOnRelease(try Pump(mailbox, kinds)) })
  }

  /// A receiver for one task.
  public struct Iterator: AsyncIteratorProtocol {
    /// Nil after the error of a failed start was thrown.
    private var pump: Result<StopOnRelease<Pump>, WormholeError>?
    private var hand: BatchCursor?

    fileprivate init(_ pump: Result<StopOnRelease<Pump>, WormholeError>) { self.pump = pump }

    /// Returns the next message; nil when the task is cancelled.
    public mutating func next(
      isolation actor: isolated (any Actor)?
    ) async throws(WormholeError) -> Message? {
      guard let pump = try self.pump.getFailingOnce() else { return nil }
      try pump.one.checkOwner()
      while true {
        if Task.isCancelled { return nil }
        if let message = hand?.next() { return message }
        hand = nil
        switch await pump.one.next() {
        case .file(let file): hand = BatchCursor(file)
        case .message(let message): return message
        case nil: return nil
        }
      }
    }
  }
}

/// A receiver for asynchronous callers: claims a file at each request.
final class Pump: Stoppable {
  private struct State {
    var asking: CheckedContinuation<Void, Never>?
    /// The work for the waiting task.
    ///
    /// It is passed under the lock: the thread sanitizer does not follow data passed between
    /// threads with a continuation.
    var handed: ReceiverWork?
    var isStopped = false
  }

  let mailbox: Mailbox
  private let runner: Worker
  private let number: Int
  private let state = Monitor(State())

  init(_ mailbox: Mailbox, _ kinds: Set<String>?) throws(WormholeError) {
    self.mailbox = mailbox
    try TaskPool.start("receive as", mailbox.home.name)
    runner = Worker(staysOffWatcher: false, mailbox.container.options.time)
    number = try mailbox.add(runner, kinds: kinds)
    mailbox.state.withLock { state in
      state.withdrawals[number] = { [weak self] in self?.withdraw() }
    }
    // The worker retains this pump until the pump is stopped.
    runner.begin(isAsked: { self.state.withLock { $0.asking != nil } }) { self.run() }
    runner.trigger()
  }

  /// Throws in a forked child, to which no message is delivered.
  func checkOwner() throws(WormholeError) {
    try mailbox.container.storage.checkOwner("receive as", mailbox.home.name)
  }

  /// Returns the next file or message; nil once the task is cancelled.
  func next() async -> ReceiverWork? {
    await withTaskCancellationHandler {
      await withCheckedContinuation { ask($0) }
    } onCancel: {
      stop()
    }
    return state.withLock { $0.handed.take() }
  }

  private func ask(_ continuation: CheckedContinuation<Void, Never>) {
    let isLate = state.withLock { state in
      if !state.isStopped { state.asking = continuation }
      return state.isStopped
    }
    if isLate { continuation.resume() } else { runner.trigger() }
  }

  private func run() {
    while state.withLock({ !$0.isStopped && $0.asking != nil }) {
      switch mailbox.step(for: number, until: { state.withLock { $0.isStopped } }, handing: hand) {
      case .idle(let due):
        if let due { runner.trigger(at: Instant(nanoseconds: due)) }
        return
      case .ended:
        stop()
      case .work: break
      }
    }
  }

  private func hand(_ work: ReceiverWork) {
    let asking = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard !mailbox.isClosed, let asking = state.asking.take() else { return nil }
      state.handed = work
      return asking
    }
    if let asking { return asking.resume() }
    // Claimed for a task that no longer asks, or for a member that leaves: no attempt.
    giveBack(work)
  }

  private func giveBack(_ work: ReceiverWork) {
    switch work {
    case .file(let file): file.delivery.release()
    case .message(let message): message.requeue()
    }
  }

  /// Gives back the work that the resumed task has not taken yet: no attempt.
  private func withdraw() {
    mailbox.givingBack {
      if let work = state.withLock({ $0.handed.take() }) { giveBack(work) }
    }
  }

  /// Stops the receiver; a waiting task gets nil.
  func stop() {
    guard mailbox.container.storage.isOwned else { return }
    let asking = state.withLock { state in
      state.isStopped = true
      return state.asking.take()
    }
    // Before the removal: a member that leaves withdraws the work of the receivers it knows.
    withdraw()
    mailbox.remove(number)
    runner.end()
    asking?.resume()
  }
}
