internal import Syscalls

/// Guests: those who ask something of members without having joined.
///
/// A guest has a directory like a member's, `guests/<16 hexadecimal digits>/`, and holds its
/// presence as long as it needs answers. It removes the directory when it goes. What a guest that
/// died has left is removed by whoever opens the container for writing next, or makes the next
/// guest: its presence is free.
extension Container {
  /// Makes a directory of its own for a guest, and takes its presence.
  package func makeGuest() throws(WormholeError) -> (home: MemberDirectory, presence: Presence) {
    sweepGuestsIfPossible()
    do throws(Errno) {
      // Before its presence is taken, a sweeper may think it a dead one's, and move it away.
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
      throw WormholeError(error, "make a guest in", path)
    }
  }

  /// Removes a guest's directory; its presence is held until that is done.
  package func removeGuest(_ home: MemberDirectory, _ presence: Presence) {
    defer { presence.release() }
    guard presence.isHeld else { return }
    if let failure = Errno.of({ () throws(Errno) in try discardGuest(home.escaped) }) {
      log(.notice, "could not remove \(home.path): \(failure)", because: failure)
    }
  }

  /// Nothing depends on it.
  func sweepGuestsIfPossible() {
    do throws(Errno) {
      let swept = try sweepGuests()
      guard swept > 0 else { return }
      count { $0.swept += swept }
      log(.info, "swept \(swept) guests that had not gone in order")
    } catch {
      log(.notice, "could not sweep \(path)/guests: \(error)", because: error)
    }
  }

  /// Removes what dead guests have left; answers how many.
  func sweepGuests() throws(Errno) -> Int {
    var swept = 0
    for name in try guestNames() {
      do throws(Errno) {
        let home = try openMember(name, name, .guests)
        guard let presence = try home.takePresence() else { continue }
        defer { presence.release() }
        try discardGuest(name)
        swept += 1
      } catch {
        // Gone already, something foreign, or another user's.
        let harmless: Set<Errno> = [
          .noSuchFile, .notADirectory, .isADirectory, .tooManyLinks, .noDevice, .accessDenied,
        ]
        guard harmless.contains(error) else { throw error }
      }
    }
    return swept
  }

  /// The names in `guests/` that are in the form of ours.
  func guestNames() throws(Errno) -> [String] {
    do throws(Errno) {
      return try root.open(Folder.guests.rawValue, [.readOnly, .directory]).names()
        .filter(Staging.isOurs)
    } catch {
      guard error == .noSuchFile else { throw error }
      return []
    }
  }

  /// Moves it out of sight in one step, so that nobody finds half of it, and then removes it.
  ///
  /// What cannot be removed at once, as when somebody puts a last receipt into it, is swept with
  /// the rest of `staging/`.
  private func discardGuest(_ name: String) throws(Errno) {
    let hidden = options.environment.randomName()
    let staging = try staging.directory()
    let guests = try folder(.guests)
    // There it is in somebody's hands, and not what a dead process has left.
    let doomed = try guests.descriptor.open(name, [.readOnly, .directory])
    _ = try? doomed.tryLock(.exclusive)
    defer { try? doomed.unlock() }
    try guests.descriptor.rename(name, to: staging.descriptor, hidden)
    try? removeTree(hidden, in: staging.descriptor)
  }
}
