internal import SharedContainer
internal import Syscalls

/// Those who can be asked, as far as is known: which incarnation lives, and where its folder is.
///
/// Each that is known is watched, and its folder is open. They are few: of those that nothing is
/// waited for, and nothing is being put to, the ones that were asked longest ago are forgotten.
final class LivePeers: Sendable {
  fileprivate struct Known {
    var incarnation: Incarnation?
    var folder: OpenDirectory?
    var room: LiveRoom?
    var watching: Brief<Listener>?
    /// How often it was told that something has happened to it: what was looked at before may be
    /// void.
    var changes = 0
    /// How many are putting something to it now.
    var users = 0
    /// When it was asked last, in turns.
    var used = 0
  }

  private struct State {
    var known: [LiveAddress: Known] = [:]
    var turn = 0
    /// How many may be known before some are forgotten.
    var limit = LivePeers.most
  }

  /// How many are kept that nothing is waited for.
  static let most = 64

  private let hole: Wormhole
  private let asking: Asking
  /// Whose they are.
  private let owner: String
  /// Takes the answers that have come: one that was given before its giver ended counts.
  let beforeLoss = Monitor(Action {})
  private let state = Monitor(State())

  init(_ hole: Wormhole, _ asking: Asking, of owner: String) {
    self.hole = hole
    self.asking = asking
    self.owner = owner
  }

  func close() {
    let all = state.withLock { state in
      defer { state.known = [:] }
      return state.known.values.compactMap(\.watching)
    }
    for watching in all { watching.stop() }
  }

  /// How many are known.
  var count: Int { state.withLock { $0.known.count } }

  // MARK: Keeping few

  /// Keeps a peer from being forgotten until ``release(_:)``.
  func hold(_ peer: LiveAddress) {
    state.withLock { state in
      state.turn += 1
      state.known[peer, default: Known()].users += 1
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
    let left = state.withLock { state -> [Brief<Listener>?] in
      let idle = state.known.filter { $0.value.users == 0 && !asked.contains($0.key) }
      let oldest = idle.sorted { $0.value.used < $1.value.used }
        .prefix(max(0, idle.count - Self.most / 2))
      for (peer, _) in oldest { state.known[peer] = nil }
      // Those that are waited for have to be watched; their folders need not be open.
      for (peer, one) in state.known where one.users == 0 && asked.contains(peer) {
        state.known[peer]?.folder = nil
      }
      // Many that are waited for are not to be looked through with each that is asked.
      state.limit = max(Self.most, 2 * (state.known.count - Self.most / 2))
      return oldest.map(\.value.watching)
    }
    for watching in left { watching?.stop() }
  }

  // MARK: Who lives

  /// The folder of the process that lives now; it is watched from now on.
  ///
  /// The peer is held meanwhile, and until it is known what is waited for.
  func target(
    _ peer: LiveAddress, _ operation: String
  ) throws(WormholeError) -> (folder: OpenDirectory, incarnation: Incarnation) {
    guard !isCut(peer) else { throw Self.cut(peer, operation) }
    if let found = cached(peer) { return found }
    if state.withLock({ $0.known[peer]?.watching == nil }) { try watch(peer) }
    return try look(peer, operation)
  }

  private func isCut(_ peer: LiveAddress) -> Bool {
    hole.options.link?.isCut(between: owner, and: peer.name) ?? false
  }

  /// Something was cut: whoever cannot be reached any more will not answer.
  func lookAtLink() {
    for peer in asking.peers where isCut(peer) {
      asking.fail(peer, asking.incarnations(of: peer), Self.cut(peer, "ask").reason)
    }
  }

  private func cached(_ peer: LiveAddress) -> (folder: OpenDirectory, incarnation: Incarnation)? {
    state.withLock { state in
      guard let one = state.known[peer], one.watching != nil, let folder = one.folder,
        let incarnation = one.incarnation
      else { return nil }
      return (folder, incarnation)
    }
  }

  /// Whether one is watched, and no word of its end has come.
  func isKnown(_ peer: LiveAddress) -> Bool { cached(peer) != nil }

  /// Whether an incarnation is still the one that lives.
  func lives(_ incarnation: Incarnation, of peer: LiveAddress) -> Bool {
    if cached(peer)?.incarnation == incarnation { return true }
    // It may have been forgotten for no reason.
    return (try? peer.look(in: hole.container))?.living == incarnation
  }

  private func watch(_ peer: LiveAddress) throws(WormholeError) {
    let container = hole.container
    // A guest has no profile.
    let watching: Brief<Listener>
    if peer.folder == .guests {
      watching = try WatchPlan<Wormhole.Reachability>(
        join: { (listener) throws(WormholeError) in
          try PresenceFeed.join(listener, peer.name, in: .guests, container, .reachability)
        }, interpreter: { PresenceFeed.reachability }
      ).observeBriefly(on: nil, { [weak self] _ in self?.look(after: peer) }, { _ in })
    } else {
      watching = try WatchPlan<Wormhole.Profile>(
        join: { (listener) throws(WormholeError) in
          try PresenceFeed.join(listener, peer.name, container, .profile)
        }, interpreter: { PresenceFeed.profile }
      ).observeBriefly(on: nil, { [weak self] _ in self?.look(after: peer) }, { _ in })
    }
    let extra = state.withLock { state -> Brief<Listener>? in
      guard state.known[peer] != nil, state.known[peer]?.watching == nil else { return watching }
      state.known[peer]?.watching = watching
      return nil
    }
    extra?.stop()
  }

  /// Something has happened to a peer.
  ///
  /// What was put to it is noted before it is looked at, so that what is put to its successor
  /// meanwhile is not taken for lost.
  func look(after peer: LiveAddress) {
    let asked = asking.incarnations(of: peer)
    // Who has looked before this must not say later that it lives.
    state.withLock { $0.known[peer]?.changes += 1 }
    let living: Incarnation?
    do throws(WormholeError) {
      living = try peer.look(in: hole.container).living
    } catch {
      hole.log(.error, error)
      // Who is asked next looks anew; and who was asked may have ended without another word of it.
      forget(peer)
      guard !asked.isEmpty else { return }
      return hole.finding.soon(after: .seconds(1)) { [weak self] in self?.look(after: peer) }
    }
    state.withLock { state in
      guard state.known[peer]?.incarnation != living else { return }
      state.known[peer]?.forget()
    }
    let lost = asked.filter { $0 != living }
    guard !lost.isEmpty else { return }
    takeAnswers()
    asking.fail(peer, lost, "it has ended, or left, before it answered")
  }

  /// For when a peer is seen to have ended, and before anybody is told.
  func takeAnswers() { beforeLoss.withLock { $0 }.perform() }

  /// Looks anew who lives.
  private func look(
    _ peer: LiveAddress, _ operation: String
  ) throws(WormholeError) -> (folder: OpenDirectory, incarnation: Incarnation) {
    for pause in [1, 2, 5, 10, 20, 50, 0] {
      let changes = state.withLock { $0.known[peer]?.changes }
      let look = try peer.look(in: hole.container)
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
      // It is about to join, and has not said who it is.
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(pause)) { _ in nil }
    }
    throw Self.gone(peer, operation)
  }

