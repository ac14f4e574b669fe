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
  public func watchMembers(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Profile) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Watching {
    try watchingMembers.observe(on: queue, handler, failureHandler(failure))
  }

  /// Each member that has ever joined, and then each change of one of them.
  public var memberChanges: Updates<Profile> { watchingMembers.updates }

  private var watchingMembers: WatchPlan<Profile> {
    WatchPlan(
      join: { (listener) throws(WormholeError) in try self.joinAllMembers(listener) },
      interpreter: { PresenceFeed.profile })
  }

  private func joinAllMembers(_ listener: Listener) throws(WormholeError) {
    let (container, queue) = (container, Self.finding)
    // Told on the watcher's thread; what has to be done is done elsewhere.
    let watch = try container.watchNames(in: .members) { [weak listener] change in
      // One that goes is seen by the watch on it, and tells of itself again should it come back.
      guard case .came(let name) = change else { return }
      queue.async { [weak listener] in
        guard let listener, !listener.hasJoined(name) else { return }
        do throws(WormholeError) {
          try PresenceFeed.join(listener, name, container, .profile)
        } catch {
          container.options.environment.log(.error, "\(error)")
        }
      }
    }
    listener.keep(watch)
  }
}
