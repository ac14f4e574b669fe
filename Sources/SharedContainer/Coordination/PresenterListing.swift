internal import Syscalls

/// What the presenters' files say that were there at the last look.
struct PresenterListing: Sendable {
  /// Nil: it cannot be read.
  var entries: [PresenterName: PresenterEntry?] = [:]
  /// As long as the directory is this one they are all that there are.
  var directory: SettledDirectory?

  init(directory: SettledDirectory? = nil) { self.directory = directory }
}

/// A directory as it is from one change of its names to the next.
///
/// The kernel notes when that was, by a clock that goes in steps of up to ten milliseconds, and
/// there are file systems that keep whole seconds: two changes in one step look like one. So what
/// has changed within the last second tells nothing, nor does what has changed at a whole one.
struct SettledDirectory: Hashable, Sendable {
  private let identity: FileIdentity
  private let changed: Int64

  /// - Parameter now: nanoseconds since 1970, from before its names are read.
  /// - Returns: nil if a change might not show.
  init?(_ status: FileStatus, now: Int64) {
    let second: Int64 = 1_000_000_000
    let isSettled = status.changed % second != 0 && now - status.changed >= second
    guard isSettled || Mutants.has(.trustYoungListing) else { return nil }
    identity = FileIdentity(status)
    changed = status.changed
  }
}
