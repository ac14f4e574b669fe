public import Dispatch
public import SharedContainer

extension Wormhole {
  /// All that have ever joined, in order of name.
  ///
  /// Without those whose profile is damaged, until they join again.
  public func members() throws(WormholeError) -> [Profile] {
    var members: [Profile] = []
    for name in try container.names(in: .members) {
      if let profile = try Sighting(name, in: container).profile { members.append(profile) }
    }
    return members
  }

  /// Calls a closure with each member that has ever joined, and again whenever one joins, leaves,
  /// dies or tells something else of itself; also with those that join for the first time.
  ///
  /// Of each member the newest is heard. One whose directory is removed by hand is told of as
  /// ``Reachability/notReachable``.
  ///
  /// - Parameters:
  ///   - queue: where the closures are called; by default on a queue of the watch's own.
  ///   - handler: gets the member as it is then.
  ///   - failure: is called instead when a member cannot be looked at; the watch goes on. Without
  ///     it, errors go to the log.
  @discardableResult
  public func watchMembers(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Profile) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watchingMembers.observe(in: begun, on: queue, handler, failureHandler(failure))
  }

  /// Calls a closure of the main actor with each member that has ever joined, and again whenever
  /// something changes.
  ///
  /// As ``watchMembers(on:_:failure:)``. Whoever stops the watch on the main actor can be sure that
  /// the closures are not called again.
  ///
  /// - Parameters:
  ///   - handler: gets the member as it is then.
  ///   - failure: is called instead when a member cannot be looked at.
  @discardableResult
  public func watchMembers(
    _ handler: @escaping @MainActor @Sendable (Profile) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watchingMembers.observe(
      in: begun, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Calls an asynchronous closure with each member that has ever joined, and again whenever
  /// something changes.
  ///
  /// As ``watchMembers(on:_:failure:)``, with the closures called from a task of the watch's own,
  /// each on the actor that it is isolated to, if it is to one.
  ///
  /// - Parameters:
  ///   - handler: gets the member as it is then.
  ///   - failure: is called instead when a member cannot be looked at.
  @discardableResult
  public func watchMembers(
    _ handler: @escaping @isolated(any) @Sendable (Profile) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watchingMembers.observe(
      in: begun, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Each member that has ever joined, and then each change of one of them.
  public var memberChanges: Updates<Profile> { watchingMembers.updates }

  private var watchingMembers: WatchPlan<Profile> {
    WatchPlan(
      join: { (listener) throws(WormholeError) in try self.joinAllMembers(listener) },
      interpreter: { PresenceFeed.profile })
  }

  private func joinAllMembers(_ listener: Listener) throws(WormholeError) {
    try WormholeError.checkQueues("watch members of", directory)
    let (container, queue) = (container, finding)
    let watch = try container.watchNames(in: .members) { [weak listener] change in
      // One that goes is seen by the watch on it, and tells of itself again should it come back.
      guard case .came(let name) = change else { return }
      listener?.joinSoon(name, of: container, on: queue, about: LogSubject(member: name)) {
        (listener) throws(WormholeError) in
        try PresenceFeed.join(listener, name, container, .profile)
      }
    } ended: { [weak listener] end in
      listener?.fail(end.error("watch members of", container.path))
    }
    listener.keep(watch)
  }
}
