internal import PropertyLists
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
    let receiver: MemberDirectory?
    /// Where the receipt comes to; nil if none was asked for.
    private let outbox: Outbox?
    /// Nil for one of an earlier life, of which nothing is known before it is read.
    private let note: Note?
    private let limits: PropertyListLimits
    private let state = Monitor(State())

    /// What this life knows of what it has sent.
    struct Note {
      let kind: String
      let file: SentFile?
    }

    private struct State {
      var end: Outcome.End?
      /// Whether anybody has asked for the end, and got it.
      var isHeard = false
      /// What an earlier life has sent, once it has been read.
      var content: SentContent?
      /// Whether the sender has left, so that it is not told any more.
      var isAbandoned = false
      var waiting: [Int: CheckedContinuation<Outcome.End?, Never>] = [:]
      var next = 0
      /// Those whose patience ended, perhaps before they began to wait.
      var givenUp: Set<Int> = []
    }

    init(
      _ name: MessageName, to receiver: MemberDirectory, _ hole: Wormhole, _ outbox: Outbox?,
      _ note: Note? = nil
    ) {
      self.name = name
      self.note = note
      limits = hole.options.limits
      to = receiver.name
      time = hole.options.time
      self.receiver = receiver
      self.outbox = outbox
    }

    init(_ name: MessageName, made to: String, _ content: SentContent?) {
      self.name = name
      note = content == nil ? Note(kind: "", file: nil) : nil
      limits = PropertyListLimits()
      state.withLock { $0.content = content }
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
    @nonexhaustive
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
        do throws(Errno) {
          return switch try receiver.place(of: name) {
          case .waiting: .waiting
          case .inHand: .inHand
          case nil: .ended
          }
        } catch {
          throw WormholeError(error, "look for message", id)
        }
      }
    }

    // MARK: What was sent

    /// What it was called.
    ///
    /// Of one that an earlier life has sent this is read when it is asked for; it throws
    /// ``WormholeError/Code-swift.struct/notFound`` if that has ended and nobody was told.
    public var kind: String {
      get throws(WormholeError) { if let note { note.kind } else { try content().kind } }
    }

    /// The file that was sent with it; nil if none was.
    public var file: SentFile? {
      get throws(WormholeError) { if let note { note.file } else { try content().file } }
    }

    /// What was sent, as long as it is on its way; of one that an earlier life has sent, also when
    /// it has ended.
    ///
    /// Throws as ``Outcome/value(as:)`` does.
    public func value<Value: Decodable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      try content().value(as: type, of: id)
    }

    /// What was sent together, in order.
    public func values<Value: Decodable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> [Value] {
      try content().values(as: type, of: id)
    }

    /// Whether what a receipt says is the only way left to know what was sent.
    var wantsContent: Bool { note == nil && state.withLock { $0.content } == nil }

    private func content() throws(WormholeError) -> SentContent {
      if let content = state.withLock({ $0.content }) { return content }
      guard let content = try read() else {
        // Its receipt may have been told meanwhile.
        if let content = state.withLock({ $0.content }) { return content }
        throw WormholeError(
          .notFound, "read message", id, because: "it has ended, and what was sent is not kept")
      }
      // What this life has sent its program knows, and it need not be kept.
      if note == nil { state.withLock { $0.content = content } }
      return content
    }

    private func read() throws(WormholeError) -> SentContent? {
      guard let receiver else { return nil }
      // It may be moved before it is read.
      for _ in 0..<3 {
        let place: MemberDirectory.MessagePlace?
        do throws(Errno) {
          place = try receiver.place(of: name)
        } catch {
          throw WormholeError(error, "look for message", id)
        }
        guard let place else { break }
        let found =
          switch place {
          case .waiting: try read(name.text, in: .inbox, of: receiver)
          case .inHand(let claimed): try read(claimed.text, in: .claimed, of: receiver)
          }
        if let found { return found }
      }
      guard let outbox else { return nil }
      for end in MessageEnd.allCases {
        let receipt = ReceiptName(name, end).text
        if let content = try read(receipt, in: .receipts, of: outbox.home) { return content }
      }
      return nil
    }

    private func read(
      _ file: String, in part: MemberDirectory.Part, of home: MemberDirectory
    ) throws(WormholeError) -> SentContent? {
      switch try home.read(file, in: part, "read message") {
      case .missing: return nil
      case .damaged(let reason, _):
        throw WormholeError(.damaged, "read message", id, because: reason)
      case .sound(let bytes, _): return try SentContent(bytes, limits)
      }
    }

    // MARK: Taking it back

    /// Takes it back, if the receiver does not have it yet; whether it did.
    ///
    /// If it answers true, no receiver ever sees the message.
    public func cancel() throws(WormholeError) -> Bool {
      guard let receiver else { return end(.cancelled) }
      return try Cancelling.end(name, at: receiver, .cancelled, outbox?.home, outbox?.hole)
    }

    // MARK: How it ended

    /// How it ended; nil as long as it has not.
    ///
    /// Who has read it here, or waited for it, has been told: those who ask the member for outcomes
    /// later are not told again.
    public var end: Outcome.End? {
      let end = state.withLock { $0.end }
      if let end { hear(end) }
      return end
    }

    /// The same; nobody is told by that.
    var hasEnded: Bool { state.withLock { $0.end != nil } }

    private func hear(_ end: Outcome.End) {
      let isFirst = state.withLock { state in
        defer { state.isHeard = true }
        return !state.isHeard
      }
      if isFirst { outbox?.heard(name, end) }
    }

    /// Waits until it has ended, and says how.
    ///
    /// Once the sender has left it is not told any more, and this throws
    /// ``WormholeError/Code-swift.struct/notJoined``.
    ///
    /// - Parameter timeout: after which it throws ``WormholeError/Code-swift.struct/timedOut``; nil
    ///   to wait for as long as the task runs.
    public func outcome(within timeout: Duration? = nil) async throws(WormholeError) -> Outcome.End
    {
      guard outbox != nil || receiver == nil else {
        throw WormholeError(
          .notFound, "wait for the end of message", id,
          because: "it was sent without asking for one",
          hint: "send it with 'wantsOutcome', as a member")
      }
      try receiver?.container.checkOwner("wait for the end of message", id)
      if let end { return end }
      let ticket = takeTicket()
      let timer = timeout.flatMap { giveUp(ticket, after: $0) }
      defer { timer?.cancel() }
      let end = await withTaskCancellationHandler {
        await withCheckedContinuation { wait($0, ticket) }
      } onCancel: {
        giveUp(ticket)
      }
      if let end {
        hear(end)
        return end
      }
      if state.withLock({ $0.isAbandoned }) {
        throw WormholeError(
          .notJoined, "wait for the end of message", id,
          because: "its sender has left, and is told no more",
          hint: "join again, and look for it among what is outstanding, or among the outcomes")
      }
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
      let end = state.wait(until: deadline) { state -> Outcome.End?? in
        state.end != nil || state.isAbandoned ? .some(state.end) : nil
      }
      if case .some(.some(let end)) = end { hear(end) }
      return end ?? nil
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
        if let end = state.end { return (end, true) }
        // Given up before it could begin to wait.
        if state.isAbandoned || state.givenUp.contains(ticket) { return (nil, true) }
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

    /// The sender has left: nobody waits any more.
    func abandon() {
      let waiting = state.signal { state in
        state.isAbandoned = true
        defer { state.waiting = [:] }
        return Array(state.waiting.values)
      }
      for continuation in waiting { continuation.resume(returning: nil) }
    }

    /// - Returns: whether it had not ended before.
    @discardableResult
    package func end(_ end: Outcome.End) -> Bool { self.end(end, nil) }

    /// - Parameter content: what was sent, if that was not known.
    @discardableResult
    func end(_ end: Outcome.End, _ content: SentContent?) -> Bool {
      let waiting = state.signal { state -> [CheckedContinuation<Outcome.End?, Never>]? in
        guard state.end == nil else { return nil }
        state.end = end
        if let content { state.content = content }
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
  ///
  /// - Parameters:
  ///   - sender: is told, if it wants to be.
  ///   - hole: of whoever does this; nil if there is nobody to tell.
  static func end(
    _ name: MessageName, at receiver: MemberDirectory, _ end: MessageEnd,
    _ sender: MemberDirectory?, _ hole: Wormhole?
  ) throws(WormholeError) -> Bool {
    do throws(Errno) {
      if Mutants.has(.cancelByPuttingBack) {
        try putBack(name, receiver)
      }
      let receipt = ReceiptName(name, end).text
      let isOurs = try receiver.ending(name, name.text, in: .inbox) { () throws(Errno) in
        if name.wantsReceipt, let sender {
          try receiver.move(name.text, from: .inbox, to: sender, .receipts, as: receipt)
        } else {
          try receiver.remove(name.text, from: .inbox)
        }
      }
      // Whoever ends a message takes its file along; most have none.
      if isOurs { _ = try? receiver.remove(name.fileName, from: .files) }
      if isOurs, name.wantsReceipt, let sender, let hole {
        let size = (try? sender.status(of: receipt, in: .receipts))?.size
        Receipts.bound(sender, after: size ?? 0, hole)
      }
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
