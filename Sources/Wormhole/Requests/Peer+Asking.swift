public import WormholeContainerStorage
internal import WormholePropertyLists
package import WormholeSyscalls

/// A request with a known type of reply.
public protocol RequestValue: Codable, Sendable {
  /// The type of the reply.
  associatedtype Reply: Codable & Sendable
}

/// Requests and messages to a running process.
extension Peer {
  /// Sends an immediate message.
  ///
  /// It throws ``WormholeError/Code-swift.struct/unreachable`` at once if the peer does not run. A
  /// process that joins later never receives the message. A process that is suspended or busy
  /// receives the message only if it takes the message before the deadline.
  ///
  /// - Parameters:
  ///   - value: the content of the message.
  ///   - kind: the kind of the message; by default the name of the value's type.
  ///   - headers: the headers of the message; see ``SendOptions/headers``.
  ///   - timeout: the time after which the message is not delivered any more.
  ///   - waking: whether the peer is started if it does not run. The call waits for the start,
  ///     whose time counts towards the timeout.
  public func sendImmediately<Value: Encodable>(
    _ value: Value, kind: String? = nil, headers: [String: String] = [:],
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) {
    let label = try OutgoingLabel(kind, headers, of: Value.self, "send message to", name)
    let deadline = container.options.time.now + timeout
    if waking { try wake(within: timeout) }
    do throws(WormholeError) {
      _ = try sendNow(value, label, timeout, until: deadline)
    } catch {
      // The process that ran may have been about to end.
      let left = deadline - container.options.time.now
      guard waking, error.code == .unreachable, left > .zero else { throw error }
      try wake(within: left)
      _ = try sendNow(value, label, timeout, until: deadline)
    }
  }

  /// Sends an immediate message, and waits until a handler of the peer has received it.
  ///
  /// As ``sendImmediately(_:kind:headers:within:waking:)``. If the peer has no handler for the
  /// message, it throws ``WormholeError/Code-swift.struct/rejected`` with the reason. If no handler
  /// received the message in time, it throws ``WormholeError/Code-swift.struct/timedOut``.
  package func sendAndWait<Value: Encodable>(
    _ value: Value, kind: String? = nil, headers: [String: String] = [:],
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) {
    do throws(WormholeError) {
      _ = try requestAndWait(
        value, as: Bool.self, kind: kind, headers: headers, within: timeout, waking: waking,
        letter: .confirmed)
    } catch {
      guard error.code == .timedOut, error.hint != nil else { throw error }
      throw WormholeError(
        .timedOut, error.operation, name,
        because: "no handler in the receiver confirmed the message within \(timeout)",
        hint: error.hint)
    }
  }

  /// - Returns: the incarnation that the message was sent to.
  package func sendNow<Value: Encodable>(
    _ value: Value, _ label: OutgoingLabel, _ timeout: Duration, until deadline: Instant
  ) throws(WormholeError) -> Incarnation {
    let operation = LiveName.Letter.message.operation
    return try withLive(operation) { (live) throws(WormholeError) in
      let asked = try OutgoingRequest(
        self, live, value, label, timeout, until: deadline, operation)
      return try asked.send(.message) { _ in }
    }
  }

