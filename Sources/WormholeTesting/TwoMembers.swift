public import Wormhole

/// Two members of one temporary container, with a link between them.
///
/// Each has an opening of its own, so that they see each other as two processes would. They leave
/// when the test lets go of this object.
public final class TwoMembers: Sendable {
  /// What they are members of.
  public let container: TemporaryContainer
  /// What is between them.
  public let link: Link
  /// The first one; by default it is called `phone`.
  public let first: Wormhole.Member
  /// The second one; by default it is called `watch`.
  public let second: Wormhole.Member
  /// The second member as the first one sees it.
  public let toSecond: Wormhole.Peer
  /// The first member as the second one sees it.
  public let toFirst: Wormhole.Peer

  /// Joins under two names in a fresh container.
  ///
  /// - Parameters:
  ///   - first: the one name.
  ///   - second: the other.
  ///   - plan: what the link does; by default nothing.
  ///   - clock: what messages and the link go by; nil for the machine's.
  ///   - options: how both open the container.
  public convenience init(
    _ first: String = "phone", _ second: String = "watch", plan: LinkPlan = LinkPlan(),
    clock: TestClock? = nil, options: Wormhole.Options = Wormhole.Options()
  ) throws(WormholeError) {
    let container = try TemporaryContainer()
    let link = Link(plan, clock: clock)
    let options = Self.options(options, link, clock)
    self.init(
      container, link, try container.open(options).join(as: first),
      try container.open(options).join(as: second))
  }

  /// Joins under two names in a fresh container.
  ///
  /// As the one without `await`, off the task's thread.
  public convenience init(
    _ first: String = "phone", _ second: String = "watch", plan: LinkPlan = LinkPlan(),
    clock: TestClock? = nil, options: Wormhole.Options = Wormhole.Options()
  ) async throws(WormholeError) {
    let container = try TemporaryContainer()
    let link = Link(plan, clock: clock)
    let options = Self.options(options, link, clock)
    self.init(
      container, link, try await container.open(options).join(as: first),
      try await container.open(options).join(as: second))
  }

  private init(
    _ container: TemporaryContainer, _ link: Link, _ first: Wormhole.Member,
    _ second: Wormhole.Member
  ) {
    self.container = container
    self.link = link
    self.first = first
    self.second = second
    toSecond = first.peer(second.name)
    toFirst = second.peer(first.name)
  }

  private static func options(
    _ options: Wormhole.Options, _ link: Link, _ clock: TestClock?
  ) -> Wormhole.Options {
    var options = options
    options.use(link)
    if let clock { options.use(clock) }
    return options
  }

  deinit {
    first.leave()
    second.leave()
  }
}
