public import Dispatch
public import WormholeContainerStorage
internal import WormholeSyscalls

/// The outcome of a message sent by this member, perhaps in an earlier incarnation.
public struct Outcome: Hashable, Sendable {
  /// How a message ended.
  @nonexhaustive
  public enum Status: Hashable, Sendable {
    /// The receiver has handled the message.
    case delivered
    /// The message was cancelled before the receiver had it.
    case cancelled
    /// The message was not received in time.
    case expired
    /// The receiver could not handle the message, for this reason; its dead letters contain the
    /// message.
    case deadLettered(reason: String)
  }

  /// The id given by the sender.
  public let id: String
  /// The member to which the message was sent.
  public let to: String
  /// The kind given by the sender.
  public let kind: String
  /// How the message ended.
  public let status: Status
  /// How many messages were sent together under the id.
  public let count: Int
  /// The file sent with the message; nil for none.
  public let file: SentFile?
  /// The headers of the message.
  public let headers: [String: String]
  private let content: SentContent?

  /// Makes an outcome for tests of a program's handlers.
  ///
  /// To make an outcome with a value, see `WormholeTesting`.
  public init(
    id: String, to: String, kind: String, status: Status, count: Int = 1, file: SentFile? = nil,
    headers: [String: String] = [:]
  ) {
    (self.id, self.to, self.kind, self.status) = (id, to, kind, status)
    (self.count, self.file, self.headers) = (count, file, headers)
    content = nil
  }

  init(_ name: MessageName, _ end: Status, _ content: SentContent?) {
    (id, to, kind) = (name.id, content?.to ?? "", content?.kind ?? "")
    (self.status, count, file) = (end, name.count, content?.file)
    headers = content?.headers ?? [:]
    self.content = content
  }

  /// Returns the value that was sent, even by an earlier incarnation of the sender.
  ///
  /// Throws ``WormholeError/Code-swift.struct/notFound`` if a file was sent without a value, and
  /// ``WormholeError/Code-swift.struct/typeMismatch`` if the value does not decode as the type.
  public func value<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> Value {
    try known().value(as: type, of: id)
  }

  /// Returns the values that were sent together, in order.
  public func values<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> [Value] {
    try known().values(as: type, of: id)
  }

  private func known() throws(WormholeError) -> SentContent {
    if let content { return content }
    throw WormholeError(
      .notFound, "read message", id, because: "the content of the sent message is no longer stored")
  }

  /// The same outcome, without the sent values.
  var withoutContent: Outcome {
    Outcome(
      id: id, to: to, kind: kind, status: status, count: count, file: file, headers: headers)
  }
}

extension Member {
  /// Calls a closure with the outcome of each message, including pending outcomes of earlier
  /// incarnations of this member.
  ///
  /// Calls continue until the subscription is stopped or the member leaves, whether or not the
  /// returned subscription is retained. If the process dies while the closure runs, the outcome is
  /// reported again to the next process. Once the member has left, no outcome is reported any more,
  /// and a call of this function throws ``WormholeError/Code-swift.struct/notJoined``.
  @discardableResult
  public func watchOutcomes(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Outcome) -> Void
  ) throws(WormholeError) -> Subscription {
    if queue != nil { try TaskPool.start("watch outcomes of", name) }
    let queue: any CallQueue = queue ?? WorkQueue()
    return try watchOutcomes(on: queue) { outcome in
      handler(outcome)
      return true
    }
  }

  /// The outcomes of the messages sent by this member, also in earlier incarnations.
  ///
  /// The sequence ends when the member leaves.
  public var outcomes: Arrivals<Outcome> {
    let outbox = outbox
    return Arrivals { (handover) throws(WormholeError) in
      let listener = outbox.listener(on: WorkQueue()) { [weak handover] outcome in
        handover?.offer(outcome) ?? false
      } left: { [weak handover] in
        handover?.end()
      }
      try outbox.add(listener)
      return listener
    }
  }
}
