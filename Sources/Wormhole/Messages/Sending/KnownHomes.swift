internal import SharedContainer
internal import Syscalls

/// The directories of those to whom something was moved, kept open.
final class KnownHomes<Name: Hashable & Sendable>: Sendable {
  private struct Known {
    let home: MemberDirectory
    /// When it was looked at last whether it has its name still.
    var seen: Instant
  }

  /// For how long a directory is taken to have its name still: to look costs more than to ask the
  /// clock, and what was moved away takes messages as it did before.
  private let trust = Duration.milliseconds(100)

  private let known = Monitor<[Name: Known]>([:])

  /// Nil if it is not known, or has its name no more.
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
      // Each keeps descriptors open, and some come and go; those still used are looked up again.
      if known.count >= 64 { known = [:] }
      known[name] = Known(home: home, seen: .now)
    }
  }

  func forget(_ name: Name) { known.withLock { $0[name] = nil } }
}
