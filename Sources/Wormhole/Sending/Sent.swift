public import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists
package import WormholeSyscalls

/// A sent message that is on its way, or a batch of messages.
///
/// The object need not be retained: the message arrives all the same.
public final class Sent: Sendable {
  let identity: SentName
  /// The name of the file, except for a delayed message, which has another one later.
  var name: MessageName { identity.name }
  /// The member to which the message was sent.
  public let to: String
  private let time: MailTime
  /// Nil for a message made by a test.
  let receiver: MemberDirectory?
  /// The outbox that receives the receipt; nil if no receipt was requested.
  private let outbox: Outbox?
  /// Nil for a message of an earlier incarnation, which is unknown until it is read.
  private let note: SentProperties?
  private let limits: PropertyListLimits
  private let progress = Monitor(Progress())

  /// The properties of a message sent by this incarnation.
  struct SentProperties {
    let kind: String
    let file: SentFile?
    var headers: [String: String] = [:]
  }

  private struct Progress {
    var end: Outcome.Status?
    /// Whether a caller has asked for the outcome and received it.
    var isHeard = false
    /// The content of an earlier incarnation's message, once it has been read.
    var content: SentContent?
    /// Whether the sender has left, and is no longer notified of the outcome.
    var isAbandoned = false
    var waiting: [Int: CheckedContinuation<Outcome.Status?, Never>] = [:]
    var next = 0
    /// The tickets of the waits that have not returned, each with whether the wait timed out or was
    /// cancelled, perhaps before it began.
    var tickets: [Int: Bool] = [:]
  }

  init(
    _ identity: SentName, to receiver: MemberDirectory, _ container: SharedContainer,
    _ outbox: Outbox?,
    _ note: SentProperties? = nil
  ) {
    self.identity = identity
    self.note = note
    limits = container.options.limits
    to = receiver.name
    time = container.options.time
    self.receiver = receiver
    self.outbox = outbox
  }

  init(_ name: MessageName, made to: String, _ content: SentContent?) {
    identity = SentName(name)
    note = content == nil ? SentProperties(kind: "", file: nil) : nil
    limits = PropertyListLimits()
    progress.withLock { $0.content = content }
    self.to = to
    (time, receiver, outbox) = (MailTime(), nil, nil)
  }

  deinit { outbox?.forget(identity, ObjectIdentifier(self)) }

  package var isMade: Bool { receiver == nil }

  /// The sender's id for the message.
  public var id: String { name.id }

  /// How many messages the batch contains.
  public var count: Int { name.count }

  /// Until when the message is delayed; nil for a message that was sent without a delay.
  ///
  /// The time stays after the end of the delay.
  public var notBefore: Date? { identity.delayed.map { Date(sinceEpoch: $0.due) } }

  /// The state of a sent message.
  @nonexhaustive
  public enum State: String, Hashable, Sendable {
    /// Not to be received before a moment: see ``SendOptions/delay``.
    case delayed
    /// In the receiver's inbox.
    case waiting
    /// Claimed by the receiver.
    case claimed
    /// Claimed by a receiver that has ended, and to be received by the next one with the name; or
    /// returned to a queue, and to be claimed by another worker.
    case interrupted
    /// On its way to the receiver, whose home is another machine.
    case inTransit = "in transit"
    /// Settled, or past its time to live.
    case ended
  }

  /// The current state of the message.
  public var state: State {
    get throws(WormholeError) {
      guard let receiver else { return status == nil ? .waiting : .ended }
      return try naming("find message", id, at: receiver) { () throws(Errno) in
        switch try receiver.location(of: identity) {
        case .delayed: .delayed
        case .waiting(let file): hasExpired(file, in: receiver) ? .ended : .waiting
        case .inHand(_, let holder):
          if try receiver.elsewhere != nil {
            .inTransit
          } else {
            try holder.isPresent() ? .claimed : .interrupted
          }
        case nil: .ended
        }
      }
    }
  }

  private func hasExpired(_ file: WaitingFile, in inbox: MemberDirectory) -> Bool {
    guard let expires = QueuedMessageReader(inbox, limits).expiry(of: file) else { return false }
    return expires < inbox.container.options.environment.sinceEpoch()
      && (try? inbox.elsewhere) == .some(nil)
  }

  // MARK: Content

  /// The kind given to the message.
  ///
  /// For a message of an earlier incarnation, the kind is read on request. The read throws
  /// ``WormholeError/Code-swift.struct/notFound`` if the message was settled and its outcome was
  /// never reported.
  public var kind: String {
    get throws(WormholeError) { if let note { note.kind } else { try content().kind } }
  }

  /// The headers of the message; see ``SendOptions/headers``.
  public var headers: [String: String] {
    get throws(WormholeError) { if let note { note.headers } else { try content().headers } }
  }

