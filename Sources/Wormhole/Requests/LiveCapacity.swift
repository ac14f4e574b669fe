internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The free capacity in the folder of one process.
///
/// A limit keeps the messages to a suspended or slow process from filling the disk.
///
/// A sender counts the files in the folder. The sender then relies on the count for a thirty-second
/// of the remaining capacity. So several independent senders nearly always stay below the limit. A
/// receiver without a backlog costs a listing of an empty folder now and then. Each count also
/// removes files whose deadline has passed.
struct LiveCapacity: Sendable {
  /// The number of files that a folder may contain.
  static let mostFiles = 10_000

  private(set) var files = 0
  private(set) var bytes = 0

  /// Reserves capacity for one more file; false if the folder has to be counted.
  mutating func take(_ size: Int) -> Bool {
    guard files > 0, bytes >= size else { return false }
    files -= 1
    bytes -= size
    return true
  }

  /// Counts the files before another file is placed; nil if the folder is full.
  ///
  /// Throws if the files cannot be counted: then the limit would not hold.
  ///
  /// - Parameter mostBytes: the limit for all files together; a single file may be larger.
  init?(
    counting folder: OpenDirectory, for size: Int, mostBytes: Int, now: Int64
  ) throws(Errno) {
    var found = (files: 0, bytes: 0)
    // A descriptor of its own: a listing moves the read offset, which all users of a descriptor
    // share. A process that has ended has removed its folder.
    let listed = try ignoring(
      .noSuchFile, folder.descriptor.open(".", .readOnlyDirectory).names())
    let names = listed ?? []
    for name in names.lazy.compactMap({ LiveName($0) }) where !name.letter.isAnswer {
      if let deadline = name.deadline, deadline <= now {
        try? folder.descriptor.unlink(name.text)
      } else if let status = try? folder.descriptor.status(of: name.text) {
        found.files += 1
        // A file may claim to be larger than any disk.
        found.bytes += min(status.size, mostBytes - found.bytes)
      }
    }
    let fits = found.files == 0 || found.bytes + size <= mostBytes
    guard found.files < Self.mostFiles, fits else { return nil }
    files = (Self.mostFiles - found.files) / 32
    bytes = max(0, mostBytes - found.bytes - size) / 32
  }
}
