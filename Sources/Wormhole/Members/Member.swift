internal import Synchronization
public import WormholeContainerStorage
internal import WormholeSyscalls

/// This process, or a part of it, under a name that is exclusive at any time.
///
/// The name is released by `leave()`, by `close()` of the instance through which the member has
/// joined, by the end of the container, and by any end of the process; not earlier, even if the
/// program retains this object no longer. A child made by `fork` does not have the name. A member
/// may be used from any thread.
public final class Member: Sendable, Participant {
  /// The name under which the member has joined.
  public let name: String
  /// The incarnation, which differs for every join under the same name.
  public let incarnation: Incarnation
  let container: SharedContainer
  package let home: MemberDirectory
  let joined: MessageStamp
  let liveFolder: OpenDirectory
  let services = Services()
  let presence: Presence
  let isLeaving = Atomic<Bool>(false)
  private let profile: Monitor<MemberProfile>

  init(
    container: SharedContainer, home: MemberDirectory, _ presence: Presence,
    _ profile: MemberProfile,
    _ liveFolder: OpenDirectory, joined: MessageStamp
  ) {
    name = home.name
    incarnation = profile.incarnation
    self.container = container
    self.home = home
    self.presence = presence
    self.profile = Monitor(profile)
    self.liveFolder = liveFolder
    self.joined = joined
  }

  var mark: String { home.escaped }

  /// Whether the member still has the name: this process has joined and not left.
  public var isJoined: Bool { presence.isHeld }

  /// Information about the member for other processes.
  public var info: [String: String] { profile.withLock { $0.info } }

  /// Changes the information for other processes; watchers of the member are notified.
  ///
  /// Throws ``WormholeError/Code-swift.struct/notJoined`` after the member has left, or if its
  /// directory was removed by another tool.
  public func update(info: [String: String]) throws(WormholeError) {
    try Self.check(info, name)
    try container.storage.checkOwner("update info of", name)
    try profile.withLock { profile throws(WormholeError) in
      guard try keepsPresence else {
        throw WormholeError(
          .notJoined, "update info of", name,
          because: presence.isHeld
            ? "the member's directory was removed" : "the member has left",
          hint: "join again")
      }
      var changed = profile
      changed.info = info
      try home.write(changed)
      profile = changed
    }
  }

  private var keepsPresence: Bool {
    get throws(WormholeError) {
      try naming("update info of", name, at: home, home.keeps(presence))
    }
  }

  /// Returns a member to inspect and to send to, possibly this member; it need never have joined.
  ///
  /// The call reads nothing. An invalid name is an error when the peer is used.
  public func peer(_ name: String) -> Peer { Peer(container: container, member: self, name: name) }

  static func check(_ info: [String: String], _ name: String) throws(WormholeError) {
    guard !MemberProfile.fits(info) else { return }
    throw WormholeError(
      .tooLarge, "use the info of", name,
      because: "the keys and values take more than \(MemberProfile.largestInfo) bytes",
      hint: "put larger values into a channel")
  }
}
