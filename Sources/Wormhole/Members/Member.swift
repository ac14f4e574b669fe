public import SharedContainer
internal import Synchronization
internal import Syscalls

extension Wormhole {
  /// This process, or a part of it, under a name that nobody else has meanwhile.
  ///
  /// The name is given back by `leave()`, by `close()` of the opening that it has
  /// joined through, by the end of the container, and by the end of the process, however it comes;
  /// not before, whoever keeps this object. A copy of the process that `fork` makes does not have
  /// it. It may be used from any thread.
  public final class Member: Sendable, Lasting {
    /// The name that it has joined as.
    public let name: String
    /// What tells this joining from all others under the same name.
    public let incarnation: Incarnation
    let hole: Wormhole
    package let home: MemberDirectory
    let mailbox: Mailbox
    let outbox: Outbox
    let contexts: ContextInbox
    let live: LiveMailbox
    private let presence: Presence
    private let isLeaving = Atomic<Bool>(false)
    private let linkWatching: (any AnyObject & Sendable)?
    private let profile: Monitor<MemberProfile>

    init(
      hole: Wormhole, home: MemberDirectory, _ presence: Presence, _ profile: MemberProfile,
      _ live: LiveMailbox, joined: MessageStamp
    ) {
      name = home.name
      incarnation = profile.incarnation
      self.hole = hole
      self.home = home
      let mailbox = Mailbox(hole, home, epoch: joined.epoch)
      self.mailbox = mailbox
      linkWatching = hole.options.link?.watch { [weak mailbox] in mailbox?.wake(urgent: true) }
      outbox = Outbox(hole, home, joined: joined)
      contexts = ContextInbox(hole, home)
      self.live = live
      self.presence = presence
      self.profile = Monitor(profile)
    }

    /// Whether it has the name still: it has not left, and this is the process that joined.
    public var isJoined: Bool { presence.isHeld }

    /// What the others may know of it.
    public var info: [String: String] { profile.withLock { $0.info } }

    /// Tells the others something else of itself; who watches hears of it.
    ///
    /// Throws ``WormholeError/Code-swift.struct/notJoined`` once it has left, or if its directory
    /// was removed by hand.
    public func update(info: [String: String]) throws(WormholeError) {
      try Self.check(info, name)
      try hole.container.checkOwner("update info of", name)
      try profile.withLock { profile throws(WormholeError) in
        guard try keepsPresence else {
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

    private var keepsPresence: Bool {
      get throws(WormholeError) {
        do throws(Errno) {
          return try home.keeps(presence)
        } catch {
          throw WormholeError(error, "update info of", name)
        }
      }
    }

    /// Gives the name back; a second time it does nothing.
    ///
    /// Who watches hears of it. What is known of the member stays, and what was sent to it waits
    /// until somebody joins under the name again; what is in hand and not acknowledged is received
    /// again then. What was begun by the member and goes on until it is stopped, ends with it.
    ///
    /// Receivers' closures that are under way on other threads are waited for, so that what they
    /// handle does not come again. Inside such a closure the name is given back once that has
    /// returned, for the same reason. Sequences end, and what is sent or waited for through the
    /// member afterwards throws ``WormholeError/Code-swift.struct/notJoined``.
    public func leave() { _ = leave(because: nil) }

    /// - Returns: what waits for the calls of closures that are under way.
    func leave(because reason: WormholeError?) -> @Sendable () -> Void {
      // A copy of the process is no member, and has nothing to give back.
      guard hole.container.isOwned else { return {} }
      guard !isLeaving.exchange(true, ordering: .acquiringAndReleasing) else { return {} }
      let rest = Monitor(Action {})
      mailbox.closures.end { [self] in
        // Whoever comes next must find all that was claimed.
        mailbox.close()
        outbox.close()
        contexts.close()
        live.close()
        presence.release()
        let others = live.begun.end(reason)
        rest.withLock { $0 = Action(others) }
        hole.begun.forget(self, reason)
      }
      return rest.withLock { $0 }.perform
    }

    /// Leaves, and waits for all closures that were begun by it.
    package func stop() { leave(because: nil)() }

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
