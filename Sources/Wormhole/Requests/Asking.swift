internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// The questions that wait for an answer, each until exactly one end comes first: the answer, the
/// end of the peer, the deadline, or that nobody wants it any more.
final class Asking: Sendable {
  typealias End = Result<LiveAnswer, WormholeError>

  /// What is known of whether the peer has seen a question.
  enum Sight { case unseen, perhaps, answered }

  /// One question.
  struct Question: Sendable {
    let peer: LiveAddress
    /// Whom it was put to; nobody else ever reads it.
    let incarnation: Incarnation
    let container: Container
    let file: LiveName
    let deadline: Instant
    let timeout: Duration
    let sight: Monitor<Sight>
    let end: @Sendable (End) -> Void
    /// Whether it lies there; before that, the end of an incarnation is no reason to give up, since
    /// it may yet be put to the next.
    var isPlaced = false

    /// Takes it back, if the peer has not read it yet.
    func withdraw() {
      let isBack = peer.withdraw(file, from: incarnation, in: container)
      if !isBack { sight.withLock { $0 = .perhaps } }
    }
  }

  private struct State {
    var waiting: [String: Question] = [:]
    /// Whether nobody takes answers any more.
    var isClosed = false
    /// When the clock is to be looked at.
    var alarms = Alarms()
  }

  private let time: MailTime
  private let state = Monitor(State())
  private let queue = DispatchQueue(label: "wormhole.deadlines")

  init(_ time: MailTime) { self.time = time }

  /// Expects an answer, from before the question can be seen.
  ///
  /// - Parameter again: whether it was expected already, of somebody else.
  /// - Returns: false if it was, and has ended, or nobody asks any more: nothing more may come of
  ///   it.
  func expect(_ question: Question, again: Bool) -> Bool {
    let (isOpen, isEarliest) = state.withLock { state in
      if state.isClosed || again && state.waiting[question.file.id] == nil { return (false, false) }
      state.waiting[question.file.id] = question
      return (true, state.alarms.add(question.deadline.nanoseconds))
    }
    if isEarliest { setAlarm(question.deadline) }
    return isOpen
  }

  /// It lies in the folder of the incarnation that was expected last; false if it has ended.
  func notePlaced(_ id: String) -> Bool {
    state.withLock { state in
      state.waiting[id]?.isPlaced = true
      return state.waiting[id] != nil
    }
  }

  private func take(_ id: String) -> Question? {
    state.withLock { $0.waiting.removeValue(forKey: id) }
  }

  func answer(_ id: String, _ answer: LiveAnswer) {
    guard let question = take(id) else { return }
    question.sight.withLock { $0 = .answered }
    question.end(.success(answer))
  }

  /// - Returns: whether it was waited for still.
  @discardableResult
  func fail(_ id: String, _ error: WormholeError) -> Bool {
    guard let question = take(id) else { return false }
    question.withdraw()
    question.end(.failure(error))
    return true
  }

  /// Who was asked; nil if nobody waits for that answer.
  func peer(asked id: String) -> String? { state.withLock { $0.waiting[id]?.peer.name } }

  /// All who were asked and have not answered.
  var peers: Set<LiveAddress> { state.withLock { Set($0.waiting.values.map(\.peer)) } }

  /// The incarnations of a peer to which something was put that is not answered.
  func incarnations(of peer: LiveAddress) -> Set<Incarnation> {
    state.withLock { state in
      Set(state.waiting.values.filter { $0.peer == peer && $0.isPlaced }.map(\.incarnation))
    }
  }

  /// Nobody takes answers any more.
  func close(_ error: WormholeError) {
    let all = state.withLock { state in
      state.isClosed = true
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for question in all {
      question.withdraw()
      question.end(.failure(error))
    }
  }

  /// These incarnations of a peer have ended.
  func fail(_ peer: LiveAddress, _ incarnations: Set<Incarnation>, _ reason: String) {
    let lost = state.withLock { state in
      let lost = state.waiting.values.filter {
        $0.peer == peer && $0.isPlaced && incarnations.contains($0.incarnation)
      }
      for question in lost { state.waiting[question.file.id] = nil }
      return lost
    }
    for question in lost {
      question.withdraw()
      question.end(.failure(WormholeError(.unreachable, "ask", peer.name, because: reason)))
    }
  }

  // MARK: Deadlines

  private func setAlarm(_ deadline: Instant) {
    time.ring(at: deadline, on: queue) { [weak self] in self?.ring(deadline) }
  }

  private func ring(_ moment: Instant) {
    let now = time.now
    let (late, next) = state.withLock { state in
      state.alarms.remove(moment.nanoseconds)
      let late = state.waiting.values.filter { $0.deadline <= now }
      for question in late { state.waiting[question.file.id] = nil }
      let next = state.waiting.values.map(\.deadline).min()
      return (late, next.flatMap { state.alarms.add($0.nanoseconds) ? $0 : nil })
    }
    if let next { setAlarm(next) }
    for question in late {
      question.withdraw()
      question.end(
        .failure(
          WormholeError(
            .timedOut, "ask", question.peer.name,
            because: "no answer came within \(question.timeout)",
            hint: "look whether it is stopped, or has too much to do")))
    }
  }
}
