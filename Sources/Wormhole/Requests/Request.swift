public import Dispatch
internal import PropertyLists
public import SharedContainer
internal import Synchronization
internal import Syscalls

extension Wormhole {
  /// A question that somebody waits for the answer of.
  ///
  /// It is answered or refused once, from any thread and at any time before its deadline; whoever
  /// lets go of it without either leaves the asker waiting until then, and the log is told.
  public final class Request: Sendable {
    let core: LiveMessage
    private let asker: Asker
    private let isAnswered = Atomic<Bool>(false)

    /// Where the answer goes.
    private enum Asker {
      case live(LiveMailbox, id: String)
      case test(MadeRequest)
    }

    init(_ core: LiveMessage, id: String, _ live: LiveMailbox) {
      self.core = core
      asker = .live(live, id: id)
    }

    init(_ core: LiveMessage, _ record: MadeRequest) {
      self.core = core
      asker = .test(record)
    }

    /// What a test reads the answer from, if one has made it.
    package var made: MadeRequest? {
      if case .test(let record) = asker { record } else { nil }
    }

    deinit {
      guard !isAnswered.load(ordering: .acquiring), !core.isLate else { return }
      core.hole?.log(
        .warning, "a request '\(core.header.kind)' of '\(core.header.from)' was never answered",
        about: core.subject)
    }

    /// The member who asks; nil if it is somebody who has not joined.
    public var from: String? { core.from }

    /// What the asker called it: by default the name of the value's type.
    public var kind: String { core.header.kind }

    /// How long the asker still waits.
    public var timeLeft: Duration { core.timeLeft }

    /// What is asked.
    public func value<Value: Decodable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      try core.value(as: type, "read request")
    }

    /// Answers it.
    ///
    /// A second answer does nothing, and the log is told; nor does one for an asker that is gone.
    public func answer<Value: Encodable>(_ value: Value) throws(WormholeError) {
      let limits = core.limits
      try end(
        WormholeError.writing("answer request", kind) { try LiveAnswer(value, limits: limits) })
    }

    /// Says that there will be no answer, and why.
    public func refuse(_ reason: String) {
      do throws(WormholeError) {
        try end(
          WormholeError.writing("refuse request", kind) {
            .content(try BinaryEncoder().encode(LiveFile.Refusing(error: reason)))
          })
      } catch {
        core.hole?.log(.error, error, about: core.subject)
      }
    }

    private func end(_ answer: LiveAnswer) throws(WormholeError) {
      guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else {
        core.hole?.log(
          .warning, "a request '\(kind)' of '\(core.header.from)' was answered once already",
          about: core.subject)
        return
      }
      switch asker {
      case .test(let record): record.end(answer)
      case .live(let live, let id):
        do throws(WormholeError) {
          try live.answer(core.header, id, answer)
        } catch {
          // It is not answered: it can be refused still, and the asker need not wait.
          isAnswered.store(false, ordering: .releasing)
          throw error
        }
      }
    }
  }

  /// A message that was sent for now.
  public struct ImmediateMessage: Sendable {
    let core: LiveMessage

    init(_ core: LiveMessage) { self.core = core }

    /// The member who sent it; nil if it is somebody who has not joined.
    public var from: String? { core.from }

    /// What the sender called it: by default the name of the value's type.
    public var kind: String { core.header.kind }

    /// What was sent.
    public func value<Value: Decodable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      try core.value(as: type, "read message")
    }
  }
}

// MARK: Answering

extension Wormhole.Member {
  /// Waits until the contexts that closures have taken count as received, and the senders of
  /// immediate messages that they have taken have been told so.
  package func settle() {
    contexts.settle()
    live.settle()
  }

  /// How much has come, right after joining, that nobody here has wanted so far.
  package var unclaimed: Int { live.earlyCount }

