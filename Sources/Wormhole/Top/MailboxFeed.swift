package import WormholeContainerStorage
internal import WormholeSyscalls

/// Reports what happens to the messages of a member or a queue, by the names of the files.
///
/// No message is read, and nothing is kept per message, except for a second after a mailbox has
/// appeared. Of quick changes only the last may be reported.
package final class MailboxFeed: Sendable {
  package enum Step: String, Sendable {
    case waiting, delayed, claimed, acknowledged, requeued, dead, context
    case workerJoined, workerLeft
    /// Steps are missing: the handler was too slow for the names of a directory.
    case lost
  }

  package struct Event: Sendable {
    package let step: Step
    /// The ID of the message; empty for a context and a worker.
    package let id: String
    /// The sender; nil if none is named.
    package let sender: String?
    /// The number of the attempt; 0 for none.
    package let attempt: Int
  }

  private struct State {
    var feeds: [DirectoryFeed] = []
    var workers: [String: DirectoryFeed] = [:]
    /// Whether a worker that is found is reported: at the start, those of a new queue are.
    var tellsWorkers: Bool
    /// The workers that were there at the start, and could not be opened: they have not joined.
    var unopened: Set<String> = []
    /// Names that were listed a moment ago, and may be reported once more, each behind its part.
    var listed: Set<String> = []
    var listedAt = Instant(nanoseconds: 0)
  }

  private let home: MemberDirectory
  private let path: [String]
  private let state: Monitor<State>
  /// Held while the workers are compared with those that are known.
  private let workerTurn = Monitor(0)
  /// Compares all workers once more after a refused call.
  private let comparison: Worker
  private let handler: @Sendable (Event) -> Void

  /// - Parameters:
  ///   - folder: `members` or `queues`.
  ///   - isNew: whether to report the messages and workers that are there already.
  package init?(
    _ name: String, _ folder: Container.Folder, in container: SharedContainer, isNew: Bool,
    _ handler: @escaping @Sendable (Event) -> Void
  ) throws(WormholeError) {
    guard let home = try container.storage.existingMember(name, in: folder) else { return nil }
    self.home = home
    path = [folder.rawValue, home.escaped]
    self.handler = handler
    state = Monitor(State(tellsWorkers: isNew))
    comparison = Worker(staysOffWatcher: true, container.options.time)
    let parts: [MemberDirectory.Part] =
      folder == .queues
      ? [.inbox, .later, .claimed, .dead] : [.inbox, .later, .claimed, .dead, .context]
    for part in parts { try add(part) }
    if folder == .queues {
      try watchWorkers()
    }
    if isNew { for part in parts { reportAll(in: part) } }
  }

  /// Reports all messages in a part that was made a moment ago.
  private func reportAll(in part: MemberDirectory.Part) {
    guard part != .claimed else { return }
    // The part may be another directory by now.
    _ = home.lookAgain()
    var names: [String] = []
    try? home.list(part) { names.append(String(cString: $0)) }
    // A new directory may be reported twice.
    let news = state.withLock { state in
      if Instant.now - state.listedAt > .seconds(1) { state.listed = [] }
      state.listedAt = .now
      return names.filter { state.listed.insert("\(part.rawValue)/\($0)").inserted }
    }
    report(news.sorted(), in: part, isListed: true)
  }

  private func add(_ part: MemberDirectory.Part) throws(WormholeError) {
    let feed = try DirectoryFeed(
      home.container, path + [part.rawValue], part == .claimed ? .names : .arrivals
    ) { [weak self] change in
      guard let self else { return }
      switch change {
      case .names(let names) where part == .claimed: reportClaims(names, home)
      case .names(let names): report(names, in: part)
      case .replaced: reportAll(in: part)
      case .lost: tell(.lost, sender: nil)
      case .polled: break
      }
    }
    state.withLock { $0.feeds.append(feed) }
  }

  private func report(_ names: [String], in part: MemberDirectory.Part, isListed: Bool = false) {
    for text in names.unique where isListed || part == .context || isNews(text, in: part) {
      if part == .context {
        guard text.ends(with: ",next"), let from = ContextName.waiting(text) else { continue }
        tell(.context, sender: EscapedName.unescape(from))
        continue
      }
      guard let name = MessageName(text) else { continue }
      let step: Step = part == .inbox ? .waiting : part == .later ? .delayed : .dead
      tell(step, name)
    }
  }

  /// Whether a name was not reported by the first listing.
  private func isNews(_ name: String, in part: MemberDirectory.Part) -> Bool {
    state.withLock { state in
      guard !state.listed.isEmpty else { return true }
      if Instant.now - state.listedAt > .seconds(1) { state.listed = [] }
      return !state.listed.contains("\(part.rawValue)/\(name)")
    }
  }

  private func reportClaims(_ names: [String], _ holder: MemberDirectory) {
    let claims = names.unique.compactMap { ClaimedName($0) }
    let present = Set(
      claims.filter { ((try? holder.status(of: $0.text, in: .claimed)) ?? nil) != nil }
        .map(\.name))
    lazy var inHand = messagesInHand()
    var told: Set<MessageName> = []
    for claim in claims where told.insert(claim.name).inserted {
      let all = claims.filter { $0.name == claim.name }
      // A worker's claim of the next attempt follows the end of the one before. A member renames
      // the claim, and, for a return to the attempt before, renames the claim back.
      let next = all.last {
        holder === home
          ? $0.attempt > claim.attempt
          : $0.attempt != claim.attempt || $0.isInterrupted != claim.isInterrupted
      }
      // A renewed claim has another name: the message is claimed as before.
      let isRenewed = all.count > 1 && next == nil
      if holder === home, home.folder == .queues {
        // A worker returns a message there for its next attempt. The next claim is reported by the
        // feed of the worker that takes the message.
        if present.contains(claim.name) { tell(.requeued, claim.name, claim.attempt) }
      } else if present.contains(claim.name) {
        if !isRenewed { tell(.claimed, claim.name, (next ?? claim).attempt) }
      } else if ((try? home.status(of: claim.name.text, in: .inbox)) ?? nil) != nil {
        tell(.requeued, claim.name, claim.attempt)
      } else if ((try? home.status(of: claim.name.text, in: .dead)) ?? nil) == nil,
        !inHand.contains(claim.name)
      {
        tell(.acknowledged, claim.name, claim.attempt)
      }
    }
  }

  /// Returns the messages that are claimed now.
  ///
  /// They are listed twice, because a message that moves from the claims of a queue to those of a
  /// worker may be missing in a listing.
  package func messagesInHand() -> Set<MessageName> {
    var found: Set<MessageName> = []
    for _ in 0..<2 { try? home.forEachInHand { claim, _ in found.insert(claim.name) } }
    return found
  }

  private func tell(_ step: Step, _ name: MessageName, _ attempt: Int = 0) {
    handler(Event(step: step, id: name.id, sender: name.senderName, attempt: attempt))
  }

  private func tell(_ step: Step, sender: String?) {
    handler(Event(step: step, id: "", sender: sender, attempt: 0))
  }

  // MARK: Workers

  private func watchWorkers() throws(WormholeError) {
    comparison.begin { [weak self] in self?.compareWorkers() }
    let feed = try DirectoryFeed(
      home.container, path + [MemberDirectory.Part.workers.rawValue], .names
    ) { [weak self] change in
      switch change {
      case .names(let names): self?.reportWorkers(names)
      case .replaced, .polled, .lost: self?.compareWorkers()
      }
    }
    state.withLock { $0.feeds.append(feed) }
    // Listed after the watch has begun: a worker that joins in between is in the listing.
    compareWorkers()
  }

  private func reportWorkers(_ names: [String]) {
    workerTurn.withLock { _ in
      check(names.unique.compactMap { MemberDirectory.WorkerName($0) }, isTold: true)
    }
  }

  /// Compares all workers with those that are known.
  private func compareWorkers() {
    workerTurn.withLock { _ in
      // The directory of the workers may be another one by now.
      _ = home.lookAgain()
      let names: [MemberDirectory.WorkerName]
      do throws(Errno) {
        names = try home.workerNames()
      } catch {
        return comparison.retry()
      }
      let present = Set(names.map(\.text))
      let (known, isTold) = state.withLock { state in
        (Set(state.workers.keys), exchange(&state.tellsWorkers, with: true))
      }
      for worker in known.subtracting(present).sorted() { reportEnd(of: worker) }
      check(names, isTold: isTold)
    }
  }

  /// Reports which of the workers have joined or left, in the turn.
  ///
  /// - Parameter isTold: whether to report the workers that have joined.
  private func check(_ names: [MemberDirectory.WorkerName], isTold: Bool) {
    for name in names {
      do {
        guard let worker = try home.worker(name) else {
          reportEnd(of: name.text)
          continue
        }
        guard state.withLock({ $0.workers[name.text] == nil }) else { continue }
        try add(worker: worker)
        let isOld = state.withLock { $0.unopened.remove(name.text) != nil }
        if isTold, !isOld { tell(.workerJoined, sender: nil) }
      } catch {
        // A refused call says nothing about the worker.
        if !isTold { state.withLock { _ = $0.unopened.insert(name.text) } }
        comparison.retry()
      }
    }
  }

  private func reportEnd(of worker: String) {
    guard let feed = state.withLock({ $0.workers.removeValue(forKey: worker) }) else { return }
    feed.stop()
    tell(.workerLeft, sender: nil)
  }

  private func add(worker: MemberDirectory) throws(WormholeError) {
    let path = path + [MemberDirectory.Part.workers.rawValue, worker.escaped]
    let feed = try DirectoryFeed(
      home.container, path + [MemberDirectory.Part.claimed.rawValue], .names
    ) { [weak self] change in
      switch change {
      case .names(let names): self?.reportClaims(names, worker)
      case .lost: self?.tell(.lost, sender: nil)
      case .replaced, .polled: break
      }
    }
    state.withLock { $0.workers[worker.escaped] = feed }
  }

  package func stop() {
    comparison.end()
    let feeds = state.withLock { state in
      defer { (state.feeds, state.workers) = ([], [:]) }
      return state.feeds + state.workers.values
    }
    for feed in feeds { feed.stop() }
  }
}

extension [String] {
  /// Each name once, in the order of its first appearance.
  fileprivate var unique: [String] {
    var seen: Set<String> = []
    return filter { seen.insert($0).inserted }
  }
}
