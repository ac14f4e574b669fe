internal import Dispatch
internal import SharedContainer
internal import Syscalls

/// The questions that wait for an answer, each until exactly one end comes first: the answer, the
/// end of the peer, the deadline, or that nobody wants it any more.
final class Asking: Sendable {
  typealias End = Result<[UInt8], WormholeError>

  /// One question.
  struct Question: Sendable {
    let peer: String
    /// Whom it was put to; nobody else ever reads it.
    let incarnation: String
    let folder: OpenDirectory
    let file: LiveName
    let deadline: Instant
    let timeout: Duration
    let end: @Sendable (End) -> Void
    /// Whether it lies there; before that, the end of an incarnation is no reason to give up, since
    /// it may yet be put to the next.
    var isPlaced = false

    /// Takes it back, if the peer has not read it yet.
    func withdraw() { try? folder.descriptor.unlink(file.text) }
  }

  private struct State {
    var waiting: [String: Question] = [:]
    /// When the clock is to be looked at next.
    var alarm = Instant.distantFuture
  }

  private let time: MailTime
  private let state = Monitor(State())
  private let queue = DispatchQueue(label: "wormhole.deadlines")

  init(_ time: MailTime) { self.time = time }

  /// Expects an answer, from before the question can be seen.
  ///
  /// - Parameter again: whether it was expected already, of somebody else.
  /// - Returns: false if it was, and has ended: nothing more may come of it.
  func expect(_ question: Question, again: Bool) -> Bool {
    let (isOpen, isEarliest) = state.withLock { state in
      if again, state.waiting[question.file.id] == nil { return (false, false) }
      state.waiting[question.file.id] = question
      guard question.deadline < state.alarm else { return (true, false) }
      state.alarm = question.deadline
      return (true, true)
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

  func answer(_ id: String, _ bytes: [UInt8]) { take(id)?.end(.success(bytes)) }

  /// - Returns: whether it was waited for still.
  @discardableResult
  func fail(_ id: String, _ error: WormholeError) -> Bool {
    guard let question = take(id) else { return false }
    question.withdraw()
    question.end(.failure(error))
    return true
  }

  /// Who was asked; nil if nobody waits for that answer.
  func peer(asked id: String) -> String? { state.withLock { $0.waiting[id]?.peer } }

  /// All who were asked and have not answered.
  var peers: Set<String> { state.withLock { Set($0.waiting.values.map(\.peer)) } }

  /// The incarnations of a peer to which something was put that is not answered.
  func incarnations(of peer: String) -> Set<String> {
    state.withLock { state in
      Set(state.waiting.values.filter { $0.peer == peer && $0.isPlaced }.map(\.incarnation))
    }
  }

  func failAll(_ error: WormholeError) {
    let all = state.withLock { state in
      defer { state.waiting = [:] }
      return state.waiting.values
    }
    for question in all {
      question.withdraw()
      question.end(.failure(error))
    }
  }

  /// These incarnations of a peer have ended.
  func fail(_ peer: String, _ incarnations: Set<String>, _ reason: String) {
    let lost = state.withLock { state in
      let lost = state.waiting.values.filter {
        $0.peer == peer && $0.isPlaced && incarnations.contains($0.incarnation)
      }
      for question in lost { state.waiting[question.file.id] = nil }
      return lost
    }
    for question in lost {
      question.end(.failure(WormholeError(.unreachable, "ask", peer, because: reason)))
    }
  }

  // MARK: Deadlines

  private func setAlarm(_ deadline: Instant) {
    time.ring(at: deadline, on: queue) { [weak self] in self?.ring() }
  }

  private func ring() {
    let now = time.now
    let (late, next) = state.withLock { state in
      let late = state.waiting.values.filter { $0.deadline <= now }
      for question in late { state.waiting[question.file.id] = nil }
      state.alarm = state.waiting.values.map(\.deadline).min() ?? .distantFuture
      return (late, state.alarm)
    }
    if next != .distantFuture { setAlarm(next) }
    for question in late {
      question.withdraw()
      question.end(
        .failure(
          WormholeError(
            .timedOut, "ask", question.peer, because: "no answer came within \(question.timeout)",
            hint: "look whether it is stopped, or has too much to do")))
    }
  }
}

/// Those who can be asked, as far as is known: which incarnation lives, and where its folder is.
final class LivePeers: Sendable {
  private struct Known {
    var profile: Wormhole.Profile?
    var folder: OpenDirectory?
    var watching: Wormhole.Watching?
  }

  private let hole: Wormhole
  private let asking: Asking
  /// Whose they are.
  private let owner: String
  /// Takes the answers that have come: one that was given before its giver ended counts.
  let beforeLoss = Monitor<@Sendable () -> Void>({})
  private let known = Monitor<[String: Known]>([:])

  init(_ hole: Wormhole, _ asking: Asking, of owner: String) {
    self.hole = hole
    self.asking = asking
    self.owner = owner
  }

  func close() {
    let all = known.withLock { known in
      defer { known = [:] }
      return known.values.compactMap(\.watching)
    }
    for watching in all { watching.stop() }
  }

  /// The folder of the process that lives now under a name; it is watched from now on.
  func target(
    _ name: String, _ operation: String
  ) throws(WormholeError) -> (folder: OpenDirectory, incarnation: String) {
    guard !isCut(name) else { throw Self.cut(name, operation) }
    let isWatched = known.withLock { known in
      if known[name]?.watching != nil { return true }
      known[name] = known[name] ?? Known()
      return false
    }
    if let found = cached(name) { return found }
    if !isWatched { try watch(name) }
    return try look(name, operation)
  }

  private func isCut(_ name: String) -> Bool {
    hole.options.link?.isCut(between: owner, and: name) ?? false
  }

  /// Something was cut: whoever cannot be reached any more will not answer.
  func lookAtLink() {
    for name in asking.peers where isCut(name) {
      asking.fail(name, asking.incarnations(of: name), Self.cut(name, "ask").reason)
    }
  }

  private func cached(_ name: String) -> (folder: OpenDirectory, incarnation: String)? {
    known.withLock { known in
      guard let one = known[name], let folder = one.folder, let profile = one.profile else {
        return nil
      }
      return (folder, profile.incarnation)
    }
  }

  /// Whether an incarnation is still the one that lives.
  func lives(_ incarnation: String, of name: String) -> Bool {
    if cached(name)?.incarnation == incarnation { return true }
    // It may have been forgotten for no reason.
    guard let profile = try? Sighting(name, in: hole.container).profile else { return false }
    return profile.isRunning && profile.incarnation == incarnation
  }

  private func watch(_ name: String) throws(WormholeError) {
    let container = hole.container
    let plan = WatchPlan<Wormhole.Profile>(
      join: { (listener) throws(WormholeError) in
        try PresenceFeed.join(listener, name, container, .profile)
      }, interpreter: { PresenceFeed.profile })
    let watching = try plan.observe(
      on: nil, { [weak self] _ in self?.look(after: name) }, { _ in })
    let extra = known.withLock { known -> Wormhole.Watching? in
      guard known[name]?.watching == nil else { return watching }
      known[name, default: Known()].watching = watching
      return nil
    }
    extra?.stop()
  }

  /// Something has happened to a peer.
  ///
  /// What was put to it is noted before it is looked at, so that what is put to its successor
  /// meanwhile is not taken for lost.
  private func look(after name: String) {
    let asked = asking.incarnations(of: name)
    let profile: Wormhole.Profile?
    do throws(WormholeError) {
      profile = try Sighting(name, in: hole.container).profile
    } catch {
      return hole.log(.error, "\(error)")
    }
    let living = profile.flatMap { $0.isRunning ? $0.incarnation : nil }
    known.withLock { known in
      guard known[name]?.profile?.incarnation != living else { return }
      known[name]?.folder = nil
      known[name]?.profile = nil
    }
    let lost = asked.filter { $0 != living }
    guard !lost.isEmpty else { return }
    takeAnswers()
    asking.fail(name, lost, "it has ended, or left, before it answered")
  }

  /// For when a peer is seen to have ended, and before anybody is told.
  func takeAnswers() { beforeLoss.withLock { $0 }() }

  /// Looks anew who lives.
  private func look(
    _ name: String, _ operation: String
  ) throws(WormholeError) -> (folder: OpenDirectory, incarnation: String) {
    for pause in [1, 2, 5, 10, 20, 50, 0] {
      let sighting = try Sighting(name, in: hole.container)
      guard sighting.isPresent else {
        throw Self.unreachable(name, operation, sighting.reachability)
      }
      if let profile = sighting.profile, let folder = try folder(name, profile, operation) {
        known.withLock { known in
          known[name]?.profile = profile
          known[name]?.folder = folder
        }
        return (folder, profile.incarnation)
      }
      // It is about to join, and has not said who it is.
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(pause)) { _ in nil }
    }
    throw Self.gone(name, operation)
  }

  private func folder(
    _ name: String, _ profile: Wormhole.Profile, _ operation: String
  ) throws(WormholeError) -> OpenDirectory? {
    guard let home = try hole.container.existingMember(name) else { return nil }
    do throws(Errno) {
      return try home.live(profile.incarnation)
    } catch {
      throw WormholeError(error, operation, name)
    }
  }

  func forget(_ name: String) {
    known.withLock { known in
      known[name]?.folder = nil
      known[name]?.profile = nil
    }
  }

  static func gone(_ name: String, _ operation: String) -> WormholeError {
    WormholeError(.unreachable, operation, name, because: "it has just left")
  }

  private static func cut(_ name: String, _ operation: String) -> WormholeError {
    WormholeError(.unreachable, operation, name, because: "the link to it is cut")
  }

  private static func unreachable(
    _ name: String, _ operation: String, _ reachability: Wormhole.Reachability
  ) -> WormholeError {
    WormholeError(
      .unreachable, operation, name,
      because: reachability == .notReachable
        ? "nobody has ever joined under that name" : "it does not run",
      hint: "a guaranteed message waits for it; 'wake' starts it where somebody has said how")
  }
}
