public import FoundationEssentials
internal import Synchronization
public import Wormhole

extension Wormhole.Message {
  /// A message that nobody has sent, to call a handler with.
  ///
  /// It behaves as a received one does: its value is decoded from a property list, and one that is
  /// let go of without a word has failed. What was done to it stands in its ``record``.
  ///
  /// - Parameters:
  ///   - from: the member who is said to have sent it; nil for one who has not joined.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - id: the sender's name for it; by default one that is not given twice.
  ///   - attempt: which attempt to handle it this is; from the second on it counts as redelivered.
  ///   - isRedelivered: whether it may have been handled before, though this is the first attempt.
  ///   - file: the path of a file, of which a copy comes with it: to be read, taken and lent as one
  ///     that was received, and removed when the message is acknowledged.
  public static func make<Value: Encodable>(
    _ value: Value, from: String? = "phone", kind: String? = nil, id: String? = nil,
    attempt: Int = 1, isRedelivered: Bool = false, isUrgent: Bool = false, sent: Date = Date(),
    file: String? = nil
  ) throws(WormholeError) -> Wormhole.Message {
    precondition(attempt >= 1, "attempts are counted from 1")
    let attached = try file.map { (path) throws(WormholeError) in
      let container = try TemporaryContainer()
      return try MadeFile(path, in: try container.open(), keeping: container)
    }
    let made = try MadeMessage(
      value, id: id ?? freshIdentifier(), from: from, kind: kind, sent: sent, isUrgent: isUrgent,
      isRedelivered: isRedelivered, file: attached)
    return Wormhole.Message(made, attempt: attempt)
  }

  /// What was done to a message that a test has made; nil for one that was received.
  ///
  /// It may be kept longer than the message.
  public var record: MessageRecord? { made.map(MessageRecord.init) }
}

/// What was done to a message.
public struct MessageRecord: Sendable {
  fileprivate let made: MadeMessage

  /// Whether it is neither acknowledged nor has failed.
  public var isInHand: Bool { made.end == nil }

  /// Whether it was acknowledged.
  public var isAcknowledged: Bool {
    if case .acknowledged = made.end { true } else { false }
  }

  /// Whether it was left to others, which counts as no attempt.
  public var isPutBack: Bool {
    if case .putBack = made.end { true } else { false }
  }

  /// Why it has failed; nil if it has not.
  public var failure: String? {
    if case .failed(let reason) = made.end { reason } else { nil }
  }
}

extension Wormhole.Request {
  /// A request that nobody has made, to call a handler with.
  ///
  /// What it was answered with stands in its ``record``.
  ///
  /// - Parameters:
  ///   - from: the member who is said to ask; nil for one who has not joined.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - timeLeft: how long the asker is said to wait.
  public static func make<Question: Encodable>(
    _ question: Question, from: String? = "phone", kind: String? = nil,
    timeLeft: Duration = .seconds(10)
  ) throws(WormholeError) -> Wormhole.Request {
    try Wormhole.Request(
      made: question, from: from, kind: kind, timeLeft: timeLeft, MadeRequest())
  }

  /// What became of a request that a test has made; nil for one that somebody has asked.
  ///
  /// It may be kept longer than the request.
  public var record: RequestRecord? { made.map(RequestRecord.init) }
}

/// What became of a request.
public struct RequestRecord: Sendable {
  fileprivate let made: MadeRequest

  /// What it was answered with; nil if it was not, or was refused.
  ///
  /// Throws `WormholeError.Code.typeMismatch` if the answer does not decode as that
  /// type.
  public func answer<Answer: Decodable>(
    as type: Answer.Type = Answer.self
  ) throws(WormholeError) -> Answer? {
    try made.answer(as: type)?.answer
  }

  /// Why it was refused; nil if it was not.
  public var refusal: String? { made.refusal }

  /// Whether it was answered or refused.
  public var hasEnded: Bool { made.hasEnded }
}

extension Wormhole.ImmediateMessage {
  /// A message for now that nobody has sent, to call a handler with.
  public static func make<Value: Encodable>(
    _ value: Value, from: String? = "phone", kind: String? = nil
  ) throws(WormholeError) -> Wormhole.ImmediateMessage {
    try Wormhole.ImmediateMessage(made: value, from: from, kind: kind)
  }
}

extension Wormhole.Context {
  /// A state that nobody has told, to call a handler with.
  public static func make<Value: Encodable>(
    _ value: Value, from: String = "phone", kind: String? = nil, sent: Date = Date()
  ) throws(WormholeError) -> Wormhole.Context {
    try Wormhole.Context(made: value, from: from, kind: kind, sent: sent)
  }
}

extension Wormhole.Sent {
  /// A message on its way that nobody has sent: it ends when the test says so, or is cancelled.
  ///
  /// - Parameters:
  ///   - id: the sender's name for it; by default one that is not given twice.
  ///   - to: whom it is said to be sent to.
  ///   - count: how many messages it is said to hold.
  ///
  /// What was sent with it cannot be read: see ``make(sending:kind:file:id:to:)``.
  public static func make(
    id: String? = nil, to: String = "watch", count: Int = 1
  ) throws(WormholeError) -> Wormhole.Sent {
    precondition((1...64).contains(count), "a file holds from 1 to 64 messages")
    return try Wormhole.Sent(made: id ?? freshIdentifier(), to: to, count: count)
  }

  /// The same with what is said to have been sent, as one of an earlier life.
  ///
  /// - Parameters:
  ///   - value: what is said to have been sent.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - file: the file that is said to have been sent with it.
  ///   - id: the sender's name for it; by default one that is not given twice.
  ///   - to: whom it is said to be sent to.
  public static func make<Value: Encodable>(
    sending value: Value, kind: String? = nil, file: Wormhole.SentFile? = nil, id: String? = nil,
    to: String = "watch"
  ) throws(WormholeError) -> Wormhole.Sent {
    let content = try MadeContent(value, to: to, kind: kind, file: file)
    return try Wormhole.Sent(made: id ?? freshIdentifier(), to: to, count: 1, content)
  }

  /// Ends one that a test has made, and tells those who wait; whether it had not ended before.
  @discardableResult
  public func finish(_ end: Wormhole.Outcome.End) -> Bool {
    precondition(isMade, "only what a test has made ends at its word")
    return self.end(end)
  }
}

extension Wormhole.Outcome {
  /// How a message ended that nobody has sent, with what is said to have been sent.
  ///
  /// - Parameters:
  ///   - value: what is said to have been sent.
  ///   - end: what became of it.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - file: the file that is said to have been sent with it.
  ///   - id: the sender's name for it; by default one that is not given twice.
  ///   - to: whom it is said to be sent to.
  public static func make<Value: Encodable>(
    sending value: Value, end: End, kind: String? = nil, file: Wormhole.SentFile? = nil,
    id: String? = nil, to: String = "watch"
  ) throws(WormholeError) -> Wormhole.Outcome {
    let content = try MadeContent(value, to: to, kind: kind, file: file)
    return try Wormhole.Outcome(made: id ?? freshIdentifier(), to: to, count: 1, end: end, content)
  }
}

private let lastIdentifier = Atomic<Int>(0)

private func freshIdentifier() -> String {
  "made-\(lastIdentifier.add(1, ordering: .relaxed).newValue)"
}
