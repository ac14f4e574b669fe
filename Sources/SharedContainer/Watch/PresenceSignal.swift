internal import Syscalls

/// What whoever watches a member is told.
package enum PresenceSignal: Sendable, Equatable {
  /// A file that presence is held by was closed.
  case released
  /// Something may have happened to the member.
  case changed

  fileprivate init?(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(MemberDirectory.presenceName) {
        self = .released
      } else if names.contains(MemberDirectory.profileName) {
        self = .changed
      } else {
        return nil
      }
    case .lookAgain, .replaced, .gone:
      self = .changed
    }
  }
}

extension Container {
  /// Calls the handler whenever a member may have joined, left, died, or changed what it tells of
  /// itself; also one that has never joined, for which watching makes no directory.
  ///
  /// The handler looks for itself. It runs on the watcher's thread and must not wait.
  ///
  /// The kernel tells of a closed file shortly *before* it takes back the locks on it. So whoever
  /// is told that a presence was let go, and finds it locked, looks again a little later.
  ///
  /// - Parameter ended: is called if the container is no longer the one at its path.
  package func watchPresence(
    of name: String, in folder: Folder = .members,
    _ handler: @escaping @Sendable (PresenceSignal) -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    let escaped = try escape(name)
    do throws(Errno) {
      let mask: InotifyMask = [.closedAfterWriting, .movedTo]
      return try NamedWatch(self, [folder.rawValue, escaped], mask, ended: ended) { signal in
        if let signal = PresenceSignal(signal) { handler(signal) }
      }
    } catch {
      throw watchError(error, "watch member", name)
    }
  }
}
