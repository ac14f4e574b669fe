public import SharedContainer
internal import Synchronization
internal import Syscalls

/// Closures of actors, and asynchronous ones.
extension Wormhole.Member {
  /// Gives an asynchronous closure the messages that this member is sent, one after the other.
  ///
  /// As ``receive(kinds:acknowledging:on:_:)``: the next one comes once the closure has returned.
  /// It is called from a task of the library's own, on the actor that it is isolated to, if it is
  /// to one; whoever stops on that very actor can be sure that it is not entered again.
  ///
  /// A call under way is not waited for, by ``Wormhole/Subscription/stop()`` or when the member
  /// leaves; what it handles then comes again, unless it has acknowledged that before. So another
  /// receiver that begins at once may be given later messages before it.
  ///
  /// - Parameters:
  ///   - kinds: which messages it wants, by what the sender called them; nil for all.
  ///   - acknowledgement: whether returning acknowledges.
  ///   - handler: gets each message.
  @discardableResult
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Wormhole.Acknowledgement = .automatic,
    _ handler: @escaping @isolated(any) @Sendable (Wormhole.Message) async throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try receive(kinds, acknowledgement, isolation: handler.isolation) { try await handler($0) }
  }

  /// Gives a closure of the main actor the messages that this member is sent, one after the other:
  /// `receive { @MainActor message in … }`.
  ///
  /// As with an asynchronous closure.
  ///
  /// - Parameters:
  ///   - kinds: which messages it wants, by what the sender called them; nil for all.
  ///   - acknowledgement: whether returning acknowledges.
  ///   - handler: gets each message.
  @discardableResult
  public func receive(
    kinds: Set<String>? = nil, acknowledging acknowledgement: Wormhole.Acknowledgement = .automatic,
    _ handler: @escaping @MainActor @Sendable (Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try receive(kinds, acknowledgement, isolation: MainActor.shared) { try await handler($0) }
  }

  /// Gives an asynchronous closure the values that this member is sent under the name of their
  /// type.
  ///
  /// As with messages; a value that does not decode is a failed attempt.
  ///
  /// - Parameters:
  ///   - type: what is received.
  ///   - kind: what the sender called it; by default the name of the type.
  ///   - handler: gets each value, and its message.
  @discardableResult
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil,
    _ handler: @escaping @isolated(any) @Sendable (Value, Wormhole.Message) async throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    let kinds: Set = [kind ?? MessageKind.name(of: type)]
    return try receive(kinds, .automatic, isolation: handler.isolation) { message in
      try await handler(message.value(as: type), message)
    }
  }

  /// Gives a closure of the main actor the values that this member is sent under the name of their
  /// type.
  ///
  /// As with an asynchronous closure.
  ///
  /// - Parameters:
  ///   - type: what is received.
  ///   - kind: what the sender called it; by default the name of the type.
  ///   - handler: gets each value, and its message.
  @discardableResult
  public func receive<Value: Decodable & Sendable>(
    _ type: Value.Type, kind: String? = nil,
    _ handler: @escaping @MainActor @Sendable (Value, Wormhole.Message) throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    let kinds: Set = [kind ?? MessageKind.name(of: type)]
    return try receive(kinds, .automatic, isolation: MainActor.shared) { message in
      try await handler(message.value(as: type), message)
    }
  }

  private func receive(
    _ kinds: Set<String>?, _ acknowledgement: Wormhole.Acknowledgement,
    isolation: (any Actor)?,
    _ handler: nonisolated(nonsending) @escaping @Sendable (Message) async throws -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try WormholeError.checkQueues("receive with", "an asynchronous closure")
    let receiver = TaskReceiver(
      Brief(try Pump(mailbox, kinds)), acknowledgement, isolation: isolation, handler)
    let subscription = live.subscribe(receiver)
    Task.detached { await receiver.run() }
    return subscription
  }
}

/// One receiver with an asynchronous closure.
private final class TaskReceiver: Lasting {
  private let pump: Brief<Pump>
  private let acknowledgement: Wormhole.Acknowledgement
  private let isolation: (any Actor)?
  private let handler: nonisolated(nonsending) @Sendable (Message) async throws -> Void
  private let isStopped = Atomic<Bool>(false)

  init(
    _ pump: Brief<Pump>, _ acknowledgement: Wormhole.Acknowledgement, isolation: (any Actor)?,
    _ handler: nonisolated(nonsending) @escaping @Sendable (Message) async throws -> Void
  ) {
    self.pump = pump
    self.acknowledgement = acknowledgement
    self.isolation = isolation
    self.handler = handler
  }

  private var hasStopped: Bool { isStopped.load(ordering: .acquiring) }

  func run() async {
    while !hasStopped, let work = await pump.one.next() {
      switch work {
      case .message(let message): await handle(message)
      case .file(let file):
        let hand = Hand(file)
        while !hasStopped, let message = hand.next() { await handle(message) }
      }
    }
  }

  private func handle(_ message: Message) async {
    do {
      guard try await call(message, on: isolation) else { return message.putBack() }
      if acknowledgement == .automatic { message.acknowledgeForSure() }
    } catch {
      pump.one.mailbox.reject(message, error)
    }
  }

  /// Asked on that actor, so that nothing comes between the question and the call.
  private func call(_ message: Message, on actor: isolated (any Actor)?) async throws -> Bool {
    if hasStopped { return false }
    try await handler(message)
    return true
  }

  func stop() {
    isStopped.store(true, ordering: .releasing)
    pump.stop()
  }
}
