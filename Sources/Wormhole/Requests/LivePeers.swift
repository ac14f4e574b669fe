internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The known peers, to which requests can be sent: for each, the running incarnation and its
/// folder.
///
/// Each known peer is watched, and its folder is open. Their number is limited: among the peers
/// without a pending request and without a send in progress, the least recently used ones are
/// forgotten.
final class LivePeers: Sendable {
  fileprivate struct CachedPeer {
    var incarnation: Incarnation?
    var folder: OpenDirectory?
    var room: LiveCapacity?
    var watching: StopOnRelease<Listener>?
    /// The number of notices about the peer; each notice may invalidate a status that was read
    /// earlier.
    var changes = 0
    /// The number of threads that are sending to the peer.
    var users = 0
    /// The turn of its last use.
    var used = 0
  }

  private struct State {
    var known: [LiveAddress: CachedPeer] = [:]
    /// How many threads are looking at a peer after a notice.
    var looking: [LiveAddress: Int] = [:]
    /// The peers whose check is repeated in a second.
    var postponed: Set<LiveAddress> = []
    var turn = 0
    /// The number of known peers above which some are forgotten.
    var limit = LivePeers.most
  }

  /// The number of peers that are kept without a pending request.
  static let most = 64

  private let container: SharedContainer
  private let asking: PendingReplies
  /// The name of the sending member or guest.
  private let owner: String
  /// Takes all replies in the folder: a reply counts if the peer gave it before the peer ended.
  let beforeLoss = Monitor(ReplyTaker { .allRead })
  private let state = Monitor(State())

  init(_ container: SharedContainer, _ asking: PendingReplies, of owner: String) {
    self.container = container
    self.asking = asking
    self.owner = owner
  }

  func close() {
    let all = state.withLock { exchange(&$0.known, with: [:]).values.compactMap(\.watching) }
    for watching in all { watching.stop() }
  }

  /// The number of known peers.
  var count: Int { state.withLock { $0.known.count } }

  // MARK: Limit

  /// Keeps a peer from being forgotten until ``release(_:)``.
  func hold(_ peer: LiveAddress) {
    state.withLock { state in
      state.turn += 1
      state.known[peer, default: CachedPeer()].users += 1
      state.known[peer]?.used = state.turn
    }
  }

  func release(_ peer: LiveAddress) {
    let isTooMuch = state.withLock { state in
      state.known[peer]?.users -= 1
      return state.known.count > state.limit
    }
    if isTooMuch { forgetSome() }
  }

  private func forgetSome() {
    let asked = asking.peers
    let left = state.withLock { state -> [StopOnRelease<Listener>?] in
      let idle = state.known.filter { $0.value.users == 0 && !asked.contains($0.key) }
      let oldest = idle.sorted { $0.value.used < $1.value.used }
        .prefix(max(0, idle.count - Self.most / 2))
      for (peer, _) in oldest { state.known[peer] = nil }
      // Peers with pending requests must be watched; their folders need not be open.
      for (peer, one) in state.known where one.users == 0 && asked.contains(peer) {
        state.known[peer]?.folder = nil
      }
      // If many peers have pending requests, not every new request must scan them all.
      state.limit = max(Self.most, 2 * (state.known.count - Self.most / 2))
      return oldest.map(\.value.watching)
    }
    for watching in left { watching?.stop() }
  }

  // MARK: Running incarnations

  /// Returns the folder of the peer's running process, and watches the peer from now on.
  ///
  /// The caller holds the peer during the call, and until the pending request is registered.
  func target(
    _ peer: LiveAddress, _ operation: String
  ) throws(WormholeError) -> (folder: OpenDirectory, incarnation: Incarnation) {
    guard !isCut(peer) else { throw Self.cut(peer, operation) }
    if let found = cached(peer) { return found }
    if state.withLock({ $0.known[peer]?.watching == nil }) { try watch(peer) }
    return try look(peer, operation)
  }

  private func isCut(_ peer: LiveAddress) -> Bool {
    container.options.link?.isCut(between: owner, and: peer.name) ?? false
  }

  /// Fails the requests to peers behind a cut link, which will not reply.
  func lookAtLink() { for peer in asking.peers { lookAtLink(to: peer) } }