  /// Sends a request, and waits for the reply without blocking other tasks.
  ///
  /// It fails at once if the peer does not run, ends, leaves or refuses, and otherwise at the
  /// deadline. If the task is cancelled, the request is withdrawn. A process that has not joined
  /// sends requests as a guest. Files are written off the task's thread.
  ///
  /// - Parameters:
  ///   - question: the content of the request.
  ///   - type: the type of the reply.
  ///   - kind: the kind of the request; by default the name of the value's type.
  ///   - headers: the headers of the request; see ``SendOptions/headers``.
  ///   - timeout: the time limit for the reply, after which the error is
  ///     ``WormholeError/Code-swift.struct/timedOut``.
  ///   - waking: whether the peer is started if it does not run, as by `wake`; the start counts
  ///     towards the timeout.
  public func request<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    headers: [String: String] = [:], within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) -> Answer {
    let deadline = container.options.time.now + timeout
    let label = try OutgoingLabel(
      kind, headers, of: Question.self, OutgoingRequest.operation, name)
    if waking { try await wake(within: timeout) }
    do throws(RequestFailure) {
      return try await ask(question, label, timeout, until: deadline)
    } catch {
      guard waking, error.isUnseen else { throw error.error }
    }
    // The process that ran was about to end.
    try await wake(within: deadline - container.options.time.now)
    do throws(RequestFailure) {
      return try await ask(question, label, timeout, until: deadline)
    } catch {
      throw error.error
    }
  }

  private func ask<Question: Encodable, Answer: Decodable>(
    _ question: Question, _ label: OutgoingLabel, _ timeout: Duration, until deadline: Instant
  ) async throws(RequestFailure) -> Answer {
    var stranger: Guest?
    if member == nil, guest == nil {
      do throws(WormholeError) {
        stranger = try await OffPool.runQuickly(OutgoingRequest.operation, name) {
          () throws(WormholeError) in
          try container.guest()
        }
      } catch {
        throw RequestFailure(error: error)
      }
    }
    let end: PendingReplies.End
    let asked: OutgoingRequest
    do throws(RequestFailure) {
      asked = try RequestFailure.unless { () throws(WormholeError) in
        try OutgoingRequest(
          self, live ?? stranger!.live, question, label, timeout, until: deadline)
      }
      end = await asked.end()
    } catch {
      if let stranger { await OffPool.runForSure { stranger.leave() } }
      throw error
    }
    if let stranger { await OffPool.runForSure { stranger.leave() } }
    return try asked.answer(end)
  }

  /// Sends a request with a known type of reply.
  public func request<Question: RequestValue>(
    _ question: Question, headers: [String: String] = [:],
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) -> Question.Reply {
    try await request(
      question, as: Question.Reply.self, headers: headers, within: timeout, waking: waking)
  }

  /// Sends a request, and waits for the reply on the calling thread: for code without tasks.
  ///
  /// As the overload with `await`, except that the request cannot be cancelled.
  public func request<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type = Answer.self, kind: String? = nil,
    headers: [String: String] = [:], within timeout: Duration = .seconds(10), waking: Bool = false
  ) throws(WormholeError) -> Answer {
    try requestAndWait(
      question, as: type, kind: kind, headers: headers, within: timeout, waking: waking,
      letter: .question)
  }

  private func requestAndWait<Question: Encodable, Answer: Decodable>(
    _ question: Question, as type: Answer.Type, kind: String?, headers: [String: String],
    within timeout: Duration, waking: Bool, letter: LiveName.Letter
  ) throws(WormholeError) -> Answer {
    let deadline = container.options.time.now + timeout
    let label = try OutgoingLabel(kind, headers, of: Question.self, letter.operation, name)
    if waking { try wake(within: timeout) }
    return try withLive(letter.operation) { (live) throws(WormholeError) in
      do throws(RequestFailure) {
        return try askAndWait(question, live, label, timeout, until: deadline, letter)
      } catch {
        guard waking, error.isUnseen else { throw error.error }
      }
      // The process that ran was about to end.
      try wake(within: deadline - container.options.time.now)
      do throws(RequestFailure) {
        return try askAndWait(question, live, label, timeout, until: deadline, letter)
      } catch {
        throw error.error
      }
    }
  }

  private func askAndWait<Question: Encodable, Answer: Decodable>(
    _ question: Question, _ live: LiveMailbox, _ label: OutgoingLabel, _ timeout: Duration,
    until deadline: Instant, _ letter: LiveName.Letter
  ) throws(RequestFailure) -> Answer {
    let asked = try RequestFailure.unless { () throws(WormholeError) in
      try OutgoingRequest(
        self, live, question, label, timeout, until: deadline, letter.operation)
    }
    let ended = Monitor<PendingReplies.End?>(nil)
    asked.put(letter) { end in ended.signal { $0 = end } }
    // The caller's thread waits for the deadline itself: the thread for all deadlines may be busy.
    let isReal = container.options.time.moved == nil && !Mutants.has(.oneClock)
    let isOver = ended.wait(until: isReal ? deadline : nil) { $0 == nil ? nil : true }
    if isOver == nil { asked.timeOut() }
    return try asked.answer(ended.wait(until: nil) { $0 }!)
  }

  /// The mailbox of the requester; nil if it has neither joined nor become a guest.
  var live: LiveMailbox? { participant?.live }

  /// Calls the body with the requester's mailbox, or with the mailbox of a temporary guest.
  private func withLive<Result>(
    _ operation: String, _ body: (LiveMailbox) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    try container.storage.checkOwner(operation, name)
    if let live { return try body(live) }
    let guest = try container.guest()
    defer { guest.leave() }
    return try body(guest.live)
  }
}

