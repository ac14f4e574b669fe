public import Dispatch
internal import Synchronization
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Where the reply to a request goes: to the member or guest that sent it, or to the test that made
/// the request.
protocol Requester: Sendable {
  func take(_ reply: LiveAnswer, to header: LiveFile.Header) throws(WormholeError)
}

/// The requester of a request that arrived in a live mailbox.
struct LiveRequester: Requester {
  let live: LiveMailbox
  let id: String

  func take(_ reply: LiveAnswer, to header: LiveFile.Header) throws(WormholeError) {
    try live.answer(header, id, reply)
  }
}

/// A request whose sender waits for the reply.
///
/// The receiver replies or refuses once, from any thread and at any time before the deadline. If
/// the receiver releases the request without either, the requester waits until the deadline, and
/// a warning is logged.
public final class Request: Sendable {
  let core: LiveMessage
  let requester: any Requester
  private let isAnswered = Atomic<Bool>(false)

  init(_ core: LiveMessage, from requester: any Requester) {
    self.core = core
    self.requester = requester
  }

  deinit {
    guard !isAnswered.load(ordering: .acquiring), !core.isLate else { return }
    core.container?.log(
      .warning, "a request of kind '\(core.header.kind)' of '\(core.header.from)' got no reply",
      about: core.subject)
  }

  /// The member that sent the request; nil if the sender has not joined.
  public var from: String? { core.from }

  /// The kind that the requester gave; by default the name of the value's type.
  public var kind: String { core.header.kind }

  /// The headers that the requester gave; see ``SendOptions/headers``.
  public var headers: [String: String] { core.header.headers?.fields ?? [:] }

  /// The time for which the requester still waits.
  public var timeLeft: Duration { core.timeLeft }

  /// Returns the content of the request.
  public func value<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> Value {
    try core.value(as: type, "read request")
  }

  /// Replies to the request.
  ///
  /// A second reply does nothing, and a warning is logged. A reply to a requester that is gone
  /// does nothing.
  public func reply<Value: Encodable>(_ value: Value) throws(WormholeError) {
    let limits = core.limits
    try end(
      WormholeError.writing("reply to request", kind) { try LiveAnswer(value, limits: limits) })
  }

  /// Refuses the request, for the given reason.
  public func refuse(_ reason: String) {
    do throws(WormholeError) {
      try end(
        WormholeError.writing("refuse request", kind) {
          .content(try BinaryEncoder().encode(LiveFile.RefusalBody(error: reason)))
        })
    } catch {
      core.container?.log(.error, error, about: core.subject)
    }
  }

  private func end(_ answer: LiveAnswer) throws(WormholeError) {
    guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else {
      core.container?.log(
        .warning, "a request of kind '\(kind)' of '\(core.header.from)' has a reply already",
        about: core.subject)
      return
    }
    do throws(WormholeError) {
      try requester.take(answer, to: core.header)
    } catch {
      // No reply was sent: the request can still be refused, and the requester need not wait.
      isAnswered.store(false, ordering: .releasing)
      throw error
    }
  }
}

/// An immediate message.
public struct ImmediateMessage: Sendable {
  let core: LiveMessage

  init(_ core: LiveMessage) { self.core = core }

  /// The member that sent the message; nil if the sender has not joined.
  public var from: String? { core.from }

  /// The kind that the sender gave; by default the name of the value's type.
  public var kind: String { core.header.kind }

  /// The headers that the sender gave; see ``SendOptions/headers``.
  public var headers: [String: String] { core.header.headers?.fields ?? [:] }

  /// Returns the content of the message.
  public func value<Value: Decodable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> Value {
    try core.value(as: type, "read message")
  }
}

// MARK: Handlers

extension Member {
  /// Waits until the contexts that closures have taken count as received, and until the senders of
  /// immediate messages that closures have taken have been sent a confirmation.
  package func settle() {
    contexts.settle()
    live.settle()
  }

  /// The number of arrivals, right after joining, without a registered handler so far.
  package var unclaimed: Int { live.earlyCount }

