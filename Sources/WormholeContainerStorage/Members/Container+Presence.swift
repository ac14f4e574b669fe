internal import WormholeSyscalls

extension Container {
  /// Calls the handler whenever a member may have joined, left, died, or changed its published
  /// information.
  ///
  /// A member that has never joined can be watched too; watching makes no directory. The handler
  /// reads the state itself. It runs on the watcher's thread and must not wait.
  ///
  /// Its argument states whether a presence file was closed. The kernel reports the close shortly
  /// *before* it releases the locks on the file: a handler that still finds the file locked checks
  /// again a little later.
  ///
  /// - Parameter ended: called when the container is no longer the one at its path.
  package func watchPresence(
    of name: String, in folder: Folder = .members,
    _ handler: @escaping @Sendable (_ wasReleased: Bool) -> Void,
    ended: @escaping @Sendable (ContainerEnd) -> Void = { _ in }
  ) throws(WormholeError) -> NamedWatch {
    let escaped = try escape(name)
    let mask: InotifyMask = [.closedAfterWriting, .movedTo]
    return try watching("watch member", name, "\(folder.rawValue)/\(escaped)") {
      () throws(Errno) in
      try NamedWatch(self, [folder.rawValue, escaped], mask, ended: ended) { signal in
        guard case .changed(let names) = signal else { return handler(false) }
        let wasReleased = names.contains(MemberDirectory.presenceName)
        if wasReleased || names.contains(MemberDirectory.profileName) { handler(wasReleased) }
      }
    }
  }
}
