internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The endpoint of a process for presenters: a guest of the container that orders the files.
///
/// Here the process receives requests for its own presenters, and sends requests to presenters in
/// other processes.
final class PresenterEndpoint: Sendable {
  /// How long a request or a change notice stays valid: a suspended process reads both when it
  /// resumes.
  private static let longest = Duration.seconds(3600)
  /// How long the notice that ends a presenter's pause stays valid: without this notice, the
  /// presenter would stay paused for as long as the process of the access lives.
  private static let longestPause = Duration.seconds(30 * 86_400)

  private struct State {
    var files: [Int: PresentedFile] = [:]
    /// The requests without a reply so far.
    var open: Set<Open> = []
    /// The presenters that did not reply in time: until their reply arrives, no access waits for
    /// them.
    var silent: Set<PresenterName> = []
  }

  private struct Open: Hashable {
    let presenter: PresenterName
    let access: String
  }

  let container: SharedContainer
  private let guest: Guest
  private let state = Monitor(State())

  /// The name of the guest that receives requests.
  var address: String { guest.address }

  static func of(_ room: AccessDirectory) throws(WormholeError) -> PresenterEndpoint {
    try room.desk.withLock { desk throws(WormholeError) in
      if let desk = desk as? PresenterEndpoint { return desk }
      let made = try PresenterEndpoint(room)
      desk = made
      return made
    }
  }

  private init(_ room: AccessDirectory) throws(WormholeError) {
    container = SharedContainer(room.container, Options())
    // A forked child has no presenters, and asks other processes' presenters.
    guest = try Guest(container, needsQueues: false)
    _ = guest.respond(toKind: PresenterQuestion.kind) { [weak self, weak room] request in
      guard let self, let room else {
        return request.refuse("the process presents no file any more")
      }
      answer(request, in: room)
    }
    _ = guest.respond(toKind: PresenterMove.kind) { [weak self, weak room] request in
      let hide = room?.showRunning()
      defer { hide?() }
      guard let self, let move = try? request.value(as: PresenterMove.self) else {
        return request.refuse("the request does not describe a move")
      }
      file(move.presenter)?.move(move)
      Self.send(true, to: request, container.background)
    }
    _ = guest.receiveImmediate(kinds: [PresenterNews.kind]) { [weak self, weak room] message in
      guard let self, let news = try? message.value(as: PresenterNews.self) else { return }
      // Renew the heartbeat, to show that a suspended process has resumed.
      room?.showRunning()()
      file(news.presenter)?.tell(news, as: address)
    }
  }

  /// Whether this process has asked the presenter's process before and has received no notice of
  /// its end.
  static func knows(_ entry: PresenterEntry, in room: AccessDirectory) -> Bool {
    guard let desk = room.desk.withLock({ $0 as? PresenterEndpoint }) else { return false }
    return desk.guest.live.peers.isKnown(LiveAddress(folder: .guests, name: entry.guest))
  }

  // MARK: Receiving requests

  func add(_ file: PresentedFile, _ number: Int) { state.withLock { $0.files[number] = file } }

  func remove(_ number: Int) { state.withLock { $0.files[number] = nil } }

  private func file(_ number: Int) -> PresentedFile? { state.withLock { $0.files[number] } }

  private func answer(_ request: Request, in room: AccessDirectory) {
    let hide = room.showRunning()
    let question: PresenterQuestion
    do throws(WormholeError) {
      question = try request.value(as: PresenterQuestion.self)
    } catch {
      hide()
      return request.refuse("\(error)")
    }
    let end: @Sendable (Bool) -> Void = { [queue = container.background] holdsOff in
      hide()
      Self.send(holdsOff, to: request, queue)
    }
    guard let file = file(question.presenter) else { return end(false) }
    file.ask(question, as: address, end)
  }

  /// Replies, and retries later if the system refuses the reply now: while its request is pending,
  /// a process without a reply does not ask again.
  private static func send(
    _ answer: Bool, to request: Request, _ queue: WorkQueue,
    after pause: Duration = .milliseconds(100)
  ) {
    do throws(WormholeError) {
      // The requesting process may have ended; `reply` does not throw for a dead requester.
      try request.reply(answer)
    } catch {
      guard error.errno != nil, request.timeLeft > .zero else { return }
      queue.soon(after: pause) {
        send(answer, to: request, queue, after: min(pause * 2, .seconds(1)))
      }
    }
  }

  // MARK: Sending requests

  /// - Parameter end: called once, with whether the presenter needs a notice when the access is
  ///   over, after the presenter has replied or can reply no more; must not wait.
  /// - Returns: whether to wait for the reply; false if an earlier request has no reply yet.
  func ask(
    _ question: PresenterQuestion, _ name: PresenterName, _ entry: PresenterEntry,
    _ end: @escaping @Sendable (Bool) -> Void
  ) -> Bool {
    let open = Open(presenter: name, access: question.access)
    let isSilent = state.withLock { state in
      guard !state.silent.contains(name) else { return true }
      state.open.insert(open)
      return false
    }
    guard !isSilent else { return false }
    let ended: @Sendable (Bool) -> Void = { [weak self] holdsOff in
      self?.state.withLock { state in
        state.open.remove(open)
        state.silent.remove(name)
      }
      end(holdsOff)
    }
    if entry.guest == address {
      guard let file = file(name.number) else {
        ended(false)
        return true
      }
      file.ask(question, as: address, ended)
    } else {
      guest.peer(guest: entry.guest).request(
        question, kind: PresenterQuestion.kind, within: Self.longest
      ) { ended($0 ?? true) }
    }
    return true
  }

  /// Has a presenter register at the new path of a moved item.
  ///
  /// - Parameter end: called once, when the presenter has registered there or cannot any more.
  func move(
    _ move: PresenterMove, _ entry: PresenterEntry, _ end: @escaping @Sendable () -> Void
  ) {
    if entry.guest == address {
      file(move.presenter)?.move(move)
      return end()
    }
    guest.peer(guest: entry.guest).request(
      move, kind: PresenterMove.kind, within: Self.longest
    ) { _ in end() }
  }

  /// Ends the wait for a presenter that has not replied.
  func giveUp(_ name: PresenterName, access: String) {
    state.withLock { state in
      guard !Mutants.has(.waitAgain),
        state.open.contains(Open(presenter: name, access: access))
      else { return }
      state.silent.insert(name)
    }
  }

  /// Notifies the presenter without waiting.
  ///
  /// - Parameter endsPause: whether the presenter may have paused for the access.
  func tell(
    _ news: PresenterNews, _ entry: PresenterEntry, endsPause: Bool, tries: Int = 60
  ) {
    if entry.guest == address {
      file(news.presenter)?.tell(news, as: address)
      return
    }
    do throws(WormholeError) {
      try guest.peer(guest: entry.guest).sendImmediately(
        news, kind: PresenterNews.kind, within: endsPause ? Self.longestPause : Self.longest)
    } catch {
      // A presenter that no longer runs needs no notice.
      guard error.code != .unreachable, tries > 0 else { return }
      container.background.soon(after: .seconds(1)) { [weak self] in
        self?.tell(news, entry, endsPause: endsPause, tries: tries - 1)
      }
    }
  }
}
