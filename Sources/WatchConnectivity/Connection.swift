internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeDropIns
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A pairing from the view of one side: its own member, and the peer for the counterpart.
///
/// Each pairing has its own pair of members, `phone.<watch>` and `watch.<watch>`, so no content of
/// one watch can reach another.
final class Connection: Sendable {
  let container: SharedContainer
  let role: WCSession.Role
  let watch: String
  let member: Member
  let peer: Peer
  let transfers: Transfers
  private let handles = Monitor(Handles())

  private struct Handles {
    var outcomes: Subscription?
    /// The subscriptions that end with the connection, in the order of their ends.
    var others: [Subscription] = []
    var reception: Reception?
  }

  init(
    _ container: SharedContainer, _ role: WCSession.Role, watch: String, _ transfers: Transfers
  ) throws(WormholeError) {
    self.container = container
    self.role = role
    self.watch = watch
    self.transfers = transfers
    member = try container.join(as: "\(role.rawValue).\(watch)")
    peer = member.peer("\(role.other.rawValue).\(watch)")
  }

  // MARK: Subscriptions

  func keep(outcomes: Subscription) {
    handles.withLock { $0.outcomes = outcomes }
  }

  /// The next subscriber receives the declined outcomes after this subscription has ended.
  func stopOutcomes() {
    let before = handles.withLock { $0.outcomes.take() }
    before?.stop()
  }

  /// Keeps a subscription until the end of the connection.
  func keep(_ subscription: Subscription) {
    handles.withLock { $0.others.append(subscription) }
  }

  var reception: Reception? { handles.withLock { $0.reception } }

  func keep(_ reception: Reception?) {
    let before = handles.withLock { exchange(&$0.reception, with: reception) }
    before?.stop()
  }

  /// Ends all subscriptions and leaves the member's name; waits for callbacks in progress.
  func end() {
    let handles = handles.withLock { exchange(&$0, with: Handles()) }
    for subscription in handles.others { subscription.stop() }
    handles.reception?.stop()
    handles.outcomes?.stop()
    member.leave()
  }

  // MARK: State

  /// Returns the reason why nothing can be sent, even without a time limit; nil if sending is
  /// possible.
  func obstacle(_ pairing: Pairing.State) -> WCError? {
    guard let watch = pairing.watches[watch] else { return WCError(.deviceNotPaired) }
    switch role {
    case .phone: return watch.isAppInstalled ? nil : WCError(.watchAppNotInstalled)
    case .watch:
      if pairing.isWatchOnly { return WCError(.watchOnlyApp) }
      return pairing.isPhoneAppInstalled ? nil : WCError(.companionAppNotInstalled)
    }
  }

  /// Whether any content passes at the moment.
  func isOpen(_ pairing: Pairing.State) -> Bool {
    guard let found = pairing.watches[watch] else { return false }
    return pairing.active == watch && found.isInRange && found.isAppInstalled
      && pairing.isPhoneAppInstalled && !pairing.isWatchOnly
  }

  /// Whether messages pass, provided that a receiver runs.
  func carriesMessages(_ pairing: Pairing.State) -> Bool {
    isOpen(pairing) && !(role == .watch && pairing.isPhoneLocked)
  }

  /// Whether messages pass and the counterpart runs or can be started: a message of the watch
  /// starts the phone's app, and a message of the phone never starts the watch's app.
  ///
  /// Throws if the state may be known a little later.
  func isReachable(_ pairing: Pairing.State) throws(WormholeError) -> Bool {
    guard carriesMessages(pairing) else { return false }
    let isThere = try Self.known { () throws(WormholeError) in
      try peer.reachability == .running
    }
    if isThere || role == .phone { return isThere }
    return try Self.known { () throws(WormholeError) in
      try container.launchCommand(of: peer.name) != nil
    }
  }

  /// Returns false if the state will never be known; throws if the error may pass.
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
  var isPeerThere: Bool { (try? peer.reachability) == .running }

  /// Whether a start of the counterpart is registered.
  var isStartable: Bool { ((try? container.launchCommand(of: peer.name)) ?? nil) != nil }

  var hasContentPending: Bool {
    get throws(WormholeError) {
      let own = member.peer(member.name)
      let given = Mutants.has(.countGiven) ? nil : reception?.given
      if Mutants.has(.readEachWaiting) { _ = try own.queue }
      if try own.hasQueuedMessage(except: given) { return true }
      return try !own.pendingContexts.isEmpty && reception?.isGivingContext != true
    }
  }
}

/// One period of receiving: from the moment when content may arrive until no more content may
/// arrive.
final class Reception: Sendable {
  private struct Parts {
    var isStopped = false
    var messages: Subscription?
    var contexts: Subscription?
    /// The ID of the message that the delegate is handling.
    var given: String?
    var isGivingContext = false
  }

  private let parts = Monitor(Parts())

  var isStopped: Bool { parts.withLock { $0.isStopped } }
  var given: String? { parts.withLock { $0.given } }
  var isGivingContext: Bool { parts.withLock { $0.isGivingContext } }

  /// A message that the delegate is handling is no longer pending.
  func giving<Result>(_ id: String, _ body: () throws -> Result) rethrows -> Result {
    parts.withLock { $0.given = id }
    defer { parts.withLock { $0.given = nil } }
    return try body()
  }

  /// The same as ``giving(_:_:)``, for a context.
  func givingContext(_ body: () -> Void) {
    parts.withLock { $0.isGivingContext = true }
    defer { parts.withLock { $0.isGivingContext = false } }
    body()
  }

  func keep(_ messages: Subscription, _ contexts: Subscription?) {
    let isLate = parts.withLock { parts in
      (parts.messages, parts.contexts) = (messages, contexts)
      return parts.isStopped
    }
    if isLate { stop() }
  }

  /// Marks the reception as stopped, without waiting.
  ///
  /// A message that arrives before the subscription has ended is requeued.
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

  /// Ends the subscription to messages from inside its own closure.
  func stopMessages() {
    let messages = parts.withLock { parts in
      parts.isStopped = true
      return parts.messages
    }
    messages?.stop()
  }
}
