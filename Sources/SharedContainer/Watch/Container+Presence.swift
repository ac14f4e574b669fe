internal import Syscalls

extension Container {
  /// Calls the handler whenever a member may have joined, left, died, or changed what it tells of
  /// itself; also one that has never joined, for which watching makes no directory.
  ///
  /// The handler looks for itself. It runs on the watcher's thread and must not wait.
  ///
  /// It is told whether a file that presence is held by was closed. The kernel tells of that
  /// shortly *before* it takes back the locks on the file: whoever finds it locked still, looks
  /// again a little later.
  ///
  /// - Parameter ended: is called if the container is no longer the one at its path.
  package func watchPresence(
    of name: String, in folder: Folder = .members,
    _ handler: @escaping @Sendable (_ wasReleased: Bool) -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    let escaped = try escape(name)
    do throws(Errno) {
      let mask: InotifyMask = [.closedAfterWriting, .movedTo]
      return try NamedWatch(self, [folder.rawValue, escaped], mask, ended: ended) { signal in
        guard case .changed(let names) = signal else { return handler(false) }
        let wasReleased = names.contains(MemberDirectory.presenceName)
        if wasReleased || names.contains(MemberDirectory.profileName) { handler(wasReleased) }
      }
    } catch {
      throw watchError(error, "watch member", name)
    }
  }
}
