internal import Synchronization
internal import WormholeSyscalls

/// The process's last committed file of a slot, kept open: as long as the slot's name leads to this
/// file, its content is known, and need not be read again.
///
/// The inode of an open file cannot be reused for another file, and the content of a visible file
/// never changes (P1). The same inode is therefore the same value, whatever other processes have
/// committed since. One status call replaces opening, checking, reading and closing the file. Size
/// and time are compared too, in case a tool writes into a file that it should replace.
package final class CommittedFile: Sendable {
  private let file: Descriptor
  private let status: FileStatus
  private let bytes: [UInt8]
  /// The caller's note about the file: see ``Slot/note``.
  let note: Int?
  /// Whether the name that the file got is known to be on disk.
  let isNameDurable = Atomic<Bool>(false)

  /// Larger files do not stay open: their disk space would stay occupied after a replacement.
  static let limit = 16 * 1024

  init(_ file: consuming Descriptor, _ bytes: [UInt8], _ note: Int?) throws(Errno) {
    status = try file.status()
    self.file = file
    self.bytes = bytes
    self.note = note
  }

  /// Whether the file may stay open for longer.
  var staysOpen: Bool { status.kind == .regular && status.size <= Self.limit }

  /// Forces the content to disk; fails if any write of the content to the disk has failed since the
  /// file was made.
  ///
  /// The kernel reports a failed write once to each descriptor that was open at the time. A
  /// descriptor that was opened later may be told of success.
  func sync() throws(Errno) { try file.sync() }

  /// Lets the kernel begin to write the content.
  func startWriting() { try? file.startWriting() }

  /// Sets the time of the last change, in nanoseconds since 1970, whatever name the file has.
  func setModified(to time: Int64) throws(Errno) { try file.setModified(to: time) }

  /// Whether a name with this status leads to the file.
  func isFile(of other: FileStatus?) -> Bool {
    guard let other else { return false }
    return other.isSameFile(as: status) && other.size == status.size
  }

  var content: FoundFile { .sound(bytes, status) }

  /// Returns the content under a name, if the name leads to this file.
  func found(as name: UnsafePointer<CChar>, in directory: borrowing Descriptor) -> FoundFile? {
    guard let now = try? directory.status(of: name), now.isSameFile(as: status),
      now.size == status.size, now.modified == status.modified
    else { return nil }
    return content
  }
}
