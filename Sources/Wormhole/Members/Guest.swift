internal import SharedContainer
internal import Syscalls

extension Wormhole {
  /// Somebody who sends and wants to be told how it ended, without having joined.
  ///
  /// It has no name: those who receive what it sends are told nobody's, and nobody can send to it.
  /// It goes with `leave()`, when nobody keeps it any more, and with the end of the process; what
  /// it has sent arrives all the same, and nobody is told of the end.
  public final class Guest: Sendable {
    let outbox: Outbox
    let live: LiveMailbox
    let hole: Wormhole
    let home: MemberDirectory
    private let presence: Presence

    init(_ hole: Wormhole) throws(WormholeError) {
      try hole.container.checkOwner("become a guest of", hole.directory)
      try WormholeError.checkQueues("become a guest of", hole.directory)
      self.hole = hole
      let made = try MessageStamp(hole.container)
      (home, presence) = try hole.container.makeGuest()
      outbox = Outbox(hole, home, joined: made)
      guard let incarnation = Incarnation(rawValue: home.escaped) else {
        preconditionFailure("a guest is called as an incarnation is")
      }
      do throws(Errno) {
        live = LiveMailbox(
          hole, home, try home.makeLive(incarnation), incarnation, mark: "~" + home.escaped)
      } catch {
        throw WormholeError(error, "make a guest in", hole.directory)
      }
      try live.begin()
    }

    deinit { leave() }

    /// As it stands in names of messages; no name of a member has such a form.
    var mark: String { "~" + home.escaped }

    /// A member to look at and to send to; it need never have joined.
    public func peer(_ name: String) -> Peer {
      Peer(hole: hole, member: nil, guest: self, name: name)
    }

    /// Goes; a second time it does nothing.
    public func leave() {
      guard hole.container.isOwned else { return }
      outbox.close()
      live.close()
      _ = live.begun.end(nil)
      hole.container.removeGuest(home, presence)
    }
  }

  /// Becomes a guest: for programs that are over in a moment, and care how it ended.
  public func guest() throws(WormholeError) -> Guest { try Guest(self) }
}
