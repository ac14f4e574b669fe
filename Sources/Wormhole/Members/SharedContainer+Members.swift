public import Dispatch
public import WormholeContainerStorage

extension SharedContainer {
  /// Returns all members that have ever joined, in the order of their names.
  ///
  /// Members with a damaged profile are left out until they join again.
  public func members() throws(WormholeError) -> [Profile] {
    var members: [Profile] = []
    for name in try storage.names(in: .members) {
      if let profile = try FoundMember(name, in: storage).profile { members.append(profile) }
    }
    return members
  }

  /// Calls a closure with each member that has ever joined, and again whenever a member joins,
  /// leaves, dies or changes its info; includes members that join for the first time.
  ///
  /// For each member, the newest change is reported. A member whose directory is removed by another
  /// tool is reported as ``Reachability/neverJoined``.
  ///
  /// - Parameters:
  ///   - queue: the queue for the closures; by default, a queue of the watch.
  ///   - handler: receives the member's profile at the time of the change.
  ///   - failure: called in place of the handler if a member cannot be read; the watch continues.
  ///     Without this closure, errors go to the log.
  @discardableResult
  public func watchMembers(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Profile) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watchingMembers.observe(in: subscriptions, on: queue, handler, failureHandler(failure))
  }

  /// Calls a closure of the main actor with each member that has ever joined, and again after each
  /// change.
  ///
  /// As ``watchMembers(on:_:failure:)``. After a stop of the watch on the main actor, the closures
  /// are not called again.
  ///
  /// - Parameters:
  ///   - handler: receives the member's profile at the time of the change.
  ///   - failure: called in place of the handler if a member cannot be read.
  @discardableResult
  public func watchMembers(
    _ handler: @escaping @MainActor @Sendable (Profile) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watchingMembers.observe(
      in: subscriptions, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Calls an asynchronous closure with each member that has ever joined, and again after each
  /// change.
  ///
  /// As ``watchMembers(on:_:failure:)``, with the closures called from a task of the watch, each on
  /// the actor to which the closure is isolated, if any.
  ///
  /// - Parameters:
  ///   - handler: receives the member's profile at the time of the change.
  ///   - failure: called in place of the handler if a member cannot be read.
  @discardableResult
  public func watchMembers(
    _ handler: @escaping @isolated(any) @Sendable (Profile) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watchingMembers.observe(
      in: subscriptions, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Each member that has ever joined, and then each change of a member.
  public var memberChanges: Updates<Profile> { watchingMembers.updates }

  private var watchingMembers: WatchPlan<Profile> {
    WatchPlan(
      join: { (listener) throws(WormholeError) in try self.joinAllMembers(listener) },
      interpreter: { PresenceFeed.profile })
  }

  private func joinAllMembers(_ listener: Listener) throws(WormholeError) {
    try WormholeError.checkNoCopy("watch members of", directory)
    let (storage, queue) = (storage, background)
    let watch = try storage.watchNames(in: .members) { [weak listener] change in
      // The watch on a member itself sees its removal, and reports the member again if it returns.
      guard case .came(let name) = change else { return }
      listener?.joinSoon(name, of: storage, on: queue, about: LogSubject(member: name)) {
        (listener) throws(WormholeError) in
        try PresenceFeed.join(listener, name, storage, .profile)
      }
    } ended: { [weak listener] end in
      listener?.fail(end.error("watch members of", storage.path))
    }
    listener.keep(watch)
  }
}
