public import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A link that several processes share.
///
/// The test's own process writes the cuts to a channel of a separate container, not the members'
/// container; the other processes watch the channel. Each process decides about delays, duplicates
/// and losses by the same plan, for its received messages and its own requests.
extension Link {
  /// The current cuts.
  struct Cuts: Codable, Equatable, Sendable {
    var isCut: Bool
    var isCutOff: [String]
  }

  /// The state with which processes share a link.
  struct SharedState: Sendable {
    let channel: Channel<Cuts>
    /// An object to retain: the container in the test's process, the watch in the other processes.
    let keeper: any Sendable
    let path: String
    let isOwn: Bool
  }

  static let pathVariable = "WORMHOLE_TESTING_LINK"
  static let planVariable = "WORMHOLE_TESTING_LINK_PLAN"

  /// Returns the variables with which another process uses this link too.
  func environment() throws(WormholeError) -> [String: String] {
    let sharing = try sharing.withLock { sharing throws(WormholeError) -> SharedState in
      if let sharing { return sharing }
      let container = try TemporaryContainer()
      let made = SharedState(
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
        preconditionFailure("cannot send the cuts of the link to the processes: \(error)")
      }
    }
  }

  /// Returns the link of the test, if a test has started this process with a link; otherwise nil.
  ///
  /// A plan that cannot be read is an error: a program without the faults of its test would pass.
  static func ofTest() throws(WormholeError) -> Link? {
    guard let path = Processes.environment(pathVariable) else { return nil }
    let line = Processes.environment(planVariable) ?? ""
    guard let plan = LinkPlan(line) else {
      throw WormholeError(
        .invalidValue, "use the link of the test at", path,
        because: "\(planVariable) is '\(line)', not the line of a plan",
        hint: "use the same version of WormholeTesting in the test and in the program")
    }
    let link = Link(plan)
    let channel = try SharedContainer(directory: path).channel("cuts", of: Cuts.self)
    if let cuts = try channel.value { link.follow(cuts) }
    let watching = try channel.watch { [weak link] snapshot in
      if let cuts = snapshot.value { link?.follow(cuts) }
    }
    link.sharing.withLock {
      $0 = SharedState(channel: channel, keeper: watching, path: path, isOwn: false)
    }
    return link
  }
}

extension Options {
  /// Puts the test's link between the members of this instance and all others, if a test has
  /// started this process with a link; otherwise does nothing.
  ///
  /// For programs made for tests: a test can cut their link, and make the link drop, delay and
  /// duplicate received messages by plan. The programs learn of a cut or its repair a moment after
  /// the test has made it.
  public mutating func useLinkOfTest() throws(WormholeError) {
    if let link = try Link.ofTest() { use(link) }
  }
}
