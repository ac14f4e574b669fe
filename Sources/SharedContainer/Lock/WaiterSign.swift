internal import Syscalls

/// Eight bytes behind the mark in a lock file: by these, one who waits asks whoever has the lock
/// again and again to step aside.
///
///    64  a random number of the process's that asks; 0: nobody does
///
/// One is enough, whoever asks: the kernel decides which waiter is next, and those who go on
/// waiting ask again at each look. It decides nothing but who is sooner, so that it cannot be
/// written, or is another's by now, does no harm.
enum WaiterSign {
  static let place = HolderMark.size
  /// How long a lock file may be.
  static let end = place + MemoryLayout<UInt64>.size

  private static var own: UInt64 { ProcessIdentity.current.seed | 1 }

  static func leave(in file: borrowing Descriptor) { write(own, to: file) }

  /// It waits no more.
  static func withdraw(from file: borrowing Descriptor) {
    if read(file) == own { write(0, to: file) }
  }

  /// Whether somebody asks; with that he has asked, and one who has died does not go on asking.
  static func take(from file: borrowing Descriptor) -> Bool {
    guard read(file) != 0 else { return false }
    write(0, to: file)
    return true
  }

  private static func read(_ file: borrowing Descriptor) -> UInt64 {
    var sign = UInt64(0)
    _ = try? withUnsafeMutableBytes(of: &sign) { buffer throws(Errno) in
      try file.readFully(into: buffer, at: place)
    }
    return sign
  }

  private static func write(_ sign: UInt64, to file: borrowing Descriptor) {
    try? withUnsafeBytes(of: sign) { bytes throws(Errno) in
      try file.writeFully(bytes, at: place)
    }
  }
}