  /// Replies to requests of a type, until the subscription is stopped or the member leaves.
  ///
  /// An error that the closure throws is sent to the requester. The closure is called on a thread
  /// for which no other code waits, with one request at a time. If replies take long, use an
  /// asynchronous closure, which serves several requests at a time. Among several closures for one
  /// kind, the latest one replies.
  @discardableResult
  public func respond<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
    to type: Question.Type, kind: String? = nil, on queue: DispatchQueue? = nil,
    _ answer: @escaping @Sendable (Question) throws -> Answer
  ) -> Subscription {
    respond(toKind: kind ?? MessageKind.name(of: type), on: queue) { request in
      do {
        try request.reply(answer(request.value(as: type)))
      } catch {
        request.refuse("\(error)")
      }
    }
  }

  /// Replies to requests of a type, several at a time.
  ///
  /// ``Subscription/stop()`` and leaving cancel the tasks of the calls in progress, unless such a
  /// call itself stops the subscription. A closure that returns nevertheless has replied.
  @discardableResult
  public func respond<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
    to type: Question.Type, kind: String? = nil,
    _ answer: @escaping @Sendable (Question) async throws -> Answer
  ) -> Subscription {
    let hands = LiveHands(mostBytes: live.container.options.maximumValueBytes)
    let (tasks, name) = (CallTasks(), live.home.name)
    return live.respond(toKind: kind ?? MessageKind.name(of: type), on: nil, tasks: tasks) {
      request in
      guard hands.take(request.core) else { return request.refuse(LiveMailbox.tooMuch) }
      tasks.begin {
        defer { hands.release(request.core) }
        guard !request.core.isLate else { return request.core.tellLate() }
        // The subscription may have ended since the request reached it.
        guard !Task.isCancelled else { return request.refuseUnheard(by: name) }
        do {
          try request.reply(await answer(request.value(as: type)))
        } catch {
          request.refuse("\(error)")
        }
      }
    }
  }

  /// Calls a closure with requests, for a reply at once or later, until the subscription is stopped
  /// or the member leaves.
  ///
  /// - Parameters:
  ///   - kind: the kind that the requester gave; nil for all kinds without a closure of their own.
  ///   - queue: the queue for the closure; by default a thread that no other code waits for.
  ///   - handler: receives each request.
  @discardableResult
  public func respond(
    toKind kind: String?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Request) -> Void
  ) -> Subscription {
    live.respond(toKind: kind, on: queue, handler)
  }

  /// Calls a closure with immediate messages, until the subscription is stopped or the member
  /// leaves.
  ///
  /// - Parameters:
  ///   - kinds: the kinds that the senders gave; nil for all.
  ///   - queue: the queue for the closure; by default a thread that no other code waits for.
  ///   - handler: receives each message.
  @discardableResult
  public func receiveImmediate(
    kinds: Set<String>? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (ImmediateMessage) -> Void
  ) -> Subscription {
    takeImmediate(kinds: kinds, on: queue) { message in
      handler(message)
      return true
    }
  }

  /// As `receiveImmediate`, with a closure that returns whether it has taken the message.
  ///
  /// A sender that waits for a confirmation is notified of the result.
  package func takeImmediate(
    kinds: Set<String>?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (ImmediateMessage) -> Bool
  ) -> Subscription {
    live.receiveImmediate(kinds: kinds, on: queue, handler)
  }
}

// MARK: For tasks

extension Member {
  /// Calls an asynchronous closure with immediate messages, one after the other, until the
  /// subscription is stopped or the member leaves.
  ///
  /// The closure is called from a task of the library, on the actor that the closure is isolated
  /// to, if any. Messages that arrive during a call wait, within the limits of space and of their
  /// deadlines. ``Subscription/stop()`` cancels the task of a call in progress, unless the call
  /// itself stops the subscription, and does not wait for the call; ``Subscription/finished()``
  /// does.
  ///
  /// - Parameters:
  ///   - kinds: the kinds that the senders gave; nil for all.
  ///   - handler: receives each message.
  @discardableResult
  public func receiveImmediate(
    kinds: Set<String>? = nil,
    _ handler: @escaping @isolated(any) @Sendable (ImmediateMessage) async -> Void
  ) -> Subscription {
    live.receiveImmediate(kinds: kinds, IsolatedHandler(handler))
  }

  /// Calls a closure of the main actor with immediate messages, until the subscription is stopped
  /// or the member leaves: `receiveImmediate { @MainActor message in … }`.
  ///
  /// - Parameters:
  ///   - kinds: the kinds that the senders gave; nil for all.
  ///   - handler: receives each message.
  @discardableResult
  public func receiveImmediate(
    kinds: Set<String>? = nil,
    _ handler: @escaping @MainActor @Sendable (ImmediateMessage) -> Void
  ) -> Subscription {
    live.receiveImmediate(kinds: kinds, IsolatedHandler(handler))
  }
}

