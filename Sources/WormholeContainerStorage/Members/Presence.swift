package import WormholeSyscalls

/// A name, held exclusively by a living process: the lock on `presence`.
///
/// The lock belongs to the open file description (F_OFD_SETLK). When the process ends, for whatever
/// reason, the kernel releases the lock and notifies watchers: the file was open for writing, and
/// is closed. A process that only checks opens the file for reading. This notifies no watcher and
/// takes no lock, so the checking process cannot be mistaken for a holder, wherever it is
/// suspended. The holder's lock is exclusive, and the check asks whether a shared lock would be
/// refused: a process that may only read the file can have a shared lock, but cannot pass for the
/// holder. The file is made with the member's directory. It is replaced only if a shared lock keeps
/// the next holder out, see ``MemberDirectory/replacePresence(_:)``.
///
/// The holder writes its process identity into the file, as in lock files, so that errors can name
/// the holder. The identity never decides who holds the name.
package final class Presence: Sendable {
  private let file: GuardedFile
  private let owner = ProcessCopy.current
  private let isReleased = Monitor(false)

  /// - Parameter file: open, and locked.
  init(_ file: GuardedFile) {
    self.file = file
    sign(HolderMark(of: .current))
  }

  /// Whether this process holds the name; false in a forked child.
  package var isHeld: Bool {
    owner.isCurrent && !isReleased.withLock { $0 }
  }

  /// Releases the name; a second call does nothing.
  package func release() {
    // A forked child does not hold the lock.
    guard owner.isCurrent else { return }
    let isFirst = isReleased.withLock { !exchange(&$0, with: true) }
    guard isFirst else { return }
    sign(.unheld)
    // Unlock before closing, because a child that is being spawned may still have the file open. If
    // unlocking fails, the lock ends with the file.
    _ = try? file.with { file throws(Errno) in try file.releasePresenceLock() }
    file.close()
  }

  /// Writes the holder's identity; if writing fails, errors name no holder.
  private func sign(_ mark: HolderMark) {
    _ = try? file.with { file throws(Errno) in try mark.write(to: file) }
  }

  deinit { release() }

  fileprivate func isNamed(in home: borrowing Descriptor) throws(Errno) -> Bool {
    try file.isNamed(MemberDirectory.presenceName, in: home)
  }
}

extension Descriptor {
  /// Whether a process has the exclusive lock that proves its life.
  func isPresenceHeld() throws(Errno) -> Bool {
    if Mutants.has(.trustReadLocks) { return try isPresenceLockedOrShared() }
    return try isPresenceLocked()
  }
}

extension GuardedFile {
  /// Whether the open file still has the name.
  func isNamed(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> Bool {
    let status = try with { file throws(Errno) in try file.status() }
    guard let status else { return false }
    return try ignoring(.noSuchFile, directory.status(of: name).isSameFile(as: status)) ?? false
  }
}

extension MemberDirectory {
  /// Whether a living process has the name.
  ///
  /// The check notifies no watcher. A file of another kind is no presence. A worker whose file may
  /// not be opened counts as present: its claims are returned at their deadline alone.
  package func isPresent() throws(Errno) -> Bool {
    do throws(Errno) {
      let file = try home.descriptor.open(Self.presenceName, .readOnlyNonBlocking)
      guard try file.status().kind == .regular else { return false }
      return try file.isPresenceHeld()
    } catch {
      if [.noSuchFile, .tooManyLinks, .noDevice].contains(error) { return false }
      guard error == .accessDenied, isWorker else { throw error }
      return true
    }
  }

  /// Whether a living process has the name, and is not about to end.
  ///
  /// A killed process holds its locks until the kernel has torn it down, which takes milliseconds,
  /// and more on a busy machine. The state of the process ID is only a reason to wait for the
  /// kernel's decision.
  package func isPresentStill() throws(Errno) -> Bool {
    guard try isPresent() else { return false }
    let isEnding = presenceHolder()?.isEnding
    if isEnding == false { return true }
    // A holder without an identity in the file may just be joining.
    let deadline = Instant.now + .milliseconds(isEnding == true ? 1000 : 100)
    while Instant.now < deadline {
      Thread.pause(.milliseconds(2))
      if try !isPresent() { return false }
    }
    return true
  }

  /// Returns the process named in the presence file, unless the process has ended; the lock may be
  /// free all the same.
  package func presenceHolder() -> LockHolder? {
    guard
      let file = try? home.descriptor.open(Self.presenceName, .readOnlyNonBlocking),
      (try? file.status().kind) == .regular,
      let holder = (try? HolderMark(in: file)).flatMap(LockHolder.init)
    else { return nil }
    return holder.state == .gone ? nil : holder
  }

  /// Takes the name; nil if another process holds the name.
  ///
  /// A presence file that another tool has removed is made again. If the file was replaced between
  /// opening and locking, this process closes it, or two processes might hold two files of one
  /// name. If the file cannot be locked although no process has the name, it is replaced.
  package func takePresence() throws(Errno) -> Presence? {
    var tries = 0
    while true {
      // Check first, since opening for writing notifies all watchers.
      if try isPresent() { return nil }
      let file = try openPresence()
      let isLocked = try file.with { file throws(Errno) in
        guard try file.status().kind == .regular else { throw .noDevice }
        return try file.tryPresenceLock()
      }
      if isLocked == true {
        if try file.isNamed(Self.presenceName, in: home.descriptor) { return Presence(file) }
      } else {
        if try isPresent() { return nil }
        // At the first attempt, a holder may just have unlocked.
        if tries > 0, let presence = try replacePresence(file) { return presence }
      }
      tries += 1
      // Only a tool that replaces the file at every attempt could make this loop run on.
      guard tries < 100 else { throw .busy }
    }
  }

  /// Whether the held presence still belongs to this name: another tool may have removed the
  /// directory or the file.
  package func keeps(_ presence: Presence) throws(Errno) -> Bool {
    guard presence.isHeld, !isStale else { return false }
    return try presence.isNamed(in: home.descriptor)
  }

  private func openPresence() throws(Errno) -> GuardedFile {
    func open(_ flags: OpenFlags) throws(Errno) -> GuardedFile {
      try Self.openPresence(flags, in: home.descriptor)
    }
    if let file = try ignoring(.noSuchFile, open([])) { return file }
    do throws(Errno) {
      guard container.options.sharing == .group else { return try open([.create, .exclusive]) }
      // The file gets its mode before its name, or other users could not check whether it is
      // locked.
      try container.staging.publish([], sync: false, as: Self.presenceName) { home }
      return try open([])
    } catch {
      guard error == .fileExists else { throw error }
      return try open([])
    }
  }

  private static func openPresence(
    _ flags: OpenFlags, in directory: borrowing Descriptor
  ) throws(Errno) -> GuardedFile {
    try GuardedFile(
      opening: presenceName, in: directory, [.readWrite, .nonBlocking, flags], mode: 0o600,
      isGuarded: !Mutants.has(.noForkGuard))
  }

  /// Takes the presence in a directory that no other process sees yet.
  static func takeHiddenPresence(in directory: borrowing Descriptor) throws(Errno) -> Presence {
    let file = try openPresence([], in: directory)
    let isLocked = try file.with { file throws(Errno) in try file.tryPresenceLock() }
    guard isLocked == true else { throw .busy }
    return Presence(file)
  }
}
