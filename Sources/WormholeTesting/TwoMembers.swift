public import Wormhole

/// Two members of one temporary container, with a link between them.
///
/// Each member has an instance of its own, so that the members see each other as two processes
/// would. Both leave when the test releases this object.
public final class TwoMembers: Sendable {
  /// The container of both members.
  public let container: TemporaryContainer
  /// The link between the members.
  public let link: Link
  /// The first member; its default name is `phone`.
  public let first: Member
  /// The second member; its default name is `watch`.
  public let second: Member
  /// The second member as the first member sees it.
  public let toSecond: Peer
  /// The first member as the second member sees it.
  public let toFirst: Peer

  /// Joins under two names in a new container.
  ///
  /// - Parameters:
  ///   - first: the name of the first member.
  ///   - second: the name of the second member.
  ///   - plan: the faults of the link; by default no faults.
  ///   - clock: the clock of messages and link; nil for the host's clock.
  ///   - options: the options with which both members open the container.
  public convenience init(
    _ first: String = "phone", _ second: String = "watch", plan: LinkPlan = LinkPlan(),
    clock: TestClock? = nil, options: Options = Options()
  ) throws(WormholeError) {
    let container = try TemporaryContainer()
    let link = Link(plan, clock: clock)
    let options = Self.options(options, link, clock)
    self.init(
      container, link, try container.open(options).join(as: first),
      try container.open(options).join(as: second))
  }

  /// Joins under two names in a new container.
  ///
  /// As the overload without `await`, off the task's thread.
  public convenience init(
    _ first: String = "phone", _ second: String = "watch", plan: LinkPlan = LinkPlan(),
    clock: TestClock? = nil, options: Options = Options()
  ) async throws(WormholeError) {
    let container = try TemporaryContainer()
    let link = Link(plan, clock: clock)
    let options = Self.options(options, link, clock)
    self.init(
      container, link, try await container.open(options).join(as: first),
      try await container.open(options).join(as: second))
  }

  private init(
    _ container: TemporaryContainer, _ link: Link, _ first: Member,
    _ second: Member
  ) {
    self.container = container
    self.link = link
    self.first = first
    self.second = second
    toSecond = first.peer(second.name)
    toFirst = second.peer(first.name)
  }

  private static func options(
    _ options: Options, _ link: Link, _ clock: TestClock?
  ) -> Options {
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
