package import Syscalls

/// A name that a process has for itself as long as it lives: the lock on `presence`.
///
/// It is a lock of the open file's description (F_OFD_SETLK). The kernel takes it back when the
/// process ends, however it ends, and tells watchers: the file was open for writing, and is closed.
/// Who only asks opens the file for reading, which tells nobody anything, and takes no lock, so
/// that it cannot be mistaken for a holder, wherever it is stopped. The file is made with the
/// member's directory and never replaced.
///
/// The holder leaves its mark in the file, as in lock files, so that errors can say who it is; for
/// nothing else is it read.
package final class Presence: Sendable {
  private let file: GuardedFile
  private let owner = ProcessCopy.current
  private let isReleased = Monitor(false)

  /// - Parameter file: open, and locked.
  fileprivate init(_ file: GuardedFile) {
    self.file = file
    sign(HolderMark(of: .current))
  }

  /// Whether this process took it and has not given it back; false in a forked copy.
  package var isHeld: Bool {
    owner.isCurrent && !isReleased.withLock { $0 }
  }

  /// Gives it back; a second time it does nothing.
  package func release() {
    // A copy has nothing to give back.
    guard owner.isCurrent else { return }
    let isFirst = isReleased.withLock { isReleased in
      defer { isReleased = true }
      return !isReleased
    }
    guard isFirst else { return }
    sign(.unheld)
    // Before closing, which a program that is just being started may put off. A lock that could not
    // be given back ends with the file.
    _ = try? file.with { file throws(Errno) in try file.releasePresenceLock() }
    file.close()
  }

  /// Says whose it is; where that cannot be written, nobody is named.
  private func sign(_ mark: HolderMark) {
    _ = try? file.with { file throws(Errno) in try mark.write(to: file) }
  }

  deinit { release() }

  fileprivate func isNamed(in home: borrowing Descriptor) throws(Errno) -> Bool {
    try file.isNamed(MemberDirectory.presenceName, in: home)
  }
}

extension GuardedFile {
  /// Whether the open file is still the one of that name.
  fileprivate func isNamed(
    _ name: String, in directory: borrowing Descriptor
  ) throws(Errno) -> Bool {
    let status = try with { file throws(Errno) in try file.status() }
    guard let status else { return false }
    do throws(Errno) {
      return try directory.status(of: name).isSameFile(as: status)
    } catch {
      if error == .noSuchFile { return false }
      throw error
    }
  }
}

extension MemberDirectory {
  /// Whether a living process has the name.
  ///
  /// Nobody hears of the question. A file of another kind is nobody's presence.
  package func isPresent() throws(Errno) -> Bool {
    do throws(Errno) {
      let file = try home.descriptor.open(Self.presenceName, [.readOnly, .nonBlocking])
      guard try file.status().kind == .regular else { return false }
      return try file.isPresenceLocked()
    } catch {
      guard [.noSuchFile, .tooManyLinks, .noDevice].contains(error) else { throw error }
      return false
    }
  }

  /// The same, of one that may be about to end.
  ///
  /// A killed process has its locks until it has taken itself down, which takes milliseconds, and
  /// more on a busy machine. What its number tells is only a reason to wait for the kernel's word.
  package func isPresentStill() throws(Errno) -> Bool {
    guard try isPresent() else { return false }
    let isEnding = presenceHolder()?.isEnding
    if isEnding == false { return true }
    // One that has not said who it is may just be joining.
    let deadline = Instant.now + .milliseconds(isEnding == true ? 1000 : 100)
    while Instant.now < deadline {
      let _: Void? = Monitor(()).wait(until: .now + .milliseconds(2)) { _ in nil }
      if try !isPresent() { return false }
    }
    return true
  }

  /// Who has left a mark in the presence file and has not ended; for whom the lock may be held.
  package func presenceHolder() -> LockHolder? {
    guard
      let file = try? home.descriptor.open(Self.presenceName, [.readOnly, .nonBlocking]),
      (try? file.status().kind) == .regular,
      let holder = (try? HolderMark(in: file)).flatMap(LockHolder.init)
    else { return nil }
    return holder.state == .gone ? nil : holder
  }

  /// Takes the name, unless somebody has it: nil then.
  ///
  /// A presence file that was removed by hand is made again. One that was replaced between being
  /// opened and being locked is let go, or two processes might hold two files of one name.
  package func takePresence() throws(Errno) -> Presence? {
    var tries = 0
    while true {
      // Asked first, since opening for writing is heard by all who watch.
      if try isPresent() { return nil }
      let file = try openPresence()
      let isLocked = try file.with { file throws(Errno) in
        guard try file.status().kind == .regular else { throw .noDevice }
        return try file.tryPresenceLock()
      }
      guard isLocked == true else { return nil }
      if try file.isNamed(Self.presenceName, in: home.descriptor) { return Presence(file) }
      tries += 1
      // Only a hand that replaces it at every try could go on like this.
      guard tries < 100 else { throw .busy }
    }
  }

  /// Whether the presence that was taken is still that of this name: the directory or the file in
  /// it may have been removed by hand.
  package func keeps(_ presence: Presence) throws(Errno) -> Bool {
    guard presence.isHeld, !isStale else { return false }
    return try presence.isNamed(in: home.descriptor)
  }

  private func openPresence() throws(Errno) -> GuardedFile {
    let isGuarded = !Mutants.has(.noForkGuard)
    func open(_ flags: OpenFlags) throws(Errno) -> GuardedFile {
      try GuardedFile(
        opening: Self.presenceName, in: home.descriptor, [.readWrite, .nonBlocking, flags],
        mode: 0o600, isGuarded: isGuarded)
    }
    do throws(Errno) {
      return try open([])
    } catch {
      guard error == .noSuchFile else { throw error }
    }
    do throws(Errno) {
      guard container.options.sharing == .group else { return try open([.create, .exclusive]) }
      // Under its name it has its mode, or others could not ask whether it is held.
      try container.staging.place(
        UnsafeRawBufferPointer(start: nil, count: 0), sync: false, in: home.descriptor,
        as: Self.presenceName)
      return try open([])
    } catch {
      guard error == .fileExists else { throw error }
      return try open([])
    }
  }
}
