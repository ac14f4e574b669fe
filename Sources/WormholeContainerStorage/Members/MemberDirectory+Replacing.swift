internal import WormholeSyscalls

/// Replacing a presence file that no process holds, and that cannot be locked because of a shared
/// lock.
///
/// Every process that may read the file can hold a shared lock on it, and then no process gets the
/// exclusive lock. The next holder therefore puts a new file in its place:
///
///     share      take a shared lock on the old file: now no process gets the exclusive one
///     check      the name still leads to the old file
///     make       a new file in the slot's `lock/<g>.d`, with its mode, locked exclusively
///     rename     over `presence`, out of that directory
///
/// All steps happen under the lock of the slot `presence` in `system/`, so no two processes replace
/// the file at once. A process that joins in the usual way cannot lock the old file during these
/// steps; after a late lock on the old file, the process finds a new file under the name, and
/// starts again. If this process is suspended before the rename, and another process takes over the
/// slot's lock, the new holder removes `lock/<g>.d` first, and the rename fails. If this process is
/// killed, the next holder of the slot's lock removes the new file, and the old file stays.
extension MemberDirectory {
  private static let nextName = "next"

  /// The timeout for the lock of the slot.
  private static var patience: Duration { .seconds(10) }

  /// - Parameter old: the open file, which could not be locked.
  /// - Returns: nil if another process has taken the name by now, or has replaced the file.
  func replacePresence(_ old: GuardedFile) throws(Errno) -> Presence? {
    defer { old.close() }
    do {
      let slot = Slot(
        container: container, folder: .system, name: Self.presenceName,
        try Container.escape(Self.presenceName), isInnermost: true)
      let patience = Patience(within: Self.patience)
      return try slot.fenced("replace the presence of '\(name)' under", patience) {
        staging throws(Errno) in
        try replacePresence(old, by: staging.descriptor)
      }
    } catch let error as Errno {
      throw error
    } catch {
      throw (error as? WormholeError)?.errno.map(Errno.init(rawValue:)) ?? .busy
    }
  }

  private func replacePresence(
    _ old: GuardedFile, by staging: borrowing Descriptor
  ) throws(Errno) -> Presence? {
    let isShared = try old.with { old throws(Errno) in try old.trySharedPresenceLock() }
    guard isShared == true, try old.isNamed(Self.presenceName, in: home.descriptor) else {
      return nil
    }
    let fresh = try makeNext(in: staging)
    let isLocked = try fresh.with { fresh throws(Errno) in
      // Locked before other processes may read and lock the file.
      let isLocked = try fresh.tryPresenceLock()
      let sharing = container.options.sharing
      if sharing == .group { try fresh.setMode(sharing.fileMode) }
      return isLocked
    }
    guard isLocked == true else { throw .busy }
    try staging.rename(Self.nextName, to: home.descriptor, Self.presenceName)
    return try fresh.isNamed(Self.presenceName, in: home.descriptor) ? Presence(fresh) : nil
  }

  private func makeNext(in staging: borrowing Descriptor) throws(Errno) -> GuardedFile {
    func open() throws(Errno) -> GuardedFile {
      try GuardedFile(
        opening: Self.nextName, in: staging, .readWriteNew, mode: 0o600,
        isGuarded: !Mutants.has(.noForkGuard))
    }
    do throws(Errno) {
      return try open()
    } catch {
      guard error == .fileExists else { throw error }
      // A holder of this generation died and left the file.
      try empty(staging, container.options.sharing)
      return try open()
    }
  }
}
