internal import PropertyLists
public import SharedContainer
package import Syscalls

extension Wormhole {
  /// How a message is sent that only makes sense now.
  @nonexhaustive
  public enum Immediacy: Hashable, Sendable {
    /// To the process that lives now, or to nobody.
    case immediate
  }

  /// A question that knows the type of its answer.
  public protocol Askable: Codable, Sendable {
    /// What it is answered with.
    associatedtype Answer: Codable & Sendable
  }
}

/// Questions and messages to a process that lives now.
extension Wormhole.Peer {
  /// Sends a message that only makes sense now.
  ///
  /// It throws ``WormholeError/Code-swift.struct/unreachable`` at once if the peer does not run. A
  /// process that joins later never sees it; one that is stopped, or has too much to do, sees it if
  /// it comes to it in time.
  ///
  /// - Parameters:
  ///   - value: what is sent.
  ///   - immediacy: tells this from a guaranteed message.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - timeout: after which nobody is to see it any more.
  ///   - waking: whether the peer is started if it does not run; that takes of the same time, and
  ///     this waits for it.
  public func send<Value: Encodable>(
    _ value: Value, _ immediacy: Wormhole.Immediacy, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) {
    let deadline = hole.options.time.now + timeout
    if waking { try wake(within: timeout) }
    do throws(WormholeError) {
      _ = try sendNow(value, kind, timeout, until: deadline)
    } catch {
      // What was awake may have been about to end.
      let left = deadline - hole.options.time.now
      guard waking, error.code == .unreachable, left > .zero else { throw error }
      try wake(within: left)
      _ = try sendNow(value, kind, timeout, until: deadline)
    }
  }

  /// Sends a message that only makes sense now, and waits until whoever listens for it has heard
  /// it.
  ///
  /// As ``send(_:_:kind:within:waking:)``. If nobody there listens for it, it throws
  /// ``WormholeError/Code-swift.enum/rejected`` with the reason, and
  /// ``WormholeError/Code-swift.enum/timedOut`` if it was not heard in time.
  package func sendAndWait<Value: Encodable>(
    _ value: Value, _ immediacy: Wormhole.Immediacy, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) {
    do throws(WormholeError) {
      _ = try requestAndWait(
        value, as: Bool.self, kind: kind, within: timeout, waking: waking, letter: .confirmed)
    } catch {
      var error = error
      if error.operation == "ask" { error.operation = "send message to" }
      guard error.code == .timedOut, error.hint != nil else { throw error }
      throw WormholeError(
        .timedOut, error.operation, name, because: "nobody there has heard it within \(timeout)",
        hint: error.hint)
    }
  }

  /// - Returns: the incarnation it was sent to.
  package func sendNow<Value: Encodable>(
    _ value: Value, _ kind: String?, _ timeout: Duration, until deadline: Instant
  ) throws(WormholeError) -> Incarnation {
    try withLive { (live) throws(WormholeError) in
      let asked = try Asked(
        self, live, value, kind ?? MessageKind.name(of: Value.self), timeout, until: deadline,
        "send message to")
      return try asked.place(.message) { _ in }
    }
  }

