public import Dispatch
public import SharedContainer

extension Wormhole {
  /// A member as others see it; it need never have joined.
  public struct Peer: Sendable {
    let hole: Wormhole
    /// Who looks and sends; nil for one that has not joined.
    let member: Member?
    /// Who sends for a while without a name.
    var guest: Guest?
    /// The name under which somebody sends who has not joined.
    var sender: String?
    /// Where its directory is.
    var folder = Container.Folder.members
    /// The peer's name.
    public let name: String

    /// How well it can be reached now.
    ///
    /// The kernel is asked each time, so a process that was killed is not taken for a living one.
    /// Nobody hears of the question, and it waits for nobody.
    public var reachability: Reachability {
      get throws(WormholeError) {
        let found = try Sighting(name, in: hole.container, folder).reachability
        return line?.isCut == true ? found.whenCut : found
      }
    }

    /// What is known of it; nil if it has never joined, or if its profile is damaged.
    public var profile: Profile? {
      get throws(WormholeError) { try Sighting(name, in: hole.container).profile }
    }

    /// Calls a closure with how well the peer can be reached, and again whenever that changes.
    ///
    /// The first call is for what is the case already. A change that is taken back at once may not
    /// be heard; the last always is, also that a process was killed.
    ///
    /// - Parameters:
    ///   - queue: where the closures are called; by default on a queue of the watch's own.
    ///   - handler: is called with each change.
    ///   - failure: is called instead when it cannot be found out; the watch goes on. Without it,
    ///     errors go to the log.
    @discardableResult
    public func watchReachability(
      on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Reachability) -> Void,
      failure: (@Sendable (WormholeError) -> Void)? = nil
    ) throws(WormholeError) -> Subscription {
      try watching.observe(
        in: hole.begun, on: queue, handler,
        hole.failureHandler(failure, about: LogSubject(member: name)))
    }

    /// Calls a closure of the main actor with how well the peer can be reached, and again whenever
    /// that changes.
    ///
    /// As ``watchReachability(on:_:failure:)``. Whoever stops the watch on the main actor can be
    /// sure that the closures are not called again.
    ///
    /// - Parameters:
    ///   - handler: is called with each change.
    ///   - failure: is called instead when it cannot be found out.
    @discardableResult
    public func watchReachability(
      _ handler: @escaping @MainActor @Sendable (Reachability) -> Void,
      failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
    ) throws(WormholeError) -> Subscription {
      try watching.observe(
        in: hole.begun, IsolatedHandler(handler),
        hole.isolatedFailureHandler(failure, about: LogSubject(member: name)))
    }

    /// Calls an asynchronous closure with how well the peer can be reached, and again whenever that
    /// changes.
    ///
    /// As ``watchReachability(on:_:failure:)``, with the closures called from a task of the watch's
    /// own, each on the actor that it is isolated to, if it is to one.
    ///
    /// - Parameters:
    ///   - handler: is called with each change.
    ///   - failure: is called instead when it cannot be found out.
    @discardableResult
    public func watchReachability(
      _ handler: @escaping @isolated(any) @Sendable (Reachability) async -> Void,
      failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
    ) throws(WormholeError) -> Subscription {
      try watching.observe(
        in: hole.begun, IsolatedHandler(handler),
        hole.isolatedFailureHandler(failure, about: LogSubject(member: name)))
    }

    /// How well it can be reached, and then each change of that.
    public var reachabilities: Updates<Reachability> { watching.updates }

    private var watching: WatchPlan<Reachability> {
      let (container, name, line) = (hole.container, name, line)
      return WatchPlan(
        join: { (listener) throws(WormholeError) in
          try PresenceFeed.join(listener, name, container, .reachability, line)
        }, interpreter: { PresenceFeed.reachability })
    }

    /// The link between the two that a test has put there.
    private var line: LinkLine? {
      hole.options.link.map { LinkLine(link: $0, own: member?.name ?? sender ?? "", other: name) }
    }
  }

  /// A member to look at, for programs that have not joined.
  ///
  /// Nothing is looked at before it is used; a name that cannot be used is an error then.
  ///
  /// - Parameters:
  ///   - name: whose name it is.
  ///   - sender: the name that messages sent through it are from. Nobody need have joined under it,
  ///     and several may send under one name at the same time; who does is not told how a message
  ///     ended.
  public func peer(_ name: String, from sender: String? = nil) -> Peer {
    Peer(hole: self, member: nil, sender: sender, name: name)
  }
}