  private func folder(
    _ peer: LiveAddress, _ incarnation: Incarnation, _ operation: String
  ) throws(WormholeError) -> OpenDirectory? {
    guard let home = try peer.home(in: hole.container) else { return nil }
    do throws(Errno) {
      return try home.live(incarnation)
    } catch {
      throw WormholeError(error, operation, peer.name)
    }
  }

  func forget(_ peer: LiveAddress) { state.withLock { $0.known[peer]?.forget() } }

  // MARK: Room

  /// Sees to it that there is room for one more.
  func makeRoom(
    for size: Int, in folder: OpenDirectory, of peer: LiveAddress, _ operation: String
  ) throws(WormholeError) {
    if state.withLock({ $0.known[peer]?.room?.take(size) ?? false }) { return }
    let room = LiveRoom(
      counting: folder, for: size, mostBytes: hole.options.largestValue,
      now: hole.options.time.sinceBoot)
    guard let room else {
      throw WormholeError(
        .full, operation, peer.name, because: "too much lies there that it has not read",
        hint: "look whether it is stopped, or has too much to do")
    }
    state.withLock { $0.known[peer]?.room = room }
  }

  // MARK: Errors

  static func gone(_ peer: LiveAddress, _ operation: String) -> WormholeError {
    WormholeError(.unreachable, operation, peer.name, because: "it has just left")
  }

  private static func cut(_ peer: LiveAddress, _ operation: String) -> WormholeError {
    WormholeError(.unreachable, operation, peer.name, because: "the link to it is cut")
  }

  private static func unreachable(
    _ peer: LiveAddress, _ operation: String, _ reachability: Wormhole.Reachability
  ) -> WormholeError {
    WormholeError(
      .unreachable, operation, peer.name,
      because: reachability == .notReachable
        ? "nobody has ever joined under that name" : "it does not run",
      hint: "a guaranteed message waits for it; 'wake' starts it where somebody has said how")
  }
}

extension LivePeers.Known {
  fileprivate mutating func forget() {
    incarnation = nil
    folder = nil
    room = nil
  }
}
