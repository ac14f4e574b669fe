public import FoundationEssentials
internal import Synchronization
public import Wormhole

extension Message {
  /// Creates a message that no member has sent, to call a handler with.
  ///
  /// The message behaves like a received message: its value is decoded from a property list, and a
  /// message that is released without an acknowledgement has failed. Its ``record`` contains the
  /// result.
  ///
  /// - Parameters:
  ///   - from: the member given as the sender; nil for a sender that has not joined.
  ///   - kind: the kind of the message; by default the name of the value's type.
  ///   - id: the sender's identifier for the message; by default a unique identifier.
  ///   - attempt: the number of the delivery attempt; from the second on it counts as redelivered.
  ///   - isRedelivered: whether the message may have been handled before, even in the first
  ///     attempt.
  ///   - headers: the headers of the message.
  ///   - file: the path of a file, of which a copy comes with the message: the copy can be read,
  ///     taken and lent like a received file, and is removed when the message is acknowledged.
  public static func make<Value: Encodable>(
    _ value: Value, from: String? = "phone", kind: String? = nil, id: String? = nil,
    attempt: Int = 1, isRedelivered: Bool = false, isUrgent: Bool = false, sent: Date = Date(),
    headers: [String: String] = [:], file: String? = nil
  ) throws(WormholeError) -> Message {
    precondition(attempt >= 1, "attempts are counted from 1")
    let attached = try file.map { (path) throws(WormholeError) in
      let container = try TemporaryContainer()
      return try MadeFile(path, in: try container.open(), keeping: container)
    }
    let made = try MadeMessage(
      value, id: id ?? freshIdentifier(), from: from, kind: kind, sent: sent, isUrgent: isUrgent,
      isRedelivered: isRedelivered, headers: headers, file: attached)
    return Message(made, attempt: attempt)
  }

  /// The record of a message that a test has created; nil for a received message.
  ///
  /// The record may be retained longer than the message.
  public var record: MessageRecord? { made.map(MessageRecord.init) }
}

/// The record of a message's handling.
public struct MessageRecord: Sendable {
  fileprivate let made: MadeMessage

  /// Whether the message is claimed: neither acknowledged nor requeued, and not failed.
  public var isClaimed: Bool { made.end == nil }

  /// Whether the message was acknowledged.
  public var isAcknowledged: Bool {
    if case .acknowledged = made.end { true } else { false }
  }

  /// Whether the message was requeued, which counts as no attempt.
  public var isRequeued: Bool {
    if case .putBack = made.end { true } else { false }
  }

  /// The reason of the failure; nil if the message has not failed.
  public var failure: String? {
    if case .failed(let reason) = made.end { reason } else { nil }
  }
}

extension Request {
  /// Creates a request that no member has made, to call a handler with.
  ///
  /// Its ``record`` contains the reply.
  ///
  /// - Parameters:
  ///   - from: the member given as the requester; nil for a requester that has not joined.
  ///   - kind: the kind of the request; by default the name of the value's type.
  ///   - headers: the headers of the request.
  ///   - timeLeft: the time for which the requester still waits.
  public static func make<Question: Encodable>(
    _ question: Question, from: String? = "phone", kind: String? = nil,
    headers: [String: String] = [:], timeLeft: Duration = .seconds(10)
  ) throws(WormholeError) -> Request {
    try Request(
      made: question, from: from, kind: kind, headers: headers, timeLeft: timeLeft,
      MadeRequest())
  }

  /// The record of a request that a test has created; nil for a received request.
  ///
  /// The record may be retained longer than the request.
  public var record: RequestRecord? { made.map(RequestRecord.init) }
}

/// The record of a request's handling.
public struct RequestRecord: Sendable {
  fileprivate let made: MadeRequest

  /// Returns the reply; nil if the request has no reply, or was refused.
  ///
  /// Throws `WormholeError.Code.typeMismatch` if the reply does not decode as that type.
  public func reply<Answer: Decodable>(
    as type: Answer.Type = Answer.self
  ) throws(WormholeError) -> Answer? {
    try made.answer(as: type)?.answer
  }

  /// The reason of the refusal; nil if the request was not refused.
  public var refusal: String? { made.refusal }

  /// Whether the request has a reply or was refused.
  public var hasEnded: Bool { made.hasEnded }
}

extension ImmediateMessage {
  /// Creates an immediate message that no member has sent, to call a handler with.
  public static func make<Value: Encodable>(
    _ value: Value, from: String? = "phone", kind: String? = nil, headers: [String: String] = [:]
  ) throws(WormholeError) -> ImmediateMessage {
    try ImmediateMessage(made: value, from: from, kind: kind, headers: headers)
  }
}

extension Context {
  /// Creates a context that no member has set, to call a handler with.
  public static func make<Value: Encodable>(
    _ value: Value, from: String = "phone", kind: String? = nil, sent: Date = Date()
  ) throws(WormholeError) -> Context {
    try Context(made: value, from: from, kind: kind, sent: sent)
  }
}

extension Sent {
  /// Creates a pending message that was never sent; ``finish(_:)`` or a cancellation ends the
  /// message.
  ///
  /// - Parameters:
  ///   - id: the sender's identifier for the message; by default a unique identifier.
  ///   - to: the member given as the receiver.
  ///   - count: the number of messages in the batch.
  ///
  /// The content of the message cannot be read: see ``make(sending:kind:file:id:to:)``.
  public static func make(
    id: String? = nil, to: String = "watch", count: Int = 1
  ) throws(WormholeError) -> Sent {
    precondition((1...64).contains(count), "a file holds from 1 to 64 messages")
    return try Sent(made: id ?? freshIdentifier(), to: to, count: count)
  }

  /// Creates a pending message with its content, like a message of an earlier incarnation.
  ///
  /// - Parameters:
  ///   - value: the value given as the content.
  ///   - kind: the kind of the message; by default the name of the value's type.
  ///   - file: the file given as sent with the message.
  ///   - id: the sender's identifier for the message; by default a unique identifier.
  ///   - to: the member given as the receiver.
  public static func make<Value: Encodable>(
    sending value: Value, kind: String? = nil, file: SentFile? = nil, id: String? = nil,
    to: String = "watch"
  ) throws(WormholeError) -> Sent {
    let content = try MadeContent(value, to: to, kind: kind, file: file)
    return try Sent(made: id ?? freshIdentifier(), to: to, count: 1, content)
  }

  /// Settles a message that a test has created, and notifies the waiters; returns whether the
  /// message was still pending.
  @discardableResult
  public func finish(_ end: Outcome.Status) -> Bool {
    precondition(isMade, "finish is only for a message that a test has created")
    return self.end(end)
  }
}

extension Outcome {
  /// Creates the outcome of a message that was never sent, with the content of the message.
  ///
  /// - Parameters:
  ///   - value: the value given as the content.
  ///   - status: the outcome of the message.
  ///   - kind: the kind of the message; by default the name of the value's type.
  ///   - file: the file given as sent with the message.
  ///   - id: the sender's identifier for the message; by default a unique identifier.
  ///   - to: the member given as the receiver.
  public static func make<Value: Encodable>(
    sending value: Value, status: Status, kind: String? = nil, file: SentFile? = nil,
    id: String? = nil, to: String = "watch"
  ) throws(WormholeError) -> Outcome {
    let content = try MadeContent(value, to: to, kind: kind, file: file)
    return try Outcome(made: id ?? freshIdentifier(), to: to, count: 1, end: status, content)
  }
}

private let lastIdentifier = Atomic<Int>(0)

private func freshIdentifier() -> String {
  "made-\(lastIdentifier.add(1, ordering: .relaxed).newValue)"
}
