internal import WormholeSyscalls

/// The content of all presenters' files at the last listing.
struct PresenterListing: Sendable {
  /// Nil: the file cannot be read.
  var entries: [PresenterName: PresenterEntry?] = [:]
  /// As long as the directory's status equals this value, the entries are complete.
  var directory: SettledDirectory?

  init(directory: SettledDirectory? = nil) { self.directory = directory }
}

/// The state of a directory between two changes of its names.
///
/// The kernel records the time of the last change, with a clock that advances in steps of up to ten
/// milliseconds, and some file systems store whole seconds: two changes within a step look like a
/// single change. A change within the last second therefore proves nothing, and neither does a
/// change at a whole second.
struct SettledDirectory: Hashable, Sendable {
  private let identity: FileIdentity
  private let changed: Int64

  /// - Parameter now: nanoseconds since 1970, read before the names are read.
  /// - Returns: nil if a later change might not be visible.
  init?(_ status: FileStatus, now: Int64) {
    let second: Int64 = 1_000_000_000
    let isSettled = status.changed % second != 0 && now - status.changed >= second
    guard isSettled || Mutants.has(.trustYoungListing) else { return nil }
    identity = FileIdentity(status)
    changed = status.changed
  }
}