  /// Answers requests of a type, until it is stopped or the member leaves.
  ///
  /// What the closure throws is told to the asker. It is called on a thread that nobody else waits
  /// for, one request after the other; where that takes long, an asynchronous closure lets others
  /// be answered meanwhile. Of several closures for one kind the latest answers.
  @discardableResult
  public func respond<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
    to type: Question.Type, kind: String? = nil, on queue: DispatchQueue? = nil,
    _ answer: @escaping @Sendable (Question) throws -> Answer
  ) -> Wormhole.Subscription {
    respond(toKind: kind ?? MessageKind.name(of: type), on: queue) { request in
      do {
        try request.answer(answer(request.value(as: type)))
      } catch {
        request.refuse("\(error)")
      }
    }
  }

  /// Answers requests of a type, several at a time.
  @discardableResult
  public func respond<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
    to type: Question.Type, kind: String? = nil,
    _ answer: @escaping @Sendable (Question) async throws -> Answer
  ) -> Wormhole.Subscription {
    let hands = LiveHands(mostBytes: live.hole.options.largestValue)
    return respond(toKind: kind ?? MessageKind.name(of: type)) { request in
      guard hands.take(request.core) else { return request.refuse(LiveMailbox.tooMuch) }
      Task {
        defer { hands.release(request.core) }
        guard !request.core.isLate else { return request.core.tellLate() }
        do {
          try request.answer(await answer(request.value(as: type)))
        } catch {
          request.refuse("\(error)")
        }
      }
    }
  }

  /// Is given requests, to answer at once or later, until it is stopped or the member leaves.
  ///
  /// - Parameters:
  ///   - kind: which ones, by what the asker called them; nil for all that nobody else answers.
  ///   - queue: where the closure is called; by default on a thread that nobody else waits for.
  ///   - handler: gets each request.
  @discardableResult
  public func respond(
    toKind kind: String?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Request) -> Void
  ) -> Wormhole.Subscription {
    live.respond(toKind: kind, on: queue, handler)
  }

  /// Calls a closure with messages that are sent for now, until it is stopped or the member leaves.
  ///
  /// - Parameters:
  ///   - kinds: which ones, by what the sender called them; nil for all.
  ///   - queue: where the closure is called; by default on a thread that nobody else waits for.
  ///   - handler: gets each message.
  @discardableResult
  public func watchImmediate(
    kinds: Set<String>? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.ImmediateMessage) -> Void
  ) -> Wormhole.Subscription {
    takeImmediate(kinds: kinds, on: queue) { message in
      handler(message)
      return true
    }
  }

  /// The same, with a closure that answers whether it has taken the message: whoever waits for that
  /// is told.
  package func takeImmediate(
    kinds: Set<String>?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.ImmediateMessage) -> Bool
  ) -> Wormhole.Subscription {
    live.watchImmediate(kinds: kinds, on: queue, handler)
  }
}

// MARK: For tasks

extension Wormhole.Member {
  /// Calls an asynchronous closure with messages that are sent for now, one after the other, until
  /// it is stopped or the member leaves.
  ///
  /// It is called from a task of the library's own, on the actor that it is isolated to, if it is
  /// to one. What comes meanwhile waits, as long as there is room and time; a call under way is not
  /// waited for by ``Wormhole/Subscription/stop()``.
  ///
  /// - Parameters:
  ///   - kinds: which ones, by what the sender called them; nil for all.
  ///   - handler: gets each message.
  @discardableResult
  public func watchImmediate(
    kinds: Set<String>? = nil,
    _ handler: @escaping @isolated(any) @Sendable (Wormhole.ImmediateMessage) async -> Void
  ) -> Wormhole.Subscription {
    live.watchImmediate(kinds: kinds, IsolatedHandler(handler))
  }

  /// Calls a closure of the main actor with messages that are sent for now, until it is stopped or
  /// the member leaves: `watchImmediate { @MainActor message in … }`.
  ///
  /// - Parameters:
  ///   - kinds: which ones, by what the sender called them; nil for all.
  ///   - handler: gets each message.
  @discardableResult
  public func watchImmediate(
    kinds: Set<String>? = nil,
    _ handler: @escaping @MainActor @Sendable (Wormhole.ImmediateMessage) -> Void
  ) -> Wormhole.Subscription {
    live.watchImmediate(kinds: kinds, IsolatedHandler(handler))
  }
}