  /// Asks, and waits for the answer without holding up other tasks.
  ///
  /// It fails at once if the peer does not run, ends, leaves or refuses, and otherwise at the
  /// deadline. If the task is cancelled the question is taken back. Who has not joined asks as a
  /// guest. Files are written off the task's thread.
  ///
  /// - Parameters:
  ///   - question: what is asked.
  ///   - type: what the answer is to be.
  ///   - kind: what the question is called; by default the name of its type.
  ///   - timeout: after which it throws ``WormholeError/Code-swift.struct/timedOut``.
  ///   - waking: whether the peer is started if it does not run, as `wake` does; that takes of the
  ///     same time.
  public func request<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) -> Answer {
    let deadline = hole.options.time.now + timeout
    let kind = kind ?? MessageKind.name(of: Question.self)
    if waking { try await wake(within: timeout) }
    do throws(Unanswered) {
      return try await ask(question, kind, timeout, until: deadline)
    } catch {
      guard waking, error.isUnseen else { throw error.error }
    }
    // What was awake was about to end.
    try await wake(within: deadline - hole.options.time.now)
    do throws(Unanswered) {
      return try await ask(question, kind, timeout, until: deadline)
    } catch {
      throw error.error
    }
  }

  private func ask<Question: Encodable, Answer: Decodable>(
    _ question: Question, _ kind: String, _ timeout: Duration, until deadline: Instant
  ) async throws(Unanswered) -> Answer {
    var stranger: Wormhole.Guest?
    if member == nil, guest == nil {
      do throws(WormholeError) {
        stranger = try await OffPool.runQuickly("ask", name) { () throws(WormholeError) in
          try hole.guest()
        }
      } catch {
        throw Unanswered(error: error)
      }
    }
    let end: Asking.End
    let asked: Asked
    do throws(Unanswered) {
      asked = try Unanswered.unless { () throws(WormholeError) in
        try Asked(
          self, try live ?? stranger!.live, question, kind, timeout, until: deadline, "ask")
      }
      end = await asked.end()
    } catch {
      if let stranger { await OffPool.runForSure { stranger.leave() } }
      throw error
    }
    if let stranger { await OffPool.runForSure { stranger.leave() } }
    return try asked.answer(end)
  }

  /// Asks a question that knows the type of its answer.
  public func request<Question: Wormhole.Askable>(
    _ question: Question, within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) -> Question.Answer {
    try await request(question, as: Question.Answer.self, within: timeout, waking: waking)
  }

  /// Asks, and waits for the answer on the thread that calls: where there are no tasks.
  ///
  /// As the one with `await`, but that nobody can cancel it.
  public func request<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) -> Answer {
    try requestAndWait(
      question, as: type, kind: kind, within: timeout, waking: waking, letter: .question)
  }

  private func requestAndWait<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type, kind: String?, within timeout: Duration,
    waking: Bool, letter: LiveName.Letter
  ) throws(WormholeError) -> Answer {
    let deadline = hole.options.time.now + timeout
    let kind = kind ?? MessageKind.name(of: Question.self)
    if waking { try wake(within: timeout) }
    return try withLive { (live) throws(WormholeError) in
      do throws(Unanswered) {
        return try askAndWait(question, live, kind, timeout, until: deadline, letter)
      } catch {
        guard waking, error.isUnseen else { throw error.error }
      }
      // What was awake was about to end.
      try wake(within: deadline - hole.options.time.now)
      do throws(Unanswered) {
        return try askAndWait(question, live, kind, timeout, until: deadline, letter)
      } catch {
        throw error.error
      }
    }
  }

  private func askAndWait<Question: Encodable, Answer: Decodable>(
    _ question: Question, _ live: LiveMailbox, _ kind: String, _ timeout: Duration,
    until deadline: Instant, _ letter: LiveName.Letter
  ) throws(Unanswered) -> Answer {
    let asked = try Unanswered.unless { () throws(WormholeError) in
      try Asked(self, live, question, kind, timeout, until: deadline, "ask")
    }
    let ended = Monitor<Asking.End?>(nil)
    asked.put(letter) { end in ended.signal { $0 = end } }
    return try asked.answer(ended.wait(until: nil) { $0 }!)
  }

  /// Who asks; nil for one that has neither joined nor become a guest.
  var live: LiveMailbox? { get throws(WormholeError) { member?.live ?? guest?.live } }

  /// Gives the body who asks, a guest for this one time if need be.
  private func withLive<Result>(
    _ body: (LiveMailbox) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    try hole.container.checkOwner("ask", name)
    if let live = try live { return try body(live) }
    let guest = try hole.guest()
    defer { guest.leave() }
    return try body(guest.live)
  }
}

/// Why a question has no answer.
private struct Unanswered: Error {
  let error: WormholeError
  /// Whether the peer has ended without having seen it.
  var isUnseen = false

  static func unless<Result>(
    _ body: () throws(WormholeError) -> Result
  ) throws(Unanswered) -> Result {
    do throws(WormholeError) { return try body() } catch { throw Unanswered(error: error) }
  }
}

/// One question or message, on its way.
struct Asked: Sendable {
  private let live: LiveMailbox
  private let peer: LiveAddress
  private let operation: String
  private let bytes: [UInt8]
  private let id: String
  private let deadline: Instant
  /// The same as others see it, in nanoseconds since the machine was started.
  private let lastMoment: Int64
  private let timeout: Duration
  private let sight = Monitor(Asking.Sight.unseen)
  /// Whether the peer may have seen it.
  var wasSeen: Bool { sight.withLock { $0 != .unseen } }
  private var hole: Wormhole { live.hole }

  init<Value: Encodable>(
    _ peer: Wormhole.Peer, _ live: LiveMailbox, _ value: Value, _ kind: String, _ timeout: Duration,
    until deadline: Instant, _ operation: String
  ) throws(WormholeError) {
    try peer.checkSender(operation)
    self.live = live
    self.peer = LiveAddress(folder: peer.folder, name: peer.name)
    self.operation = operation
    self.timeout = timeout
    let environment = live.hole.options.environment
    self.deadline = deadline
    let time = live.hole.options.time
    id = environment.randomName()
    let (sinceBoot, overflow) = time.sinceBoot.addingReportingOverflow(
      (deadline - time.now).inNanoseconds)
    lastMoment = overflow ? .max : sinceBoot
    let header = LiveFile.Header(
      from: live.mark, incarnation: live.incarnation, kind: kind, deadline: lastMoment)
    let limits = live.hole.options.limits
    bytes = try WormholeError.writing(operation, peer.name) {
      try BinaryEncoder(limits: limits).encode(LiveFile.Asking(header: header, value: value))
    }
    guard bytes.count <= live.hole.options.largestValue else {
      throw WormholeError(
        .tooLarge, operation, peer.name,
        because: "it takes \(bytes.count) bytes, and the limit is \(live.hole.options.largestValue)"
      )
    }
  }

