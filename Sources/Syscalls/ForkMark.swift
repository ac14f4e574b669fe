internal import CLinux

/// A mark that a process makes, and that no copy of the process has, however it was made.
///
/// It is in memory that the kernel wipes in a copy, so to look costs no system call. Nothing needs
/// to be told of the copying, and so none escapes: a bare clone(2) that copies memory is one like
/// `fork`; what shares this process's memory, as after `vfork`, sees the mark as it is.
package struct ForkMark: @unchecked Sendable {
  // One byte for the whole life of the process, which is reached only by the atomic calls below.
  private let byte: UnsafeMutableRawPointer?

  /// Where the kernel gives no such memory, the mark is never there.
  package init() {
    let address = try? perform(.mmap) { () -> Int in
      linux_wiped_in_copies().map { Int(bitPattern: $0) } ?? -1
    }
    byte = address.flatMap { UnsafeMutableRawPointer(bitPattern: $0) }
  }

  /// Whether this very process has made it.
  package var isThere: Bool { byte.map { linux_load_byte($0) != 0 } ?? false }

  package func make() {
    if let byte { linux_store_byte(byte, 1) }
  }
}