extension LiveMailbox {
  fileprivate func watchImmediate(
    kinds: Set<String>?, _ handler: IsolatedHandler<Wormhole.ImmediateMessage>
  ) -> Wormhole.Subscription {
    let gate = CallGate()
    let (messages, feed) = AsyncStream<Wormhole.ImmediateMessage>.makeStream()
    let hands = LiveHands(mostBytes: hole.options.largestValue)
    let (container, subject) = (hole.container, LogSubject(member: home.name))
    let number = add(hearing: kinds) { message in
      guard hands.take(message.core) else {
        container.log(
          .warning, "dropped a '\(message.kind)': too much waits for its handler's task",
          about: subject)
        return false
      }
      feed.yield(message)
      return true
    }
    Task.detached {
      for await message in messages {
        if message.core.isLate {
          message.core.tellLate()
        } else {
          await gate.call(handler, message, on: handler.isolation)
        }
        hands.release(message.core)
      }
    }
    return subscribe(LiveHandler(self, number, gate) { feed.finish() })
  }
}

/// Guests that can be asked: by those who have been told their address.
extension Wormhole.Guest {
  /// Where it can be asked, for `peer(guest:)`; nobody else ever has it.
  package var address: String { home.escaped }

  /// As a member's.
  package func respond(
    toKind kind: String?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Request) -> Void
  ) -> Wormhole.Subscription {
    live.respond(toKind: kind, on: queue, handler)
  }

  /// As a member's.
  package func watchImmediate(
    kinds: Set<String>? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.ImmediateMessage) -> Void
  ) -> Wormhole.Subscription {
    live.watchImmediate(kinds: kinds, on: queue) {
      handler($0)
      return true
    }
  }

  /// Another guest, by its address, to be asked by this one.
  package func peer(guest address: String) -> Wormhole.Peer {
    Wormhole.Peer(hole: hole, member: nil, guest: self, folder: .guests, name: address)
  }
}

extension Wormhole {
  /// A guest, by its address, to be asked.
  package func peer(guest address: String) -> Peer {
    Peer(hole: self, member: nil, folder: .guests, name: address)
  }
}

extension Wormhole.Member {
  /// A guest, by its address, to be asked.
  package func peer(guest address: String) -> Wormhole.Peer {
    Wormhole.Peer(hole: hole, member: self, folder: .guests, name: address)
  }
}

/// A closure that answers, or hears.
private final class LiveHandler: Lasting {
  private let live: LiveMailbox
  private let number: Int
  private let gate: CallGate
  private let ended: @Sendable () -> Void

  init(
    _ live: LiveMailbox, _ number: Int, _ gate: CallGate, ended: @escaping @Sendable () -> Void = {}
  ) {
    self.live = live
    self.number = number
    self.gate = gate
    self.ended = ended
  }

  var callGate: CallGate? { gate }

  func stop() {
    guard live.hole.container.isOwned else { return }
    end()
    gate.drain()
  }

  func end() {
    live.remove(number)
    gate.close()
    ended()
  }
}

extension LiveMailbox {
  static var tooMuch: String { "it has too much to do" }

  fileprivate func respond(
    toKind kind: String?, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (Wormhole.Request) -> Void
  ) -> Wormhole.Subscription {
    let (gate, name) = (CallGate(), home.name)
    let call = { @Sendable (request: Wormhole.Request) in
      // It may have been stopped since the request came to it.
      if gate.call({ handler(request) }) { return }
      request.refuse("'\(name)' answers no requests of kind '\(request.kind)' any more")
    }
    let calls = queue.map { queue in
      LiveCalls<Wormhole.Request>(on: queue, mostBytes: hole.options.largestValue, call)
    }
    let number = add(answering: kind) { request in
      guard let calls else { return call(request) }
      if !calls.add(request, request.core) { request.refuse(LiveMailbox.tooMuch) }
    }
    return subscribe(LiveHandler(self, number, gate))
  }

  fileprivate func watchImmediate(
    kinds: Set<String>?, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (Wormhole.ImmediateMessage) -> Bool
  ) -> Wormhole.Subscription {
    let gate = CallGate()
    let calls = queue.map { queue in
      LiveCalls<Wormhole.ImmediateMessage>(on: queue, mostBytes: hole.options.largestValue) {
        message in gate.call { _ = handler(message) }
      }
    }
    let (container, subject) = (hole.container, LogSubject(member: home.name))
    let number = add(hearing: kinds) { message in
      guard let calls else {
        var isHeard = false
        gate.call { isHeard = handler(message) }
        return isHeard
      }
      if calls.add(message, message.core) { return true }
      container.log(
        .warning, "dropped a '\(message.kind)': too much waits for its handler's queue",
        about: subject)
      return false
    }
    return subscribe(LiveHandler(self, number, gate))
  }
}
