internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The pending requests.
///
/// Each ends exactly once, by the first of these events: the reply, the end of the peer, the
/// deadline, a cancellation, or the leave of the requester.
final class PendingReplies: Sendable {
  typealias End = Result<LiveAnswer, WormholeError>

  /// Whether the peer has seen a request, as far as is known.
  enum Sight { case unseen, perhaps, answered }

  /// One request.
  struct Entry: Sendable {
    let peer: LiveAddress
    /// The incarnation to which the request was sent; no other process ever reads the file.
    let incarnation: Incarnation
    let storage: Container
    let file: LiveName
    let deadline: Instant
    let timeout: Duration
    let sight: Monitor<Sight>
    let end: @Sendable (End) -> Void
    /// Whether the file is in the folder of the incarnation.
    ///
    /// Before that, the end of the incarnation does not fail the request, which may still be sent
    /// to the next incarnation.
    var isPlaced = false
    /// The operation in errors.
    var operation: String { file.letter.operation }

    /// Withdraws the request, if the peer has not read it yet.
    func withdraw() {
      let isBack = peer.withdraw(file, from: incarnation, in: storage)
      if !isBack { sight.withLock { $0 = .perhaps } }
    }
  }

  private struct State {
    var waiting: [String: Entry] = [:]
    /// Whether no more replies are taken.
    var isClosed = false
  }

  private let time: MailTime
  private let state = Monitor(State())
  private let worker: Worker

  init(_ time: MailTime) {
    self.time = time
    worker = Worker(staysOffWatcher: true, time)
    worker.begin { [weak self] in self?.endLate() }
  }

  /// Registers a pending request, before the peer can see its file.
  ///
  /// - Parameter again: whether the request was registered before, for another incarnation.
  /// - Returns: false if an earlier registration has ended, or no more replies are taken: the
  ///   request must not be sent in this case.
  func expect(_ question: Entry, again: Bool) -> Bool {
    let isOpen = state.withLock { state in
      if state.isClosed || again && state.waiting[question.file.id] == nil { return false }
      state.waiting[question.file.id] = question
      return true
    }
    if isOpen { worker.trigger(at: question.deadline) }
    return isOpen
  }

  /// Records that the file is in the folder of the incarnation registered last; returns false if
  /// the request has ended.
  func notePlaced(_ id: String) -> Bool {
    state.withLock { state in
      state.waiting[id]?.isPlaced = true
      return state.waiting[id] != nil
    }
  }

  private func take(_ id: String) -> Entry? {
    state.withLock { $0.waiting.removeValue(forKey: id) }
  }

  func answer(_ id: String, _ answer: LiveAnswer) {
    guard let question = take(id) else { return }
    question.sight.withLock { $0 = .answered }
    question.end(.success(answer))
  }

  /// - Returns: whether the request was still pending.
  @discardableResult
  func fail(_ id: String, _ error: WormholeError) -> Bool {
    guard let question = take(id) else { return false }
    question.withdraw()
    question.end(.failure(error))
    return true
  }

  /// Returns the peer of a request; nil if the request is not pending.
  func peer(asked id: String) -> String? { state.withLock { $0.waiting[id]?.peer.name } }

  /// All peers with pending requests.
  var peers: Set<LiveAddress> { state.withLock { Set($0.waiting.values.map(\.peer)) } }

  /// Returns the incarnations of a peer with a request that was placed and has no reply.
  func incarnations(of peer: LiveAddress) -> Set<Incarnation> {
    state.withLock { state in
      Set(state.waiting.values.filter { $0.peer == peer && $0.isPlaced }.map(\.incarnation))
    }
  }

  /// Fails all requests, and accepts no more.
  ///
  /// - Parameter error: returns the error of a request by the request's operation.
  func close(_ error: (_ operation: String) -> WormholeError) {
    let all = state.withLock { state in
      state.isClosed = true
      return exchange(&state.waiting, with: [:]).values
    }
    worker.end()
    for question in all {
      question.withdraw()
      question.end(.failure(error(question.operation)))
    }
  }

  /// Fails the requests to incarnations of a peer that have ended.
  ///
  /// - Parameter unread: the requests that stay pending, because their replies may have arrived.
  func fail(
    _ peer: LiveAddress, _ incarnations: Set<Incarnation>, _ reason: String,
    except unread: UnreadReplies = .allRead
  ) {
    let lost = state.withLock { state in
      let lost = state.waiting.values.filter {
        $0.peer == peer && $0.isPlaced
          && (incarnations.contains($0.incarnation) || Mutants.has(.failAnyIncarnation))
          && !unread.contains($0.file.id)
      }
      for question in lost { state.waiting[question.file.id] = nil }
      return lost
    }
    for question in lost {
      question.withdraw()
      question.end(
        .failure(WormholeError(.unreachable, question.operation, peer.name, because: reason)))
    }
  }

  // MARK: Deadlines

  private func endLate() {
    let now = time.now
    let (late, next) = state.withLock { state in
      let late = state.waiting.values.filter { $0.deadline <= now }
      for question in late { state.waiting[question.file.id] = nil }
      return (late, state.waiting.values.map(\.deadline).min())
    }
    if let next { worker.trigger(at: next) }
    for question in late { timeOut(question) }
  }

  /// Fails a request at its deadline; does nothing if the request has ended.
  func timeOut(_ id: String) {
    if let question = take(id) { timeOut(question) }
  }

  private func timeOut(_ question: Entry) {
    question.withdraw()
    question.end(
      .failure(
        WormholeError(
          .timedOut, question.operation, question.peer.name,
          because: "no reply arrived within \(question.timeout)",
          hint: "check whether the receiver is suspended or overloaded")))
  }
}

/// The requests whose replies may have arrived, and cannot be read for the moment.
///
/// A reply that stays unreadable, as on a failing disk, holds up no other request, and its own
/// request until the deadline only.
enum UnreadReplies: Equatable, Sendable {
  /// The replies cannot be listed.
  case unknown
  /// The identifiers of the requests.
  case known(Set<String>)

  static let allRead = UnreadReplies.known([])

  func contains(_ id: String) -> Bool {
    switch self {
    case .unknown: true
    case .known(let ids): ids.contains(id)
    }
  }
}
