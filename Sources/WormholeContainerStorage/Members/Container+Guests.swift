package import WormholeSyscalls

/// Guests: processes that send requests to members without having joined.
///
/// A guest has a directory like a member's, `guests/<16 hexadecimal digits>/`, and holds its
/// presence as long as it needs replies. It removes the directory at the end. The directory of a
/// dead guest, whose presence is free, is removed by the next process that opens the container for
/// writing, or that makes a guest. The directory that stands for a guest of another machine stays:
/// only the process that carries outcomes to that machine knows when the guest has ended.
extension Container {
  /// Makes a directory for a new guest, and takes its presence.
  package func makeGuest() throws(WormholeError) -> (home: MemberDirectory, presence: Presence) {
    sweepGuestsIfPossible()
    do throws(Errno) {
      // Before the presence is taken, a sweeper may take the guest for dead and move the directory
      // away.
      for _ in 0..<100 {
        let name = options.environment.randomName()
        do throws(Errno) {
          let home = try makeMember(name, name, .guests)
          if let presence = try home.takePresence(), try home.isNamed { return (home, presence) }
        } catch {
          guard error == .noSuchFile else { throw error }
        }
      }
      throw .busy
    } catch {
      throw WormholeError(error, "create a guest in", path, in: self, Folder.guests.rawValue)
    }
  }

  /// Removes a guest's directory; its presence is held until the removal is complete.
  package func removeGuest(_ home: MemberDirectory, _ presence: Presence) {
    defer { presence.release() }
    guard presence.isHeld else { return }
    if let failure = Errno.of({ () throws(Errno) in try discardGuest(home.escaped) }) {
      log(.notice, "could not remove \(home.path): \(failure)", because: failure)
    }
  }

  /// Optional: failures are only logged.
  func sweepGuestsIfPossible() {
    do throws(Errno) {
      let swept = try sweepGuests()
      guard swept > 0 else { return }
      count { $0.swept += swept }
      log(.info, "swept \(swept) guests whose processes ended without leaving")
    } catch {
      log(.notice, "could not sweep \(path)/guests: \(error)", because: error)
    }
  }

  /// Removes the directories of dead guests; returns their number.
  func sweepGuests() throws(Errno) -> Int {
    var swept = 0
    for name in try guestNames() {
      // It may be removed already, foreign, or owned by another user.
      try ignoring([
        .noSuchFile, .notADirectory, .isADirectory, .tooManyLinks, .noDevice, .accessDenied,
        .notPermitted,
      ]) { () throws(Errno) in
        let home = try openMember(name, name, .guests)
        guard try home.isGuests(), try home.isDiscardable, let presence = try home.takePresence()
        else { return }
        defer { presence.release() }
        // A carrier that holds the presence may have made the directory one of another machine's
        // guest since the first check.
        guard try home.isDiscardable else { return }
        try discardGuest(name)
        swept += 1
      }
    }
    return swept
  }

  /// The names in `guests/` that have the form of a guest's name.
  package func guestNames() throws(Errno) -> [String] {
    let names = try ignoring(
      .noSuchFile, root.descriptor.open(Folder.guests.rawValue, .readOnlyDirectory).names())
    return (names ?? []).filter(Randomness.isName)
  }

  /// Renames the directory into `staging/` before the removal: no process may find half a
  /// directory.
  ///
  /// If the directory cannot be removed at once, for example because a peer adds a last receipt, it
  /// is swept with the rest of `staging/`.
  private func discardGuest(_ name: String) throws(Errno) {
    let hidden = staging.nameForMoved()
    let staging = try staging.directory()
    let guests = try folder(.guests)
    // The lock shows sweepers of `staging/` that a living process uses the directory.
    let doomed = try guests.descriptor.open(name, .readOnlyDirectory)
    _ = try? doomed.tryLock(.exclusive)
    defer { try? doomed.unlock() }
    try guests.descriptor.rename(name, to: staging.descriptor, hidden)
    try? removeTree(hidden, in: staging.descriptor, options.sharing)
  }
}

extension MemberDirectory {
  /// Whether no carrier needs the directory for a guest of another machine.
  fileprivate var isDiscardable: Bool {
    get throws(Errno) { try elsewhere == nil || Mutants.has(.sweepElsewhere) }
  }

  /// Whether the directory looks like a guest's: any member of a group may have given some other
  /// directory the name.
  func isGuests() throws(Errno) -> Bool {
    guard container.options.sharing == .group, !Mutants.has(.removePrivate) else { return true }
    let names = try home.descriptor.names()
    return names.contains(Self.presenceName) && foreignName(among: names) == nil
  }
}
