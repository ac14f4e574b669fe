internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A cache of open member directories to which files were moved.
final class MemberDirectoryCache<Name: Hashable & Sendable>: Sendable {
  private struct CachedDirectory {
    let home: MemberDirectory
    /// When the directory's name was last checked.
    var seen: Instant
  }

  /// How long a directory's name is trusted.
  ///
  /// A check costs more than reading the clock, and a directory moved away takes messages as
  /// before.
  private let trust = Duration.milliseconds(100)

  private let known = Monitor<[Name: CachedDirectory]>([:])

  /// Returns nil if the directory is unknown, or has lost its name.
  func home(of name: Name) -> MemberDirectory? {
    let now = Instant.now
    let (found, isDue) = known.withLock { known -> (MemberDirectory?, Bool) in
      guard let one = known[name] else { return (nil, false) }
      let isDue = now - one.seen >= trust
      if isDue { known[name]?.seen = now }
      return (one.home, isDue)
    }
    guard let found, isDue, !found.lookAgain() else { return found }
    forget(name)
    return nil
  }

  func keep(_ home: MemberDirectory, of name: Name) {
    known.withLock { known in
      // Each entry keeps descriptors open, and directories come and go; used ones are opened again.
      if known.count >= 64 { known = [:] }
      known[name] = CachedDirectory(home: home, seen: .now)
    }
  }

  func forget(_ name: Name) { known.withLock { $0[name] = nil } }
}
