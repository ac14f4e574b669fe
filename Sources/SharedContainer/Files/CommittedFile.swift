internal import Syscalls

/// The file that this process has committed last to a slot, kept open: as long as the slot's name
/// leads to it, what it holds is known, and need not be read again.
///
/// An inode that is open cannot be given to another file, and what is in a visible file never
/// changes (P1), so the same inode is the same value, whoever has committed meanwhile. One status
/// of the name takes the place of opening, asking, reading and closing the file. Size and time are
/// compared too, for those who write into files that they should replace.
final class CommittedFile: Sendable {
  private let file: Descriptor
  private let status: FileStatus
  private let bytes: [UInt8]
  /// What was noted of it: see ``Slot/note``.
  let note: Int?

  /// Larger ones are not kept: their space would stay taken after others have replaced them.
  static let limit = 16 * 1024

  init(_ file: consuming Descriptor, _ bytes: [UInt8], _ note: Int?) throws(Errno) {
    status = try file.status()
    self.file = file
    self.bytes = bytes
    self.note = note
  }

  var content: FoundFile { .sound(bytes, status) }

  /// What stands under a name, if it is this file.
  func found(as name: UnsafePointer<CChar>, in directory: borrowing Descriptor) -> FoundFile? {
    guard let now = try? directory.status(of: name), now.isSameFile(as: status),
      now.size == status.size, now.modified == status.modified
    else { return nil }
    return content
  }
}