/// The reason why a request has no reply.
private struct RequestFailure: Error {
  let error: WormholeError
  /// Whether the peer has ended without having seen the request.
  var isUnseen = false

  static func unless<Result>(
    _ body: () throws(WormholeError) -> Result
  ) throws(RequestFailure) -> Result {
    do throws(WormholeError) { return try body() } catch { throw RequestFailure(error: error) }
  }
}

/// One outgoing request or message.
struct OutgoingRequest: Sendable {
  /// The operation of a request in errors; messages have a different operation.
  static let operation = "get a reply from"

  private let live: LiveMailbox
  private let peer: LiveAddress
  private let operation: String
  private let bytes: [UInt8]
  private let id: String
  private let deadline: Instant
  /// The deadline in the file, in nanoseconds since the machine was started.
  private let lastMoment: Int64
  private let timeout: Duration
  /// The only process that may receive the file; nil for the process that runs.
  var only: Incarnation?
  private let sight = Monitor(PendingReplies.Sight.unseen)
  /// Whether the peer may have seen the request.
  var wasSeen: Bool { sight.withLock { $0 != .unseen } }
  private var container: SharedContainer { live.container }

  init<Value: Encodable>(
    _ peer: Peer, _ live: LiveMailbox, _ value: Value, _ label: OutgoingLabel,
    _ timeout: Duration, until deadline: Instant, _ operation: String = Self.operation
  ) throws(WormholeError) {
    try peer.checkSender(operation)
    self.live = live
    self.peer = LiveAddress(folder: peer.folder, name: peer.name)
    self.operation = operation
    self.timeout = timeout
    let environment = live.container.options.environment
    self.deadline = deadline
    let time = live.container.options.time
    id = environment.randomName()
    let (sinceBoot, overflow) = time.sinceBoot.addingReportingOverflow(
      (deadline - time.now).inNanoseconds)
    lastMoment = overflow ? .max : sinceBoot
    let header = LiveFile.Header(
      from: live.mark, incarnation: live.incarnation, kind: label.kind, deadline: lastMoment,
      headers: label.headers)
    let limits = live.container.options.limits
    bytes = try WormholeError.writing(operation, peer.name) {
      try BinaryEncoder(limits: limits).seal(header, value)
    }
  }

  /// Places the file for the process that runs now.
  ///
  /// - Parameter prepare: is called before the file can be seen, once for each process that the
  ///   file is placed for.
  func send(
    _ letter: LiveName.Letter,
    _ prepare: (LivePlace) throws(WormholeError) -> Void
  ) throws(WormholeError) -> Incarnation {
    live.peers.hold(peer)
    defer { live.peers.release(peer) }
    var tries = 0
    while true {
      let target = try live.peers.target(peer, operation)
      if let only, target.incarnation != only, !Mutants.has(.anyIncarnation) {
        throw LivePeers.gone(peer, operation)
      }
      try live.peers.makeRoom(for: bytes.count, in: target.folder, of: peer, operation)
      let name = LiveName(
        try MessageStamp(container.storage), letter, id: id, deadline: lastMoment)
      try prepare(LivePlace(folder: target.folder, incarnation: target.incarnation, name: name))
      do throws(Errno) {
        try container.storage.addFile(bytes, to: target.folder, as: name.text)
        return target.incarnation
      } catch {
        guard error == .noSuchFile else { throw WormholeError(error, operation, peer.name) }
        // The process has ended; a successor may have joined.
        live.peers.forget(peer)
        tries += 1
        if tries >= 3 { throw LivePeers.gone(peer, operation) }
      }
    }
  }

