public import Dispatch
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// How a message ended that this member has sent, perhaps in an earlier life.
  public struct Outcome: Hashable, Sendable {
    /// What became of a message.
    @nonexhaustive
    public enum End: Hashable, Sendable {
      /// The receiver has handled it.
      case delivered
      /// It was taken back before the receiver had it.
      case cancelled
      /// It was not received in time.
      case expired
      /// The receiver could not handle it, for this reason; it is among its dead letters.
      case givenUp(String)
    }

    /// The id it was sent with.
    public let id: String
    /// Whom it was sent to.
    public let to: String
    /// What it was called.
    public let kind: String
    /// What became of it.
    public let end: End
    /// How many messages were sent together under the id.
    public let count: Int
    /// The file that was sent with it; nil if none was.
    public let file: SentFile?
    private let content: SentContent?

    /// What a member is told; for tests of what is done with it.
    ///
    /// To make one with a value, see `WormholeTesting`.
    public init(
      id: String, to: String, kind: String, end: End, count: Int = 1, file: SentFile? = nil
    ) {
      (self.id, self.to, self.kind, self.end) = (id, to, kind, end)
      (self.count, self.file) = (count, file)
      content = nil
    }

    init(_ name: MessageName, _ end: End, _ content: SentContent?) {
      (id, to, kind) = (name.id, content?.to ?? "", content?.kind ?? "")
      (self.end, count, file) = (end, name.count, content?.file)
      self.content = content
    }

    /// What was sent, also if an earlier life of the sender has sent it.
    ///
    /// Throws ``WormholeError/Code-swift.struct/notFound`` if a file was sent and nothing else, and
    /// ``WormholeError/Code-swift.struct/typeMismatch`` if it does not decode as that type.
    public func value<Value: Decodable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      try known().value(as: type, of: id)
    }

    /// What was sent together, in order.
    public func values<Value: Decodable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> [Value] {
      try known().values(as: type, of: id)
    }

    private func known() throws(WormholeError) -> SentContent {
      if let content { return content }
      throw WormholeError(
        .notFound, "read message", id, because: "what was sent is no longer known")
    }

    /// The same, without what was sent.
    var withoutContent: Outcome {
      Outcome(id: id, to: to, kind: kind, end: end, count: count, file: file)
    }
  }
}

extension Wormhole.Member {
  /// Calls a closure with how each message ended, also those that earlier lives of this member have
  /// sent and were not told of.
  ///
  /// It goes on until it is stopped or the member leaves, whoever keeps what this returns.
  /// Should the process die while the closure runs, the next one is told again. Once the member has
  /// left nothing more is told, and to ask for it throws
  /// ``WormholeError/Code-swift.struct/notJoined``.
  @discardableResult
  public func watchOutcomes(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Wormhole.Outcome) -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    let queue = queue ?? DispatchQueue(label: "wormhole.outcomes")
    return try watchOutcomes(on: queue) { outcome in
      handler(outcome)
      return true
    }
  }

  /// How each message ended that this member has sent, also in earlier lives; it ends when the
  /// member leaves.
  public var outcomes: Wormhole.Arrivals<Wormhole.Outcome> {
    let outbox = outbox
    return Wormhole.Arrivals { (handover) throws(WormholeError) in
      let queue = DispatchQueue(label: "wormhole.outcomes")
      let listener = outbox.listener(on: queue) { [weak handover] outcome in
        handover?.offer(outcome) ?? false
      } left: { [weak handover] in
        handover?.end()
      }
      try outbox.add(listener)
      return listener
    }
  }
}
