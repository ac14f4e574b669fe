public import SharedContainer
package import Syscalls

extension Wormhole {
  /// A message that was sent and is on its way, or a batch of them.
  ///
  /// It need not be kept: what was sent arrives all the same.
  public final class Sent: Sendable {
    let name: MessageName
    /// The member it was sent to.
    public let to: String
    private let time: MailTime
    /// Nil for one that a test has made.
    private let receiver: MemberDirectory?
    /// Where the receipt comes to; nil if none was asked for.
    private let outbox: Outbox?
    private let state = Monitor(State())

    private struct State {
      var end: Outcome.End?
      var waiting: [Int: CheckedContinuation<Outcome.End?, Never>] = [:]
      var next = 0
      /// Those whose patience ended, perhaps before they began to wait.
      var givenUp: Set<Int> = []
    }

    init(_ name: MessageName, to receiver: MemberDirectory, _ hole: Wormhole, _ outbox: Outbox?) {
      self.name = name
      to = receiver.name
      time = hole.options.time
      self.receiver = receiver
      self.outbox = outbox
    }

    init(_ name: MessageName, made to: String) {
      self.name = name
      self.to = to
      (time, receiver, outbox) = (MailTime(), nil, nil)
    }

    deinit { outbox?.forget(name, ObjectIdentifier(self)) }

    package var isMade: Bool { receiver == nil }

    /// The sender's name for it.
    public var id: String { name.id }

    /// How many messages it holds.
    public var count: Int { name.count }

    /// Where it is now.
    public enum Place: String, Hashable, Sendable {
      /// In the receiver's inbox.
      case waiting
      /// In the receiver's hand.
      case inHand
      /// Neither: it has ended.
      case ended
    }

    /// Where it is now.
    public var place: Place {
      get throws(WormholeError) {
        guard let receiver else { return end == nil ? .waiting : .ended }
        // In the direction in which it moves, so that it is not missed on its way.
        do throws(Errno) {
          if try receiver.status(of: name.text, in: .inbox) != nil { return .waiting }
          var isInHand = false
          try receiver.list(.claimed) { file in
            if ClaimedName(String(cString: file))?.name == name { isInHand = true }
          }
          return isInHand ? .inHand : .ended
        } catch {
          throw WormholeError(error, "look for message", id)
        }
      }
    }

    // MARK: Taking it back

    /// Takes it back, if the receiver does not have it yet; whether it did.
    ///
    /// If it answers true, no receiver ever sees the message.
    public func cancel() throws(WormholeError) -> Bool {
      guard let receiver else { return end(.cancelled) }
      return try Cancelling.end(name, at: receiver, .cancelled, outbox?.home)
    }

    // MARK: How it ended

    /// How it ended; nil as long as it has not.
    public var end: Outcome.End? { state.withLock { $0.end } }

    /// Waits until it has ended, and says how.
    ///
    /// - Parameter timeout: after which it throws ``WormholeError/Code-swift.enum/timedOut``; nil
    ///   to wait for as long as the task runs.
    public func outcome(within timeout: Duration? = nil) async throws(WormholeError) -> Outcome.End
    {
      guard outbox != nil || receiver == nil else {
        throw WormholeError(
          .notFound, "wait for the end of message", id,
          because: "it was sent without asking for one",
          hint: "send it with 'wantsOutcome', as a member")
      }
      if let end { return end }
      let ticket = takeTicket()
      let timer = timeout.flatMap { giveUp(ticket, after: $0) }
      defer { timer?.cancel() }
      let end = await withTaskCancellationHandler {
        await withCheckedContinuation { wait($0, ticket) }
      } onCancel: {
        giveUp(ticket)
      }
      if let end { return end }
      let isCancelled = Task.isCancelled
      throw WormholeError(
        isCancelled ? .cancelled : .timedOut, "wait for the end of message", id,
        because: isCancelled ? "the task was cancelled" : "the deadline passed",
        hint: "it is still on its way")
    }

