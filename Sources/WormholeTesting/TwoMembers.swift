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
  ///   - plan: what the link does; by default nothing.
  ///   - clock: what messages and the link go by; nil for the machine's.
  ///   - options: how both open the container.
  public init(
    _ first: String = "phone", _ second: String = "watch", plan: LinkPlan = LinkPlan(),
    clock: TestClock? = nil, options: Wormhole.Options = Wormhole.Options()
  ) throws(WormholeError) {
    container = try TemporaryContainer()
    link = Link(plan, clock: clock)
    var options = options
    options.use(link)
    if let clock { options.use(clock) }
    self.first = try container.open(options).join(as: first)
    self.second = try container.open(options).join(as: second)
    toSecond = self.first.peer(second)
    toFirst = self.second.peer(first)
  }

  deinit {
    first.leave()
    second.leave()
  }
}
