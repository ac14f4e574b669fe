internal import Syscalls
public import Wormhole

/// A link that stands in several processes.
///
/// The test's own process says what is cut, in a channel of a container that is not the members';
/// the others watch it. What is delayed, doubled and dropped each of them decides by the same plan,
/// for what it receives and asks itself.
extension Link {
  /// What is cut.
  struct Cuts: Codable, Equatable, Sendable {
    var isCut: Bool
    var isCutOff: [String]
  }

  /// How processes come to have one link.
  struct Sharing: Sendable {
    let channel: Wormhole.Channel<Cuts>
    /// What has to be kept for it: the container of the one who tells, the watch of those who hear.
    let keeper: any Sendable
    let path: String
    let isOwn: Bool
  }

  static let pathVariable = "WORMHOLE_TESTING_LINK"
  static let planVariable = "WORMHOLE_TESTING_LINK_PLAN"

  /// What another process has to find in its environment to have this link too.
  func environment() throws(WormholeError) -> [String: String] {
    let sharing = try sharing.withLock { sharing throws(WormholeError) -> Sharing in
      if let sharing { return sharing }
      let container = try TemporaryContainer()
      let made = Sharing(
        channel: try container.open().channel("cuts"), keeper: container, path: container.path,
        isOwn: true)
      try made.channel.put(cuts)
      sharing = made
      return made
    }
    return [Self.pathVariable: sharing.path, Self.planVariable: plan.description]
  }

  func tellOthers() {
    sharing.withLock { sharing in
      guard let sharing, sharing.isOwn else { return }
      do throws(WormholeError) {
        try sharing.channel.put(cuts)
      } catch {
        preconditionFailure("other processes cannot be told what is cut: \(error)")
      }
    }
  }

  /// The link of the test that has started this process; nil if it has started it without one.
  static func ofTest() throws(WormholeError) -> Link? {
    guard let path = Processes.environment(pathVariable),
      let plan = Processes.environment(planVariable).flatMap({ LinkPlan($0) })
    else { return nil }
    let link = Link(plan)
    let channel = try Wormhole(directory: path).channel("cuts", of: Cuts.self)
    if let cuts = try channel.value { link.follow(cuts) }
    let watching = try channel.watch { [weak link] snapshot in
      if let cuts = snapshot.value { link?.follow(cuts) }
    }
    link.sharing.withLock {
      $0 = Sharing(channel: channel, keeper: watching, path: path, isOwn: false)
    }
    return link
  }
}

extension Wormhole.Options {
  /// Puts the link of the test that has started this process between the members of this opening
  /// and all others; does nothing in a process that no test has started, or without a link.
  ///
  /// For programs that are made to be tested, so that a test can cut their link, and have it drop,
  /// delay and double by plan what they receive. What is cut and healed they hear of a moment after
  /// the test has said so.
  public mutating func useLinkOfTest() throws(WormholeError) {
    if let link = try Link.ofTest() { use(link) }
  }
}
