internal import CLinux
import Glibc

/// An open file, directory or other kernel object; closes itself.
///
/// Every descriptor is close-on-exec. Names are single components or paths that lead downward from
/// a directory descriptor; symbolic links are never followed.
package struct Descriptor: ~Copyable, Sendable {
  /// The kernel's number.
  ///
  /// Whoever takes it out must not outlive the descriptor with it.
  package let rawValue: CInt

  /// Takes over a descriptor that nobody else closes.
  package init(adopting rawValue: CInt) { self.rawValue = rawValue }

  deinit { Self.close(rawValue) }

  /// Closes now, and says what the kernel said of it.
  ///
  /// Never tried again: after EINTR Linux has closed the descriptor already, and its number may
  /// belong to another thread.
  package consuming func close() throws(Errno) {
    let number = rawValue
    discard self
    _ = try perform(.close, on: number, retrying: false) { Glibc.close(number) }
  }

  private static func close(_ number: CInt) {
    // In a deinit there is nobody left to tell; what has to be on disk was synced by name.
    _ = try? perform(.close, on: number, retrying: false) { Glibc.close(number) }
  }

  /// Another number for the same open description: same offset, same locks.
  package func duplicate() throws(Errno) -> Descriptor {
    Descriptor(
      adopting: try perform(.duplicate, on: rawValue) { linux_duplicate(rawValue) })
  }
}

extension StaticString {
  /// A name as the kernel takes it: a literal ends with a zero.
  package var cString: UnsafePointer<CChar> {
    UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
  }
}
