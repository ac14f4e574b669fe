internal import WormholeSyscalls

/// Eight bytes behind the mark in a lock file: a waiter's request to a repeatedly relocking holder
/// to yield.
///
///    64  a random number of the requesting process; 0: no request
///
/// A single request is enough for all waiters: the kernel selects the next holder, and the
/// remaining waiters repeat the request at each check. The request only affects the order of
/// holders, so a failed write, or a request of another waiter, does no harm.
enum WaiterFlag {
  static let place = HolderMark.size
  /// The largest size of a lock file.
  static let end = place + MemoryLayout<UInt64>.size

  private static var own: UInt64 { ProcessIdentity.current.seed | 1 }

  static func leave(in file: borrowing Descriptor) { write(own, to: file) }

  /// Removes the request: the waiter no longer waits.
  static func withdraw(from file: borrowing Descriptor) {
    if read(file) == own { write(0, to: file) }
  }

  /// Returns whether a waiter has requested the lock, and removes the request, so that the request
  /// of a dead waiter ends.
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
    try? file.writeFully(CollectionOfOne(sign).span.bytes, at: place)
  }
}
