internal import SharedContainer
internal import Syscalls

extension Wormhole {
  /// Somebody who sends and wants to be told how it ended, without having joined.
  ///
  /// It has no name: those who receive what it sends are told nobody's, and nobody can send to it.
  /// It goes with ``leave()``, when nobody keeps it any more, and with the end of the process; what
  /// it has sent arrives all the same, and nobody is told of the end.
  public final class Guest: Sendable {
    let outbox: Outbox
    let live: Live
    private let hole: Wormhole
    private let home: MemberDirectory
    private let presence: Presence

    init(_ hole: Wormhole) throws(WormholeError) {
      self.hole = hole
      (home, presence) = try hole.container.makeGuest()
      outbox = Outbox(hole, home, joinedAt: hole.options.environment.sinceBoot())
      do throws(Errno) {
        live = Live(
          hole, home, try home.makeLive(home.escaped), home.escaped, mark: "~" + home.escaped)
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
      outbox.close()
      live.close()
      hole.container.removeGuest(home, presence)
    }
  }

  /// Becomes a guest: for programs that are over in a moment, and care how it ended.
  public func guest() throws(WormholeError) -> Guest { try Guest(self) }
}
