package import SharedContainer
internal import Syscalls

extension Wormhole {
  /// This process, or a part of it, under a name that nobody else has meanwhile.
  ///
  /// The name is given back by ``leave()``, when nobody keeps the member any more, and by the end
  /// of the process, however it comes. A copy of the process that `fork` makes does not have it. It
  /// may be used from any thread.
  public final class Member: Sendable {
    /// The name that it has joined as.
    public let name: String
    /// What tells this joining from all others under the same name: 16 hexadecimal digits.
    public let incarnation: String
    let hole: Wormhole
    package let home: MemberDirectory
    /// When it joined, on the clock that runs from the start of the machine.
    package let joinedAt: Int64
    let mailbox: Mailbox
    let outbox: Outbox
    let contexts: ContextInbox
    let live: Live
    private let presence: Presence
    private let linkWatching: (any AnyObject & Sendable)?
    private let profile: Monitor<MemberProfile>

    init(
      hole: Wormhole, home: MemberDirectory, _ presence: Presence, _ profile: MemberProfile,
      _ live: Live, joinedAt: Int64
    ) {
      name = home.name
      incarnation = profile.incarnation
      self.hole = hole
      self.home = home
      self.joinedAt = joinedAt
      let mailbox = Mailbox(hole, home)
      self.mailbox = mailbox
      linkWatching = hole.options.link?.watch { [weak mailbox] in mailbox?.wake(urgent: true) }
      outbox = Outbox(hole, home, joinedAt: joinedAt)
      contexts = ContextInbox(hole, home)
      self.live = live
      self.presence = presence
      self.profile = Monitor(profile)
    }

    deinit { leave() }

    /// Whether it has the name still: it has not left, and this is the process that joined.
    public var isJoined: Bool { presence.isHeld }

    /// What the others may know of it.
    public var info: [String: String] { profile.withLock { $0.info } }

    /// Tells the others something else of itself; who watches hears of it.
    ///
    /// Throws ``WormholeError/Code-swift.enum/notJoined`` once it has left, or if its directory was
    /// removed by hand.
    public func update(info: [String: String]) throws(WormholeError) {
      try Self.check(info, name)
      try profile.withLock { profile throws(WormholeError) in
        guard home.keeps(presence) else {
          throw WormholeError(
            .notJoined, "update info of", name,
            because: presence.isHeld ? "its directory was removed" : "it has left",
            hint: "join again")
        }
        var changed = profile
        changed.info = info
        try home.write(changed)
        profile = changed
      }
    }

    /// Gives the name back; a second time it does nothing.
    ///
    /// Who watches hears of it. What is known of the member stays, and what was sent to it waits
    /// until somebody joins under the name again; what is in hand and not acknowledged is received
    /// again then.
    public func leave() {
      // Whoever comes next must find all that was claimed.
      mailbox.close()
      outbox.close()
      contexts.close()
      live.close()
      presence.release()
    }

    /// Another member, or this one, to look at and to send to; it need never have joined.
    ///
    /// Nothing is looked at before it is used; a name that cannot be used is an error then.
    public func peer(_ name: String) -> Peer { Peer(hole: hole, member: self, name: name) }

    static func check(_ info: [String: String], _ name: String) throws(WormholeError) {
      guard !MemberProfile.fits(info) else { return }
      throw WormholeError(
        .tooLarge, "use the info of", name,
        because: "its keys and values take more than \(MemberProfile.largestInfo) bytes",
        hint: "put what is larger into a channel")
    }
  }
}
