internal import SharedContainer
internal import Syscalls

/// How much may lie in the folder of one process: whoever is stopped, or slow, is not to fill the
/// disk with what others send it.
///
/// Whoever sends counts what lies there, and then goes by that for a part of the room that was
/// left, a thirty-second of it: so several who do not know of each other stay below the bound
/// nearly always, and one that keeps up with what comes costs a listing of an empty folder now and
/// then. Who counts removes what is past its deadline.
struct LiveRoom: Sendable {
  /// How many files may lie there.
  static let mostFiles = 10_000

  private(set) var files = 0
  private(set) var bytes = 0

  /// Takes room for one more; false if it has to be counted.
  mutating func take(_ size: Int) -> Bool {
    guard files > 0, bytes >= size else { return false }
    files -= 1
    bytes -= size
    return true
  }

  /// Counts, for one more that is about to be put there; nil if there is no room for it.
  ///
  /// - Parameter mostBytes: how much may lie there; what lies there alone may be larger.
  init?(counting folder: OpenDirectory, for size: Int, mostBytes: Int, now: Int64) {
    var found = (files: 0, bytes: 0)
    // By a descriptor of its own: a listing moves what all who use one have in common.
    let names = (try? folder.descriptor.open(".", [.readOnly, .directory]).names()) ?? []
    for name in names.lazy.compactMap({ LiveName($0) }) where !name.letter.isAnswer {
      if let deadline = name.deadline, deadline <= now {
        try? folder.descriptor.unlink(name.text)
      } else if let status = try? folder.descriptor.status(of: name.text) {
        found.files += 1
        // A file may say that it is larger than any disk.
        found.bytes += min(status.size, mostBytes - found.bytes)
      }
    }
    let fits = found.files == 0 || found.bytes + size <= mostBytes
    guard found.files < Self.mostFiles, fits else { return nil }
    files = (Self.mostFiles - found.files) / 32
    bytes = max(0, mostBytes - found.bytes - size) / 32
  }
}
