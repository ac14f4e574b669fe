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
    private let core: LiveArrival
    private let id: String
    private let live: Live
    private let isAnswered = Atomic<Bool>(false)

    init(_ core: LiveArrival, id: String, _ live: Live) {
      self.core = core
      self.id = id
      self.live = live
    }

    deinit {
      guard !isAnswered.load(ordering: .acquiring) else { return }
      core.hole.log(
        .warning, "a request '\(core.header.kind)' of '\(core.header.from)' was never answered")
    }

    /// The member who asks; nil if it is somebody who has not joined.
    public var from: String? { core.from }

    /// What the asker called it: by default the name of the value's type.
    public var kind: String { core.header.kind }

    /// How long the asker still waits.
    public var timeLeft: Duration {
      .nanoseconds(max(0, core.header.deadline - core.hole.options.environment.sinceBoot()))
    }

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
      let limits = core.hole.options.limits
      let bytes = try WormholeError.writing("answer request", kind) {
        try BinaryEncoder(limits: limits).encode(LiveFile.Answering(value: value))
      }
      try end(bytes)
    }

    /// Says that there will be no answer, and why.
    public func refuse(_ reason: String) {
      do throws(WormholeError) {
        let bytes = try WormholeError.writing("refuse request", kind) {
          try BinaryEncoder().encode(LiveFile.Refusing(error: reason))
        }
        try end(bytes)
      } catch {
        core.hole.log(.error, "\(error)")
      }
    }

    private func end(_ bytes: [UInt8]) throws(WormholeError) {
      guard !isAnswered.exchange(true, ordering: .acquiringAndReleasing) else {
        return core.hole.log(
          .warning, "a request '\(kind)' of '\(core.header.from)' was answered once already")
      }
      do throws(WormholeError) {
        try live.answer(core.header, id, bytes)
      } catch {
        // It is not answered: it can be refused still, and the asker need not wait.
        isAnswered.store(false, ordering: .releasing)
        throw error
      }
    }
  }

  /// A message that was sent for now.
  public struct ImmediateMessage: Sendable {
    private let core: LiveArrival

    init(_ core: LiveArrival) { self.core = core }

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

  /// A closure that answers, or hears; ends when it is stopped, or when nobody keeps it.
  public final class Responding: Sendable {
    private let live: Live
    private let number: Int
    private let gate: CallGate

    init(_ live: Live, _ number: Int, _ gate: CallGate) {
      self.live = live
      self.number = number
      self.gate = gate
    }

    deinit { stop() }

    /// Ends it; once this has returned, the closure is not called again.
    ///
    /// A call under way on another thread is waited for; an asynchronous one goes on. The closure
    /// itself may call it.
    public func stop() {
      live.remove(number)
      gate.close()
      gate.drain()
    }
  }
}

// MARK: Answering

extension Wormhole.Member {
  /// How much has come, right after joining, that nobody here has wanted so far.
  package var unclaimed: Int { live.earlyCount }

  /// Answers requests of a type.
  ///
  /// What the closure throws is told to the asker. It is called on a thread that nobody else waits
  /// for, one request after the other; where that takes long, an asynchronous closure lets others
  /// be answered meanwhile. Of several closures for one kind the latest answers.
  public func respond<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
    to type: Question.Type, kind: String? = nil, on queue: DispatchQueue? = nil,
    _ answer: @escaping @Sendable (Question) throws -> Answer
  ) -> Wormhole.Responding {
    respond(toKind: kind ?? MessageKind.name(of: type), on: queue) { request in
      do {
        try request.answer(answer(request.value(as: type)))
      } catch {
        request.refuse("\(error)")
      }
    }
  }

  /// Answers requests of a type, several at a time.
  public func respond<Question: Decodable & Sendable, Answer: Encodable & Sendable>(
    to type: Question.Type, kind: String? = nil,
    _ answer: @escaping @Sendable (Question) async throws -> Answer
  ) -> Wormhole.Responding {
    respond(toKind: kind ?? MessageKind.name(of: type)) { request in
      Task {
        do {
          try request.answer(await answer(request.value(as: type)))
        } catch {
          request.refuse("\(error)")
        }
      }
    }
  }

  /// Is given requests, to answer at once or later.
  ///
  /// - Parameters:
  ///   - kind: which ones, by what the asker called them; nil for all that nobody else answers.
  ///   - queue: where the closure is called; by default on a thread that nobody else waits for.
  ///   - handler: is given each request.
  public func respond(
    toKind kind: String?, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Request) -> Void
  ) -> Wormhole.Responding {
    let gate = CallGate()
    let number = live.add(answering: kind) { request in
      guard let queue else { return gate.call { handler(request) } }
      queue.async { gate.call { handler(request) } }
    }
    return Wormhole.Responding(live, number, gate)
  }

  /// Calls a closure with messages that are sent for now.
  ///
  /// - Parameters:
  ///   - kinds: which ones, by what the sender called them; nil for all.
  ///   - queue: where the closure is called; by default on a thread that nobody else waits for.
  ///   - handler: is given each message.
  public func watchImmediate(
    kinds: Set<String>? = nil, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.ImmediateMessage) -> Void
  ) -> Wormhole.Responding {
    let gate = CallGate()
    let number = live.add(hearing: kinds) { message in
      guard let queue else { return gate.call { handler(message) } }
      queue.async { gate.call { handler(message) } }
    }
    return Wormhole.Responding(live, number, gate)
  }
}
