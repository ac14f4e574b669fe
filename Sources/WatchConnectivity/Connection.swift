internal import DropIns
internal import PropertyLists
internal import Syscalls
internal import Wormhole

/// One pairing as this side has it: the member that it is, and the one that it speaks with.
///
/// Each pairing has a pair of members of its own, `phone.<watch>` and `watch.<watch>`: so nothing
/// of one watch can reach the other.
final class Connection: Sendable {
  let hole: Wormhole
  let role: WCSession.Role
  let watch: String
  let member: Wormhole.Member
  let peer: Wormhole.Peer
  let transfers: Transfers
  private let handles = Monitor(Handles())

  private struct Handles {
    var outcomes: Wormhole.Subscription?
    var responding: Wormhole.Subscription?
    var reachability: Wormhole.Subscription?
    var starts: Wormhole.Subscription?
    var reception: Reception?
  }

  init(
    _ hole: Wormhole, _ role: WCSession.Role, watch: String, _ transfers: Transfers
  ) throws(WormholeError) {
    self.hole = hole
    self.role = role
    self.watch = watch
    self.transfers = transfers
    member = try hole.join(as: "\(role.rawValue).\(watch)")
    peer = member.peer("\(role.other.rawValue).\(watch)")
  }

  // MARK: What is begun

  func keep(outcomes: Wormhole.Subscription) {
    handles.withLock { $0.outcomes = outcomes }
  }

  /// What was declined is told to the next who asks, once this one has ended.
  func stopOutcomes() {
    let before = handles.withLock { $0.outcomes.take() }
    before?.stop()
  }

  func keep(responding: Wormhole.Subscription) {
    handles.withLock { $0.responding = responding }
  }

  func keep(reachability: Wormhole.Subscription, starts: Wormhole.Subscription) {
    handles.withLock { ($0.reachability, $0.starts) = (reachability, starts) }
  }

  var reception: Reception? { handles.withLock { $0.reception } }

  func keep(_ reception: Reception?) {
    let before = handles.withLock { handles in
      defer { handles.reception = reception }
      return handles.reception
    }
    before?.stop()
  }

  /// Ends all, and gives the name back; waits for callbacks that are under way.
  func end() {
    let handles = handles.withLock { handles in
      defer { handles = Handles() }
      return handles
    }
    handles.reachability?.stop()
    handles.starts?.stop()
    handles.responding?.stop()
    handles.reception?.stop()
    handles.outcomes?.stop()
    member.leave()
  }

  // MARK: What is so

  /// Why nothing can be sent, however patient one is; nil if it can.
  func obstacle(_ pairing: Pairing.State) -> WCError? {
    guard let watch = pairing.watches[watch] else { return WCError(.deviceNotPaired) }
    switch role {
    case .phone: return watch.isAppInstalled ? nil : WCError(.watchAppNotInstalled)
    case .watch:
      if pairing.isWatchOnly { return WCError(.watchOnlyApp) }
      return pairing.isPhoneAppInstalled ? nil : WCError(.companionAppNotInstalled)
    }
  }

  /// Whether anything comes through at the moment.
  func isOpen(_ pairing: Pairing.State) -> Bool {
    guard let found = pairing.watches[watch] else { return false }
    return pairing.active == watch && found.isInRange && found.isAppInstalled
      && pairing.isPhoneAppInstalled && !pairing.isWatchOnly
  }

  /// Whether messages come through, if there is somebody to take them.
  func carriesMessages(_ pairing: Pairing.State) -> Bool {
    isOpen(pairing) && !(role == .watch && pairing.isPhoneLocked)
  }

  /// Whether there is somebody, too: the watch's message starts the phone's app, and never the
  /// other way round.
  ///
  /// Throws what may be known a little later.
  func isReachable(_ pairing: Pairing.State) throws(WormholeError) -> Bool {
    guard carriesMessages(pairing) else { return false }
    let isThere = try Self.known { () throws(WormholeError) in
      try peer.reachability == .immediatelyReachable
    }
    if isThere || role == .phone { return isThere }
    return try Self.known { () throws(WormholeError) in try hole.start(of: peer.name) != nil }
  }

  /// What is not so if nobody will ever know.
  private static func known(
    _ isSo: () throws(WormholeError) -> Bool
  ) throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      return try isSo()
    } catch {
      if error.mayPass { throw error }
      return false
    }
  }

  /// Whether the counterpart runs.
  var isPeerThere: Bool { (try? peer.reachability) == .immediatelyReachable }

  /// Whether somebody has said how the counterpart is started.
  var isStartable: Bool { ((try? hole.start(of: peer.name)) ?? nil) != nil }

  var hasContentPending: Bool {
    get throws(WormholeError) {
      let own = member.peer(member.name)
      let given = reception?.given
      if try own.queue.contains(where: { $0.id != given }) { return true }
      return try !own.pendingContexts.isEmpty && reception?.isGivingContext != true
    }
  }
}

/// One time of receiving: from when something may come until nothing may any more.
final class Reception: Sendable {
  private struct Parts {
    var isStopped = false
    var messages: Wormhole.Subscription?
    var contexts: Wormhole.Subscription?
    /// What the delegate is being given.
    var given: String?
    var isGivingContext = false
  }

  private let parts = Monitor(Parts())

  var isStopped: Bool { parts.withLock { $0.isStopped } }
  var given: String? { parts.withLock { $0.given } }
  var isGivingContext: Bool { parts.withLock { $0.isGivingContext } }

  /// What is given meanwhile is no longer pending.
  func giving<Result>(_ id: String, _ body: () throws -> Result) rethrows -> Result {
    parts.withLock { $0.given = id }
    defer { parts.withLock { $0.given = nil } }
    return try body()
  }

  /// As ``giving(_:_:)``, for a context.
  func givingContext(_ body: () -> Void) {
    parts.withLock { $0.isGivingContext = true }
    defer { parts.withLock { $0.isGivingContext = false } }
    body()
  }

  func keep(_ messages: Wormhole.Subscription, _ contexts: Wormhole.Subscription?) {
    let isLate = parts.withLock { parts in
      (parts.messages, parts.contexts) = (messages, contexts)
      return parts.isStopped
    }
    if isLate { stop() }
  }

  /// Says that it is over, without waiting; what comes until it is ended is put back.
  func decline() { parts.withLock { $0.isStopped = true } }

  func stop() {
    let (messages, contexts) = parts.withLock { parts in
      defer { (parts.messages, parts.contexts) = (nil, nil) }
      parts.isStopped = true
      return (parts.messages, parts.contexts)
    }
    messages?.stop()
    contexts?.stop()
  }

  /// Ends the messages' part from inside their closure.
  func stopMessages() {
    let messages = parts.withLock { parts in
      parts.isStopped = true
      return parts.messages
    }
    messages?.stop()
  }
}