    /// Waits until the receiver has handled it; throws if it ends otherwise.
    public func waitUntilDelivered(
      within timeout: Duration? = nil
    ) async throws(WormholeError) {
      switch try await outcome(within: timeout) {
      case .delivered: return
      case .cancelled: throw undelivered(.cancelled, "it was cancelled")
      case .expired: throw undelivered(.timedOut, "it was not received in time")
      case .givenUp(let reason): throw undelivered(.undelivered, reason)
      }
    }

    /// Waits on this thread until it has ended; nil if it has not when the deadline has passed.
    package func waitForEnd(until deadline: Instant?) -> Outcome.End? {
      state.wait(until: deadline) { $0.end }
    }

    private func undelivered(_ code: WormholeError.Code, _ reason: String) -> WormholeError {
      WormholeError(code, "deliver message", id, because: reason)
    }

    private func takeTicket() -> Int {
      state.withLock { state in
        state.next += 1
        return state.next
      }
    }

    private func wait(_ continuation: CheckedContinuation<Outcome.End?, Never>, _ ticket: Int) {
      let now = state.withLock { state -> (Outcome.End?, Bool) in
        // Given up before it could begin to wait.
        if let end = state.end { return (end, true) }
        guard !state.givenUp.contains(ticket) else { return (nil, true) }
        state.waiting[ticket] = continuation
        return (nil, false)
      }
      if now.1 { continuation.resume(returning: now.0) }
    }

    /// - Returns: what is to be cancelled once nobody waits.
    private func giveUp(_ ticket: Int, after timeout: Duration) -> Task<Void, Never>? {
      let deadline = time.now + timeout
      if let clock = time.moved {
        clock.ring(at: deadline) { [weak self] in self?.giveUp(ticket) }
        return nil
      }
      return Task {
        try? await Task.sleep(for: deadline - .now)
        self.giveUp(ticket)
      }
    }

    private func giveUp(_ ticket: Int) {
      let waiting = state.withLock { state in
        state.givenUp.insert(ticket)
        return state.waiting.removeValue(forKey: ticket)
      }
      waiting?.resume(returning: nil)
    }

    /// - Returns: whether it had not ended before.
    @discardableResult
    package func end(_ end: Outcome.End) -> Bool {
      let waiting = state.signal { state -> [CheckedContinuation<Outcome.End?, Never>]? in
        guard state.end == nil else { return nil }
        state.end = end
        defer { state.waiting = [:] }
        return Array(state.waiting.values)
      }
      guard let waiting else { return false }
      for continuation in waiting { continuation.resume(returning: end) }
      return true
    }
  }
}

/// Ending a message that waits, from outside.
enum Cancelling {
  /// Moves it out of the inbox; false if it is not there any more.
  ///
  /// One rename: whoever claims it at the same moment gets it, or this does. It must not be taken
  /// out, looked at and put back: who dies holding it would lose it.
  static func end(
    _ name: MessageName, at receiver: MemberDirectory, _ end: MessageEnd, _ sender: MemberDirectory?
  ) throws(WormholeError) -> Bool {
    do throws(Errno) {
      if receiver.container.options.environment.mutants.has(.cancelByPuttingBack) {
        try putBack(name, receiver)
      }
      let isOurs =
        if name.wantsReceipt, let sender {
          try receiver.move(
            name.text, from: .inbox, to: sender, .receipts, as: ReceiptName(name, end).text)
        } else {
          try receiver.remove(name.text, from: .inbox)
        }
      // Whoever ends a message takes its file along; most have none.
      if isOurs { _ = try? receiver.remove(name.fileName, from: .files) }
      return isOurs
    } catch {
      throw WormholeError(error, "cancel message", name.id)
    }
  }

  /// What must not be done; for tests.
  private static func putBack(_ name: MessageName, _ receiver: MemberDirectory) throws(Errno) {
    guard try receiver.move(name.text, from: .inbox, .live, as: name.text) else { return }
    Processes.yield()
    _ = try receiver.move(name.text, from: .live, .inbox, as: name.text)
  }
}