  /// - Parameter end: is called once.
  func put(
    _ letter: LiveName.Letter = .question, _ end: @escaping @Sendable (PendingReplies.End) -> Void
  ) {
    let (peer, timeout, deadline) = (peer, timeout, deadline)
    var expected: PendingReplies.Entry?
    do throws(WormholeError) {
      let incarnation = try send(letter) { (target) throws(WormholeError) in
        let question = PendingReplies.Entry(
          peer: peer, incarnation: target.incarnation, storage: container.storage,
          file: target.name,
          deadline: deadline, timeout: timeout, sight: sight, end: end)
        // The deadline may have passed while the request was placed for a process that has ended.
        // Or the requester has left.
        guard live.asking.expect(question, again: expected != nil) else {
          throw expected == nil ? live.hasLeft(operation) : LivePeers.gone(peer, operation)
        }
        expected = question
      }
      // The request may have ended before its file could be withdrawn; after a reply the file is
      // gone.
      guard live.asking.notePlaced(id) else {
        if sight.withLock({ $0 != .answered }) { expected!.withdraw() }
        return
      }
      // A cut of the link before `notePlaced` has not failed the request.
      live.peers.lookAtLink(to: peer)
      // If the incarnation ended before `notePlaced`, its end has not failed the request.
      if !Mutants.has(.trustOldNotice), !live.peers.lives(incarnation, of: peer) {
        if live.peers.takeAnswers().contains(id) { return live.peers.lookLater(after: peer) }
        live.asking.fail(id, LivePeers.gone(peer, operation))
      }
    } catch {
      // Once the request is registered, only the thread that unregisters the request may end it.
      if expected == nil { end(.failure(error)) } else { live.asking.fail(id, error) }
    }
  }

  /// Sends the request off the threads of the pool, and waits for its end.
  ///
  /// If the task is cancelled, the request is withdrawn.
  func end() async -> PendingReplies.End {
    let cancellation = CancellationFlag()
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        CallThreads.quick.add {
          put { continuation.resume(returning: $0) }
          // The task was cancelled before there was a request to withdraw.
          if cancellation.isCancelled { cancel() }
        }
      }
    } onCancel: {
      cancellation.cancel()
      cancel()
    }
  }

  /// Fails the request at its deadline; does nothing if the request has ended.
  func timeOut() { live.asking.timeOut(id) }

  func cancel() {
    live.asking.fail(
      id, WormholeError(.cancelled, operation, peer.name, because: "the task was cancelled"))
  }

  fileprivate func answer<Answer: Decodable>(_ end: PendingReplies.End) throws(RequestFailure)
    -> Answer
  {
    switch end {
    case .success(let given):
      return try RequestFailure.unless { () throws(WormholeError) in try answer(given) }
    case .failure(let error):
      throw RequestFailure(
        error: error, isUnseen: error.code == .unreachable && !wasSeen)
    }
  }

  func result<Answer: Decodable>(_ end: PendingReplies.End) throws(WormholeError) -> Answer {
    try answer(end.get())
  }

  private func answer<Answer: Decodable>(_ given: LiveAnswer) throws(WormholeError) -> Answer {
    if case .word(let word) = given, let answer = word as? Answer { return answer }
    let decoder = BinaryDecoder(limits: container.options.limits)
    let answer = try WormholeError.reading("read the reply of", peer.name, as: Answer.self) {
      // Reading the file has checked its seal.
      let document = try decoder.open(given.bytes(), isSealChecked: true)
      return try LiveFile.answer(as: Answer.self, in: document, decoder)
    }
    switch answer {
    case .success(let value): return value
    case .failure(let refusal):
      throw WormholeError(
        refusal.isUnreachable ? .unreachable : .rejected, operation, peer.name,
        because: refusal.reason)
    }
  }
}

extension LiveName.Letter {
  /// The operation of a request or an immediate message in errors.
  var operation: String { isMessage ? "send message to" : OutgoingRequest.operation }
}

/// The folder, incarnation and name of a file that is placed for a process.
struct LivePlace {
  let folder: OpenDirectory
  let incarnation: Incarnation
  let name: LiveName
}
