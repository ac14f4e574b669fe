internal import CLinux
import Glibc

/// An open file, directory or other kernel object; closes itself.
///
/// Every descriptor is close-on-exec. Names are single components or paths that lead downward from
/// a directory descriptor; symbolic links are never followed.
///
/// It belongs to the process that has opened it. In a copy of that one, see ``ProcessCopy``, every
/// call on it fails with ``Errno/ownerDied`` before it reaches the kernel: the copy has the very
/// same open files, and would give back locks and remove names that are not its own.
package struct Descriptor: ~Copyable, Sendable {
  /// The kernel's number.
  ///
  /// Whoever takes it out must not outlive the descriptor with it.
  package let rawValue: CInt
  private let owner = ProcessCopy.current
  /// Whether copies that `fork` makes of the process get a harmless file under the number.
  private let isGuarded: Bool

  /// Takes over a descriptor that nobody else closes.
  package init(adopting rawValue: CInt) { self.init(adopting: rawValue, isGuarded: false) }

  private init(adopting rawValue: CInt, isGuarded: Bool) {
    self.rawValue = rawValue
    self.isGuarded = isGuarded
  }

  /// The number, for a call.
  var number: CInt {
    get throws(Errno) {
      guard owner.isCurrent else { throw .ownerDied }
      return rawValue
    }
  }

  deinit { _ = try? Self.close(rawValue, isGuarded) }

  /// Closes now, and says what the kernel said of it.
  ///
  /// Never tried again: after EINTR Linux has closed the descriptor already, and its number may
  /// belong to another thread.
  package consuming func close() throws(Errno) {
    let (number, isGuarded) = (rawValue, isGuarded)
    discard self
    try Self.close(number, isGuarded)
  }

  private static func close(_ number: CInt, _ isGuarded: Bool) throws(Errno) {
    // In a deinit there is nobody left to tell; what has to be on disk was synced by name.
    _ = try perform(.close, on: number, retrying: false) {
      isGuarded ? linux_close_noted(number) : Glibc.close(number)
    }
  }

  /// Another number for the same open description: same offset, same locks.
  package func duplicate() throws(Errno) -> Descriptor {
    let number = try number
    return try Self.adopt(isGuarded: isGuarded) { () throws(Errno) in
      try perform(.duplicate, on: number) { linux_duplicate(number) }
    }
  }

  /// Takes over what is opened; if it is to be guarded, no fork comes between the two.
  static func adopt(
    isGuarded: Bool, _ open: () throws(Errno) -> CInt
  ) throws(Errno) -> Descriptor {
    guard isGuarded else { return Descriptor(adopting: try open()) }
    while true {
      var forks: UInt32 = 0
      guard linux_count_forks(&forks) == 0 else { throw Errno.current }
      let number = try open()
      switch linux_note_for_forks(number, forks) {
      case 1: return Descriptor(adopting: number, isGuarded: true)
      // The copy that was made in between has it too, and would keep its lock.
      case 0: _ = Descriptor(adopting: number)
      default:
        let error = Errno.current
        _ = Descriptor(adopting: number)
        throw error
      }
    }
  }
}

extension StaticString {
  /// A name as the kernel takes it: a literal ends with a zero.
  package var cString: UnsafePointer<CChar> {
    UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
  }
}
