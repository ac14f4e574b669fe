internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A sender that has not joined and is notified of the outcomes of its messages.
///
/// A guest has no name: its receivers see no sender, and no process can send to it. A guest ends
/// with `leave()`, when the program retains it no longer, and with the end of the process.
/// Messages that it has sent are delivered nevertheless, and no process is notified of their
/// outcomes.
public final class Guest: Sendable, Participant {
  let container: SharedContainer
  let home: MemberDirectory
  let incarnation: Incarnation
  let joined: MessageStamp
  let liveFolder: OpenDirectory
  let services = Services()
  private let presence: Presence

  /// - Parameter needsQueues: whether the guest's closures may need queues of the program or tasks,
  ///   which do not run in a forked child.
  init(_ container: SharedContainer, needsQueues: Bool = true) throws(WormholeError) {
    try container.storage.checkOwner("become a guest of", container.directory)
    if needsQueues { try WormholeError.checkNoCopy("become a guest of", container.directory) }
    self.container = container
    joined = try MessageStamp(container.storage)
    (home, presence) = try container.storage.makeGuest()
    guard let incarnation = Incarnation(rawValue: home.escaped) else {
      preconditionFailure("a guest is called as an incarnation is")
    }
    self.incarnation = incarnation
    do throws(Errno) {
      liveFolder = try home.makeLive(incarnation)
    } catch {
      throw WormholeError(error, "create a guest in", container.directory, at: home)
    }
    try live.begin()
  }

  deinit { leave() }

  /// The guest as it appears in the names of messages; no member's name has such a form.
  var mark: String { "~" + home.escaped }

  /// Returns a member to inspect and to send to; the member need never have joined.
  public func peer(_ name: String) -> Peer {
    Peer(container: container, member: nil, guest: self, name: name)
  }

  /// Ends the guest; a second call does nothing.
  public func leave() {
    guard container.storage.isOwned else { return }
    services.close()
    _ = live.begun.end(nil)
    container.storage.removeGuest(home, presence)
  }
}

extension SharedContainer {
  /// Makes a guest: for programs that run for a moment and need the outcomes of their messages.
  public func guest() throws(WormholeError) -> Guest { try Guest(self) }
}