  /// Fails the requests to a peer if the link to the peer is cut.
  func lookAtLink(to peer: LiveAddress) {
    guard isCut(peer) else { return }
    asking.fail(
      peer, asking.incarnations(of: peer), Self.cut(peer, OutgoingRequest.operation).reason)
  }

  private func cached(_ peer: LiveAddress) -> (folder: OpenDirectory, incarnation: Incarnation)? {
    state.withLock { state in
      guard let one = state.known[peer], one.watching != nil, let folder = one.folder,
        let incarnation = one.incarnation
      else { return nil }
      return (folder, incarnation)
    }
  }

  /// Returns whether a peer is watched and no notice of its end has arrived.
  func isKnown(_ peer: LiveAddress) -> Bool { cached(peer) != nil }

  /// Returns whether an incarnation is still the running one.
  ///
  /// A thread that is looking at the peer may have noted the pending requests before the caller's
  /// was one of them, and may not have stored yet what it has seen: the stored status says nothing
  /// meanwhile.
  func lives(_ incarnation: Incarnation, of peer: LiveAddress) -> Bool {
    let isSettled = state.withLock { $0.looking[peer] == nil }
    if isSettled || Mutants.has(.trustLooking), cached(peer)?.incarnation == incarnation {
      return true
    }
    // The peer may have been forgotten while the incarnation runs.
    return (try? peer.look(in: container.storage))?.living == incarnation
  }

  private func watch(_ peer: LiveAddress) throws(WormholeError) {
    let storage = container.storage
    // Each notice counts. While a successor joins, its presence stands beside the profile of the
    // incarnation before it, which then appears to run; if the successor ends at once, the peer
    // appears as it did before the join.
    let watching = try WatchPlan<Void>(
      join: { (listener) throws(WormholeError) in
        try PresenceFeed.join(listener, peer.name, in: peer.folder, storage, .notices)
      }, interpreter: { PresenceFeed.notices }
    ).observeBriefly(on: nil, { [weak self] in self?.look(after: peer) }, { _ in })
    let extra = state.withLock { state -> StopOnRelease<Listener>? in
      guard state.known[peer] != nil, state.known[peer]?.watching == nil else { return watching }
      state.known[peer]?.watching = watching
      return nil
    }
    extra?.stop()
  }

  /// Checks a peer after a notice about it.
  ///
  /// The incarnations with pending requests are noted before the peer's status is read. So a
  /// request that is sent to the successor between the two steps does not count as lost.
  func look(after peer: LiveAddress) {
    state.withLock { state in
      // A thread that has read the status before this point must not cache the peer as running.
      state.known[peer]?.changes += 1
      state.looking[peer, default: 0] += 1
    }
    defer {
      state.withLock { state in
        let others = state.looking[peer]! - 1
        state.looking[peer] = others > 0 ? others : nil
      }
    }
    let asked = asking.incarnations(of: peer)
    let living: Incarnation?
    do throws(WormholeError) {
      living = try peer.look(in: container.storage).living
    } catch {
      container.log(.error, error)
      // The next request checks the peer again. A peer with pending requests may have ended, and no
      // further notice will report its end.
      forget(peer)
      if !asked.isEmpty { lookLater(after: peer) }
      return
    }
    state.withLock { state in
      guard state.known[peer]?.incarnation != living else { return }
      state.known[peer]?.forget()
    }
    let lost = asked.filter { $0 != living }
    guard !lost.isEmpty, !Mutants.has(.keepLost) else { return }
    let unread = takeAnswers()
    asking.fail(peer, lost, "the peer ended or left before its reply", except: unread)
    if !asking.incarnations(of: peer).isDisjoint(with: lost) { lookLater(after: peer) }
  }

  /// Checks a peer with pending requests once more, because the system has refused a step.
  func lookLater(after peer: LiveAddress) {
    // Many requests to the peer, or many notices about it, need one check only.
    guard state.withLock({ $0.postponed.insert(peer).inserted }) else { return }
    container.background.soon(after: .seconds(1)) { [weak self] in
      guard let self else { return }
      state.withLock { _ = $0.postponed.remove(peer) }
      look(after: peer)
    }
  }

  /// Called when a peer was found to have ended, before its pending requests fail.
  ///
  /// - Returns: the requests whose replies may be left: these requests must not fail yet.
  func takeAnswers() -> UnreadReplies { beforeLoss.withLock { $0 }.take() }