  /// The file sent with the message; nil for none.
  public var file: SentFile? {
    get throws(WormholeError) { if let note { note.file } else { try content().file } }
  }

  /// Returns the value that was sent, while the message is on its way.
  ///
  /// For a message of an earlier incarnation, also returns the value after the outcome.
  ///
  /// Throws as ``Outcome/value(as:)`` does.
  public func value<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> Value {
    try content().value(as: type, of: id)
  }

  /// Returns the values that were sent together, in order.
  public func values<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> [Value] {
    try content().values(as: type, of: id)
  }

  /// Whether a receipt is the only remaining source of the sent content.
  var wantsContent: Bool { note == nil && progress.withLock { $0.content } == nil }

  private func content() throws(WormholeError) -> SentContent {
    if let content = progress.withLock({ $0.content }) { return content }
    guard let content = try read() else {
      // The receipt may have been reported in the meantime.
      if let content = progress.withLock({ $0.content }) { return content }
      throw WormholeError(
        .notFound, "read message", id,
        because: "the message is settled, and its content is no longer stored")
    }
    // Not stored for a message of this incarnation, whose content the program knows.
    if note == nil { progress.withLock { $0.content = content } }
    return content
  }

  private func read() throws(WormholeError) -> SentContent? {
    guard let receiver else { return nil }
    // The file may be moved between the lookup and the read.
    for _ in 0..<3 {
      let place = try naming("find message", id, at: receiver, receiver.location(of: identity))
      guard let place else { break }
      let found =
        switch place {
        case .delayed(let delayed): try read(delayed.text, in: .later, of: receiver)
        case .waiting(let file): try read(file.text, in: file.part, of: receiver)
        case .inHand(let claimed, let home): try read(claimed.text, in: .claimed, of: home)
        }
      if let found { return found }
    }
    guard let outbox else { return nil }
    for receipt in try receipts(in: outbox.home) {
      if let content = try read(receipt.text, in: .receipts, of: outbox.home) { return content }
    }
    return nil
  }

  /// The possible receipts of the message.
  private func receipts(in home: MemberDirectory) throws(WormholeError) -> [ReceiptName] {
    guard identity.since != nil else { return MessageEnd.allCases.map { ReceiptName(name, $0) } }
    return try naming("read message", id, at: home) { () throws(Errno) in
      try Receipts.list(home).filter { identity.matches($0.name) }
    }
  }

  private func read(
    _ file: String, in part: MemberDirectory.Part, of home: MemberDirectory
  ) throws(WormholeError) -> SentContent? {
    switch try home.read(file, in: part, "read message") {
    case .missing: return nil
    case .damaged(let reason, _):
      throw WormholeError(
        .damaged, "read message", id, because: "the message is damaged: \(reason)")
    case .sound(let bytes, _): return try SentContent(bytes, limits)
    }
  }

  // MARK: Cancellation

  /// Cancels the message, if the receiver has not claimed it yet.
  ///
  /// A message on its way to another machine is cancelled on request: see
  /// ``Cancellation/requested``.
  public func cancel() throws(WormholeError) -> Cancellation {
    guard let receiver else { return Cancellation(end(.cancelled)) }
    let isCancelled = try MessageCancellation.end(
      identity, at: receiver, .cancelled, outbox?.home, outbox?.container)
    guard !isCancelled,
      try MessageCancellation.request({ identity.matches($0) }, at: receiver)
    else { return Cancellation(isCancelled) }
    return .requested
  }

  // MARK: Outcome

  /// How the message ended; nil while it is not settled.
  ///
  /// An outcome read here, or returned by a wait, counts as reported: later listeners of the
  /// member are not notified of it again.
  public var status: Outcome.Status? {
    let end = progress.withLock { $0.end }
    if let end { hear(end) }
    return end
  }

  /// Whether the message is settled; a read of this property does not count as a report.
  var hasEnded: Bool { progress.withLock { $0.end != nil } }

  private func hear(_ end: Outcome.Status) {
    let isFirst = progress.withLock { !exchange(&$0.isHeard, with: true) }
    if isFirst { outbox?.heard(identity, end) }
  }

