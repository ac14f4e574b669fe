public import Dispatch
public import WormholeContainerStorage

/// A member from the view of other processes; it need never have joined.
public struct Peer: Sendable {
  let container: SharedContainer
  /// The member that inspects and sends; nil for a process that has not joined.
  let member: Member?
  /// The guest that sends without a name.
  var guest: (any Participant)?
  /// The name under which a process sends without joining.
  var sender: String?
  /// The folder of the peer's directory.
  var folder = Container.Folder.members
  /// The peer's name.
  public let name: String

  /// The present reachability of the peer.
  ///
  /// Each call asks the kernel, so a killed process does not count as running. The call notifies
  /// no process and never waits.
  public var reachability: Reachability {
    get throws(WormholeError) {
      let found = try FoundMember(name, in: container.storage, folder).reachability
      return line?.isCut == true ? found.whenCut : found
    }
  }

  /// The peer's profile; nil if the peer has never joined or its profile is damaged.
  public var profile: Profile? {
    get throws(WormholeError) { try FoundMember(name, in: container.storage).profile }
  }

  /// Calls a closure with the peer's reachability, and again after each change.
  ///
  /// The first call reports the present state. A change that is reverted at once may not be
  /// reported; the last change always is, including the death of the process.
  ///
  /// - Parameters:
  ///   - queue: the queue for the closures; by default, a queue of the watch.
  ///   - handler: called with each change.
  ///   - failure: called in place of the handler if the reachability cannot be determined; the
  ///     watch continues. Without this closure, errors go to the log.
  @discardableResult
  public func watchReachability(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Reachability) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching.observe(
      in: container.subscriptions, on: queue, handler,
      container.failureHandler(failure, about: LogSubject(member: name)))
  }

  /// Calls a closure of the main actor with the peer's reachability, and again after each change.
  ///
  /// As ``watchReachability(on:_:failure:)``. After a stop of the watch on the main actor, the
  /// closures are not called again.
  ///
  /// - Parameters:
  ///   - handler: called with each change.
  ///   - failure: called in place of the handler if the reachability cannot be determined.
  @discardableResult
  public func watchReachability(
    _ handler: @escaping @MainActor @Sendable (Reachability) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching.observe(
      in: container.subscriptions, IsolatedHandler(handler),
      container.isolatedFailureHandler(failure, about: LogSubject(member: name)))
  }

  /// Calls an asynchronous closure with the peer's reachability, and again after each change.
  ///
  /// As ``watchReachability(on:_:failure:)``, with the closures called from a task of the watch,
  /// each on the actor to which the closure is isolated, if any.
  ///
  /// - Parameters:
  ///   - handler: called with each change.
  ///   - failure: called in place of the handler if the reachability cannot be determined.
  @discardableResult
  public func watchReachability(
    _ handler: @escaping @isolated(any) @Sendable (Reachability) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching.observe(
      in: container.subscriptions, IsolatedHandler(handler),
      container.isolatedFailureHandler(failure, about: LogSubject(member: name)))
  }

  /// The peer's reachability, and then each change.
  public var reachabilities: Updates<Reachability> { watching.updates }

  private var watching: WatchPlan<Reachability> {
    let (storage, name, line) = (container.storage, name, line)
    return WatchPlan(
      join: { (listener) throws(WormholeError) in
        try PresenceFeed.join(listener, name, storage, .reachability, line)
      }, interpreter: { PresenceFeed.reachability })
  }

  /// The link between sender and peer that a test has inserted.
  private var line: LinkLine? {
    container.options.link.map {
      LinkLine(link: $0, own: member?.name ?? sender ?? "", other: name)
    }
  }
}

extension SharedContainer {
  /// Returns a member to inspect, for programs that have not joined.
  ///
  /// The call reads nothing. An invalid name is an error when the peer is used.
  ///
  /// - Parameters:
  ///   - name: the name of the member.
  ///   - sender: the sender's name in messages through the peer. No process need have joined under
  ///     the name, and several processes may send under the same name at the same time. The sender
  ///     receives no outcomes.
  public func peer(_ name: String, from sender: String? = nil) -> Peer {
    Peer(container: self, member: nil, sender: sender, name: name)
  }
}

extension Peer {
  /// The member or guest that sends; nil for a process that has neither joined nor become a guest.
  var participant: (any Participant)? { member ?? guest }

  /// The sender's escaped name; nil for a sender without a name, or with an unusable name.
  var escapedSender: String? {
    member?.home.escaped ?? sender.flatMap { try? EscapedName.escape($0) }
  }

  /// Throws if the sender has left: its messages would now belong to another process.
  func checkSender(_ operation: String) throws(WormholeError) {
    guard participant?.hasLeft == true else { return }
    throw WormholeError(
      .notJoined, operation, name,
      because: member.map { "'\($0.name)' has left" } ?? "the guest has left",
      hint: member == nil ? "become a guest again" : "join again, and send through that member")
  }
}