  /// Puts it to the process that lives now.
  ///
  /// - Parameter prepare: is told before it can be seen, once for each process that it is put to.
  func place(
    _ letter: LiveName.Letter,
    _ prepare: (LivePlace) throws(WormholeError) -> Void
  ) throws(WormholeError) -> Incarnation {
    live.peers.hold(peer)
    defer { live.peers.release(peer) }
    var tries = 0
    while true {
      let target = try live.peers.target(peer, operation)
      try live.peers.makeRoom(for: bytes.count, in: target.folder, of: peer, operation)
      let name = LiveName(
        try MessageStamp(hole.container), letter, id: id, deadline: lastMoment)
      try prepare(LivePlace(folder: target.folder, incarnation: target.incarnation, name: name))
      do throws(Errno) {
        try hole.container.place(bytes, in: target.folder, as: name.text)
        return target.incarnation
      } catch {
        guard error == .noSuchFile else { throw WormholeError(error, operation, peer.name) }
        // That process has ended; another may have joined.
        live.peers.forget(peer)
        tries += 1
        if tries >= 3 { throw LivePeers.gone(peer, operation) }
      }
    }
  }

  /// - Parameter end: is called once.
  func put(
    _ letter: LiveName.Letter = .question, _ end: @escaping @Sendable (Asking.End) -> Void
  ) {
    let (peer, timeout, deadline) = (peer, timeout, deadline)
    var expected: Asking.Question?
    do throws(WormholeError) {
      let incarnation = try place(letter) { (target) throws(WormholeError) in
        let question = Asking.Question(
          peer: peer, incarnation: target.incarnation, container: hole.container, file: target.name,
          deadline: deadline, timeout: timeout, sight: sight, end: end)
        // The deadline may have passed while it was put to somebody who has ended; or who asks has
        // left.
        guard live.asking.expect(question, again: expected != nil) else {
          throw expected == nil ? live.hasLeft : LivePeers.gone(peer, operation)
        }
        expected = question
      }
      // It may have ended before there was anything to take back; an answer leaves nothing.
      guard live.asking.notePlaced(id) else {
        if sight.withLock({ $0 != .answered }) { expected!.withdraw() }
        return
      }
      // Whoever ended before that has not ended it.
      if !live.peers.lives(incarnation, of: peer) {
        live.peers.takeAnswers()
        live.asking.fail(id, LivePeers.gone(peer, operation))
      }
    } catch {
      // Once it is expected, whoever takes it from there ends it, and nobody else.
      if expected == nil { end(.failure(error)) } else { live.asking.fail(id, error) }
    }
  }

  /// Puts it off the threads of the pool, and waits for its end; takes it back if the task is
  /// cancelled.
  func end() async -> Asking.End {
    let cancellation = Cancellation()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        CallThreads.quick.add {
          put { continuation.resume(returning: $0) }
          // Cancelled before there was anything to take back.
          if cancellation.isCancelled { cancel() }
        }
      }
    } onCancel: {
      cancellation.cancel()
      cancel()
    }
  }

  func cancel() {
    live.asking.fail(
      id, WormholeError(.cancelled, operation, peer.name, because: "the task was cancelled"))
  }

  fileprivate func answer<Answer: Decodable>(_ end: Asking.End) throws(Unanswered) -> Answer {
    switch end {
    case .success(let given):
      return try Unanswered.unless { () throws(WormholeError) in try answer(given) }
    case .failure(let error):
      throw Unanswered(
        error: error, isUnseen: error.code == .unreachable && !wasSeen)
    }
  }

  func result<Answer: Decodable>(_ end: Asking.End) throws(WormholeError) -> Answer {
    try answer(end.get())
  }

  private func answer<Answer: Decodable>(_ given: LiveAnswer) throws(WormholeError) -> Answer {
    if case .word(let word) = given, let answer = word as? Answer { return answer }
    let decoder = BinaryDecoder(limits: hole.options.limits)
    let answer = try WormholeError.reading("read the answer of", peer.name) {
      // To read the file was to check its seal.
      let document = try decoder.open(given.bytes(), isSealChecked: true)
      return try decoder.decode(LiveFile.Answer<Answer>.self, from: document)
    }
    switch answer.result {
    case .success(let value): return value
    case .failure(let refusal):
      throw WormholeError(.rejected, operation, peer.name, because: refusal.reason)
    }
  }
}

/// Where something is put for a process.
struct LivePlace {
  let folder: OpenDirectory
  let incarnation: Incarnation
  let name: LiveName
}
