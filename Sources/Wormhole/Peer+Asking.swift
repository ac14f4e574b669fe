internal import PropertyLists
public import SharedContainer
package import Syscalls

extension Wormhole {
  /// How a message is sent that only makes sense now.
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
  /// It throws ``WormholeError/Code-swift.enum/unreachable`` at once if the peer does not run. A
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
    _ = try sendNow(value, kind, timeout, until: deadline)
  }

  /// - Returns: the incarnation it was sent to.
  package func sendNow<Value: Encodable>(
    _ value: Value, _ kind: String?, _ timeout: Duration, until deadline: Instant
  ) throws(WormholeError) -> String {
    try withLive { (live) throws(WormholeError) in
      let asked = try Asked(
        self, live, value, kind ?? MessageKind.name(of: Value.self), timeout, until: deadline,
        "send message to")
      return try asked.place(.message) { _ in }
    }
  }

  /// Asks, and waits for the answer.
  ///
  /// It fails at once if the peer does not run, ends, leaves or refuses, and otherwise at the
  /// deadline. If the task is cancelled the question is taken back. Who has not joined asks as a
  /// guest.
  ///
  /// - Parameters:
  ///   - question: what is asked.
  ///   - type: what the answer is to be.
  ///   - kind: what the question is called; by default the name of its type.
  ///   - timeout: after which it throws ``WormholeError/Code-swift.enum/timedOut``.
  ///   - waking: whether the peer is started if it does not run, as `wake` does; that takes of the
  ///     same time.
  public func request<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) -> Answer {
    let deadline = hole.options.time.now + timeout
    if waking { try await wake(within: timeout) }
    let guest = member == nil && guest == nil ? try hole.guest() : nil
    defer { guest?.leave() }
    let live = try live ?? guest!.live
    let asked = try Asked(
      self, live, question, kind ?? MessageKind.name(of: Question.self), timeout,
      until: deadline, "ask")
    let end = await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        asked.put { continuation.resume(returning: $0) }
        // Cancelled before there was anything to take back.
        if Task.isCancelled { asked.cancel() }
      }
    } onCancel: {
      asked.cancel()
    }
    return try asked.answer(end)
  }

  /// Asks a question that knows the type of its answer.
  public func request<Question: Wormhole.Askable>(
    _ question: Question, within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) -> Question.Answer {
    try await request(question, as: Question.Answer.self, within: timeout, waking: waking)
  }

  /// Asks, and waits for the answer on the thread that calls: for programs without tasks.
  ///
  /// As ``request(_:as:kind:within:waking:)``.
  public func requestAndWait<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) -> Answer {
    let deadline = hole.options.time.now + timeout
    if waking { try wake(within: timeout) }
    return try withLive { (live) throws(WormholeError) in
      let asked = try Asked(
        self, live, question, kind ?? MessageKind.name(of: Question.self), timeout,
        until: deadline, "ask")
      let ended = Monitor<Asking.End?>(nil)
      asked.put { end in ended.signal { $0 = end } }
      return try asked.answer(ended.wait(until: nil) { $0 }!)
    }
  }

  /// Who asks; nil for one that has neither joined nor become a guest.
  private var live: Live? { get throws(WormholeError) { member?.live ?? guest?.live } }

  /// Gives the body who asks, a guest for this one time if need be.
  private func withLive<Result>(
    _ body: (Live) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    if let live = try live { return try body(live) }
    let guest = try hole.guest()
    defer { guest.leave() }
    return try body(guest.live)
  }
}

/// One question or message, on its way.
struct Asked: Sendable {
  private let live: Live
  private let peer: String
  private let operation: String
  private let bytes: [UInt8]
  private let id: String
  private let deadline: Instant
  private let timeout: Duration
  private var hole: Wormhole { live.hole }

  init<Value: Encodable>(
    _ peer: Wormhole.Peer, _ live: Live, _ value: Value, _ kind: String, _ timeout: Duration,
    until deadline: Instant, _ operation: String
  ) throws(WormholeError) {
    self.live = live
    self.peer = peer.name
    self.operation = operation
    self.timeout = timeout
    let environment = live.hole.options.environment
    self.deadline = deadline
    let time = live.hole.options.time
    id = environment.randomName()
    let (sinceBoot, overflow) = time.sinceBoot.addingReportingOverflow(
      (deadline - time.now).inNanoseconds)
    let header = LiveFile.Header(
      from: live.mark, incarnation: live.incarnation, kind: kind,
      deadline: overflow ? .max : sinceBoot)
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
    _ prepare: ((folder: OpenDirectory, incarnation: String, name: LiveName)) throws(WormholeError)
      -> Void
  ) throws(WormholeError) -> String {
    var tries = 0
    while true {
      let target = try live.peers.target(peer, operation)
      let name = LiveName(MessageStamp(hole.container), letter, id: id)
      try prepare((target.folder, target.incarnation, name))
      do throws(Errno) {
        try hole.container.place(bytes, in: target.folder, as: name.text)
        return target.incarnation
      } catch {
        guard error == .noSuchFile else { throw WormholeError(error, operation, peer) }
        // That process has ended; another may have joined.
        live.peers.forget(peer)
        tries += 1
        if tries >= 3 { throw LivePeers.gone(peer, operation) }
      }
    }
  }

  /// - Parameter end: is called once.
  func put(_ end: @escaping @Sendable (Asking.End) -> Void) {
    let (peer, timeout, deadline) = (peer, timeout, deadline)
    var expected: Asking.Question?
    do throws(WormholeError) {
      let incarnation = try place(.question) { (target) throws(WormholeError) in
        let question = Asking.Question(
          peer: peer, incarnation: target.incarnation, folder: target.folder, file: target.name,
          deadline: deadline, timeout: timeout, end: end)
        // The deadline may have passed while it was put to somebody who has ended.
        guard live.asking.expect(question, again: expected != nil) else {
          throw LivePeers.gone(peer, operation)
        }
        expected = question
      }
      // It may have ended before there was anything to take back.
      guard live.asking.notePlaced(id) else { return expected!.withdraw() }
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

  func cancel() {
    live.asking.fail(
      id, WormholeError(.cancelled, operation, peer, because: "the task was cancelled"))
  }

  func answer<Answer: Decodable>(_ end: Asking.End) throws(WormholeError) -> Answer {
    let bytes = try end.get()
    let limits = hole.options.limits
    let answer = try WormholeError.reading("read the answer of", peer) {
      try BinaryDecoder(limits: limits).decode(LiveFile.Answer<Answer>.self, from: bytes)
    }
    switch answer.result {
    case .success(let value): return value
    case .failure(let refusal):
      throw WormholeError(.rejected, operation, peer, because: refusal.reason)
    }
  }
}