extension LiveMailbox {
  fileprivate func receiveImmediate(
    kinds: Set<String>?, _ handler: IsolatedHandler<ImmediateMessage>
  ) -> Subscription {
    let gate = CallGate()
    let (messages, feed) = AsyncStream<ImmediateMessage>.makeStream()
    let hands = LiveHands(mostBytes: container.options.maximumValueBytes)
    let (storage, subject) = (container.storage, LogSubject(member: home.name))
    let number = add(hearing: kinds) { message in
      guard hands.take(message.core) else {
        storage.log(
          .warning,
          "dropped an immediate message of kind '\(message.kind)': too many messages wait for the "
            + "task of the handler",
          about: subject)
        return false
      }
      if case .terminated = feed.yield(message) {
        hands.release(message.core)
        return nil
      }
      return true
    }
    let tasks = CallTasks()
    tasks.begin {
      for await message in messages {
        if message.core.isLate {
          message.core.tellLate()
        } else {
          await gate.call(handler, message, on: handler.isolation)
        }
        hands.release(message.core)
      }
    }
    return subscribe(LiveHandler(self, number, gate, tasks) { feed.finish() })
  }
}

/// Guests that receive requests from processes with the guest's address.
extension Guest {
  /// The address of the guest, for `peer(guest:)`; no other guest ever has the same address.
  package var address: String { home.escaped }

  /// As the member's function.
  package func respond(
    toKind kind: String?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Request) -> Void
  ) -> Subscription {
    live.respond(toKind: kind, on: queue, handler)
  }

  /// As the member's function.
  package func receiveImmediate(
    kinds: Set<String>? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (ImmediateMessage) -> Void
  ) -> Subscription {
    live.receiveImmediate(kinds: kinds, on: queue) {
      handler($0)
      return true
    }
  }

  /// Returns a peer for another guest, by its address; this guest sends the requests.
  package func peer(guest address: String) -> Peer {
    Peer(container: container, member: nil, guest: self, folder: .guests, name: address)
  }
}

extension SharedContainer {
  /// Returns a peer for a guest, by its address.
  package func peer(guest address: String) -> Peer {
    Peer(container: self, member: nil, folder: .guests, name: address)
  }
}

extension Member {
  /// Returns a peer for a guest, by its address.
  package func peer(guest address: String) -> Peer {
    Peer(container: container, member: self, folder: .guests, name: address)
  }
}

/// A handler of requests, or of immediate messages.
private final class LiveHandler: Stoppable {
  private let live: LiveMailbox
  private let number: Int
  private let gate: CallGate
  /// The tasks that call an asynchronous closure; nil for any other closure.
  let callTasks: CallTasks?
  private let ended: @Sendable () -> Void

  init(
    _ live: LiveMailbox, _ number: Int, _ gate: CallGate, _ tasks: CallTasks? = nil,
    ended: @escaping @Sendable () -> Void = {}
  ) {
    self.live = live
    self.number = number
    self.gate = gate
    callTasks = tasks
    self.ended = ended
  }

  var callGate: CallGate? { gate }

  func stop() {
    guard live.container.storage.isOwned else { return }
    end()
    gate.drain()
  }

  func end() {
    live.remove(number)
    gate.close()
    ended()
    callTasks?.cancel()
  }
}

extension Request {
  fileprivate func refuseUnheard(by name: String) {
    refuse("'\(name)' has no handler for requests of kind '\(kind)' any more")
  }
}

extension LiveMailbox {
  static var tooMuch: String { "too many requests wait for the queue of the handler" }

  fileprivate func respond(
    toKind kind: String?, on queue: DispatchQueue?, tasks: CallTasks? = nil,
    _ handler: @escaping @Sendable (Request) -> Void
  ) -> Subscription {
    let (gate, name) = (CallGate(), home.name)
    let call = { @Sendable (request: Request) in
      // The handler may have been stopped since the request reached it.
      if gate.call({ handler(request) }) { return }
      request.refuseUnheard(by: name)
    }
    let calls = queue.map { queue in
      LiveCalls<Request>(on: queue, mostBytes: container.options.maximumValueBytes, call)
    }
    let number = add(answering: kind) { request in
      guard let calls else { return call(request) }
      if !calls.add(request, request.core) { request.refuse(LiveMailbox.tooMuch) }
    }
    return subscribe(LiveHandler(self, number, gate, tasks))
  }

  fileprivate func receiveImmediate(
    kinds: Set<String>?, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (ImmediateMessage) -> Bool
  ) -> Subscription {
    let gate = CallGate()
    let calls = queue.map { queue in
      LiveCalls<ImmediateMessage>(on: queue, mostBytes: container.options.maximumValueBytes) {
        message in gate.call { _ = handler(message) }
      }
    }
    let (storage, subject) = (container.storage, LogSubject(member: home.name))
    let number = add(hearing: kinds) { message in
      guard let calls else {
        var isHeard: Bool?
        gate.call { isHeard = handler(message) }
        return isHeard
      }
      if calls.add(message, message.core) { return true }
      storage.log(
        .warning,
        "dropped an immediate message of kind '\(message.kind)': too many messages wait for the "
          + "queue of the handler",
        about: subject)
      return false
    }
    return subscribe(LiveHandler(self, number, gate))
  }
}