  /// Reads again which incarnation runs.
  private func look(
    _ peer: LiveAddress, _ operation: String
  ) throws(WormholeError) -> (folder: OpenDirectory, incarnation: Incarnation) {
    for pause in [1, 2, 5, 10, 20, 50, 0] {
      let changes = state.withLock { $0.known[peer]?.changes }
      let look = try peer.look(in: container.storage)
      guard look.isPresent else { throw Self.unreachable(peer, operation, look.reachability) }
      if let incarnation = look.incarnation,
        let folder = try folder(peer, incarnation, operation)
      {
        state.withLock { state in
          guard state.known[peer]?.changes == changes else { return }
          if state.known[peer]?.incarnation != incarnation { state.known[peer]?.room = nil }
          state.known[peer]?.incarnation = incarnation
          state.known[peer]?.folder = folder
        }
        return (folder, incarnation)
      }
      // The process is about to join, and has not written its profile.
      Thread.pause(.milliseconds(pause))
    }
    throw nameless(peer, operation)
  }

  /// Returns the error for a peer whose process runs but has not written its profile.
  ///
  /// A process that joins on a full disk has the name and no profile. A small file shows whether
  /// the disk is still full.
  private func nameless(_ peer: LiveAddress, _ operation: String) -> WormholeError {
    let storage = container.storage
    guard (try? peer.look(in: storage))?.isPresent == true else {
      return Self.gone(peer, operation)
    }
    if let failure = storage.stagingFailure() {
      var error = WormholeError(failure, operation, peer.name)
      if error.code == .full {
        error.hint = "free space on the file system, and have '\(peer.name)' join again"
      }
      return error
    }
    return WormholeError(
      .unreachable, operation, peer.name,
      because: "the process that has joined as '\(peer.name)' has not stored its identity",
      hint: "try again; if the disk was full at the join, have the process join again")
  }

  private func folder(
    _ peer: LiveAddress, _ incarnation: Incarnation, _ operation: String
  ) throws(WormholeError) -> OpenDirectory? {
    guard let home = try peer.home(in: container.storage) else { return nil }
    return try naming(operation, peer.name, at: home, home.live(incarnation))
  }

  func forget(_ peer: LiveAddress) { state.withLock { $0.known[peer]?.forget() } }

  // MARK: Capacity

  /// Ensures space for one more file in the peer's folder; throws if it is full.
  func makeRoom(
    for size: Int, in folder: OpenDirectory, of peer: LiveAddress, _ operation: String
  ) throws(WormholeError) {
    if state.withLock({ $0.known[peer]?.room?.take(size) ?? false }) { return }
    let room = try naming(operation, peer.name) { () throws(Errno) in
      try LiveCapacity(
        counting: folder, for: size, mostBytes: container.options.maximumValueBytes,
        now: container.options.time.sinceBoot)
    }
    guard let room else {
      throw WormholeError(
        .full, operation, peer.name,
        because: "the directory for immediate messages is full of unread messages",
        hint: "check whether the receiver is suspended or overloaded")
    }
    state.withLock { $0.known[peer]?.room = room }
  }

  // MARK: Errors

  static func gone(_ peer: LiveAddress, _ operation: String) -> WormholeError {
    WormholeError(
      .unreachable, operation, peer.name, because: "the member has just left",
      hint: "try again after the next join as '\(peer.name)'")
  }

  private static func cut(_ peer: LiveAddress, _ operation: String) -> WormholeError {
    WormholeError(
      .unreachable, operation, peer.name, because: "the test has cut the link to the peer")
  }

  private static func unreachable(
    _ peer: LiveAddress, _ operation: String, _ reachability: Reachability
  ) -> WormholeError {
    WormholeError(
      .unreachable, operation, peer.name,
      because: reachability == .neverJoined
        ? "no member has ever joined under this name" : "the member is not running",
      hint: "start the member, with 'wormhole wake \(peer.name.shellWord)' if a launch command is "
        + "registered, or send a guaranteed message")
  }
}

/// Takes the replies that have arrived.
struct ReplyTaker: Sendable {
  let take: @Sendable () -> UnreadReplies
}

extension LivePeers.CachedPeer {
  fileprivate mutating func forget() {
    incarnation = nil
    folder = nil
    room = nil
  }
}