  /// Waits until the message is settled, and returns how the message ended.
  ///
  /// Once the sender has left, no outcome is reported any more, and this call throws
  /// ``WormholeError/Code-swift.struct/notJoined``.
  ///
  /// - Parameter timeout: the time limit, after which the call throws
  ///   ``WormholeError/Code-swift.struct/timedOut``; nil to wait for as long as the task runs.
  public func waitForStatus(within timeout: Duration? = nil) async throws(WormholeError)
    -> Outcome.Status
  {
    guard outbox != nil || receiver == nil else {
      throw WormholeError(
        .notFound, "wait for the outcome of message", id,
        because: "the message was sent without a request for an outcome",
        hint: "join, and send through the member with 'wantsOutcome'")
    }
    try receiver?.container.checkOwner("wait for the outcome of message", id)
    try TaskPool.start("wait for the outcome of message", id)
    if let status { return status }
    let ticket = takeTicket()
    defer { progress.withLock { $0.tickets[ticket] = nil } }
    let timer = timeout.flatMap { giveUp(ticket, after: $0) }
    defer { if let timer { CallThreads.background.cancel(timer) } }
    let end = await withTaskCancellationHandler {
      await withCheckedContinuation { wait($0, ticket) }
    } onCancel: {
      giveUp(ticket)
    }
    if let end {
      hear(end)
      return end
    }
    if progress.withLock({ $0.isAbandoned }) {
      throw WormholeError(
        .notJoined, "wait for the outcome of message", id,
        because: "the sender has left, and receives no more outcomes",
        hint: "join again, and search the pending messages and the outcomes")
    }
    let isCancelled = Task.isCancelled
    throw WormholeError(
      isCancelled ? .cancelled : .timedOut, "wait for the outcome of message", id,
      because: isCancelled ? "the task was cancelled" : "the deadline passed",
      hint: "wait again; the message is still pending")
  }

  /// Waits until the receiver has handled the message; throws after any other outcome.
  public func waitUntilDelivered(
    within timeout: Duration? = nil
  ) async throws(WormholeError) {
    switch try await waitForStatus(within: timeout) {
    case .delivered: return
    case .cancelled: throw undelivered(.cancelled, "the message was cancelled")
    case .expired: throw undelivered(.timedOut, "the message expired before a process received it")
    case .deadLettered(let reason): throw undelivered(.deadLettered, reason)
    }
  }

  /// Waits on this thread until the message is settled; returns nil if the deadline passes first.
  package func waitForEnd(until deadline: Instant?) -> Outcome.Status? {
    let end = progress.wait(until: deadline) { state -> Outcome.Status?? in
      state.end != nil || state.isAbandoned ? .some(state.end) : nil
    }
    if case .some(.some(let end)) = end { hear(end) }
    return end ?? nil
  }

  private func undelivered(_ code: WormholeError.Code, _ reason: String) -> WormholeError {
    WormholeError(code, "deliver message", id, because: reason)
  }

  private func takeTicket() -> Int {
    progress.withLock { state in
      state.next += 1
      state.tickets[state.next] = false
      return state.next
    }
  }

  private func wait(_ continuation: CheckedContinuation<Outcome.Status?, Never>, _ ticket: Int) {
    let now = progress.withLock { state -> (Outcome.Status?, Bool) in
      if let end = state.end { return (end, true) }
      // The wait was over before it could begin.
      if state.isAbandoned || state.tickets[ticket] == true { return (nil, true) }
      state.waiting[ticket] = continuation
      return (nil, false)
    }
    if now.1 { continuation.resume(returning: now.0) }
  }

  /// - Returns: the timer to cancel after the wait.
  private func giveUp(_ ticket: Int, after timeout: Duration) -> LaterCallID? {
    let deadline = time.now + timeout
    if let clock = time.moved {
      clock.ring(at: deadline) { [weak self] in self?.giveUp(ticket) }
      return nil
    }
    return CallThreads.background.add(at: deadline) { self.giveUp(ticket) }
  }

  private func giveUp(_ ticket: Int) {
    let waiting = progress.withLock { state -> CheckedContinuation<Outcome.Status?, Never>? in
      // A timer may fire when its wait has returned.
      guard state.tickets[ticket] != nil else { return nil }
      state.tickets[ticket] = true
      return state.waiting.removeValue(forKey: ticket)
    }
    waiting?.resume(returning: nil)
  }

  /// How many waits have not returned.
  var waitCount: Int { progress.withLock { $0.tickets.count } }

  /// Ends all waits, because the sender has left.
  func abandon() {
    let waiting = progress.signal { state in
      state.isAbandoned = true
      return Array(exchange(&state.waiting, with: [:]).values)
    }
    for continuation in waiting { continuation.resume(returning: nil) }
  }

  /// - Returns: whether the message was not settled before.
  @discardableResult
  package func end(_ end: Outcome.Status) -> Bool { self.end(end, nil) }

  /// - Parameter content: the sent content, if unknown before.
  @discardableResult
  func end(_ end: Outcome.Status, _ content: SentContent?) -> Bool {
    let waiting = progress.signal { state -> [CheckedContinuation<Outcome.Status?, Never>]? in
      guard state.end == nil else { return nil }
      state.end = end
      if let content { state.content = content }
      return Array(exchange(&state.waiting, with: [:]).values)
    }
    guard let waiting else { return false }
    for continuation in waiting { continuation.resume(returning: end) }
    return true
  }
}
