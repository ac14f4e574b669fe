import WormholeLibC
internal import WormholeCLinux

/// An open file, directory or other kernel object; closes automatically.
///
/// Every descriptor is close-on-exec. Names are single components, or paths that lead downward from
/// a directory descriptor; symbolic links are never followed.
///
/// A descriptor belongs to the process that opened it. In a forked child, see ``ProcessCopy``,
/// every call on the descriptor fails with ``Errno/ownerDied`` before it reaches the kernel: the
/// child has the very same open files as its parent, and would release the parent's locks and
/// remove the parent's names.
package struct Descriptor: ~Copyable, Sendable {
  /// The kernel's number.
  ///
  /// The caller must not use the number after the end of the descriptor.
  package let rawValue: CInt
  private let owner = ProcessCopy.current
  /// Whether a child made by `fork` gets a harmless file under this number.
  private let isGuarded: Bool

  /// Takes ownership of a descriptor's number, to be closed only here.
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

  /// Closes the descriptor now, and reports the kernel's result.
  ///
  /// The close is never repeated: after EINTR Linux has already closed the descriptor, and the
  /// number may belong to another thread.
  package consuming func close() throws(Errno) {
    let (number, isGuarded) = (rawValue, isGuarded)
    discard self
    try Self.close(number, isGuarded)
  }

  private static func close(_ number: CInt, _ isGuarded: Bool) throws(Errno) {
    // A deinit has no caller that could receive the error; content that must be on disk was synced
    // by an explicit call.
    _ = try perform(.close, on: number, retrying: false) {
      isGuarded ? linux_close_noted(number) : WormholeLibC.close(number)
    }
  }

  /// Returns another number for the same open file description: same offset, same locks.
  package func duplicate() throws(Errno) -> Descriptor {
    let number = try number
    return try Self.adopt(isGuarded: isGuarded) { () throws(Errno) in
      try perform(.duplicate, on: number) { linux_duplicate(number) }
    }
  }

  /// Takes ownership of the opened number; if guarded, no fork happens between opening and noting.
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
      // A child forked between opening and noting has the file too, and would retain its lock.
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
  /// A name in the kernel's form: a literal ends with a zero byte.
  package var cString: UnsafePointer<CChar> {
    UnsafeRawPointer(utf8Start).assumingMemoryBound(to: CChar.self)
  }
}
