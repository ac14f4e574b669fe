public import Dispatch
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// How a message ended that this member has sent, perhaps in an earlier life.
  public struct Outcome: Hashable, Sendable {
    /// What became of a message.
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

    /// What a member is told; for tests of what is done with it.
    public init(id: String, to: String, kind: String, end: End) {
      self.id = id
      self.to = to
      self.kind = kind
      self.end = end
    }
  }
}

extension Wormhole.Member {
  /// Calls a closure with how each message ended, also those that earlier lives of this member have
  /// sent and were not told of.
  ///
  /// Should the process die while the closure runs, the next one is told again.
  public func watchOutcomes(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Wormhole.Outcome) -> Void
  ) throws(WormholeError) -> Wormhole.OutcomeWatching {
    let queue = queue ?? DispatchQueue(label: "wormhole.outcomes")
    let listener = OutcomeListener(outbox, on: queue) { outcome in
      handler(outcome)
      return true
    }
    try outbox.add(listener)
    return Wormhole.OutcomeWatching(listener)
  }

  /// How each message ended that this member has sent, also in earlier lives.
  public var outcomes: Wormhole.Arrivals<Wormhole.Outcome> {
    let outbox = outbox
    return Wormhole.Arrivals { (handover) throws(WormholeError) in
      let queue = DispatchQueue(label: "wormhole.outcomes")
      let listener = OutcomeListener(outbox, on: queue) { [weak handover] outcome in
        handover?.offer(outcome) ?? false
      }
      try outbox.add(listener)
      return Wormhole.OutcomeWatching(listener)
    }
  }
}

extension Wormhole {
  /// A closure that is told how messages ended; ends when it is stopped, or when nobody keeps it.
  public final class OutcomeWatching: Sendable {
    private let listener: OutcomeListener

    init(_ listener: OutcomeListener) { self.listener = listener }

    deinit { listener.stop() }

    /// Ends it; once this has returned, the closure is not called again.
    public func stop() { listener.stop() }
  }
}

/// One who is told of outcomes, one after the other.
final class OutcomeListener: Sendable {
  private let outbox: Outbox
  private let queue: DispatchQueue
  private let handler: @Sendable (Wormhole.Outcome) -> Bool
  private let gate = CallGate()
  private let pending = Monitor<Set<ReceiptName>>([])

  /// - Parameter handler: answers whether it was heard.
  init(
    _ outbox: Outbox, on queue: DispatchQueue,
    _ handler: @escaping @Sendable (Wormhole.Outcome) -> Bool
  ) {
    self.outbox = outbox
    self.queue = queue
    self.handler = handler
  }

  func tell(_ receipt: ReceiptName, _ outcome: Wormhole.Outcome) {
    pending.withLock { _ = $0.insert(receipt) }
    queue.async {
      self.gate.call {
        guard self.handler(outcome) else { return }
        let isMine = self.pending.withLock { $0.remove(receipt) } != nil
        if isMine { self.outbox.done(receipt) }
      }
    }
  }

  /// What it was told of and has not heard.
  func abandon() -> Set<ReceiptName> {
    pending.withLock { pending in
      defer { pending = [] }
      return pending
    }
  }

  func stop() {
    gate.close()
    gate.drain()
    outbox.remove(self)
  }
}
