internal import Synchronization
internal import WormholeSyscalls

/// The 64 bytes in a lock file: the identity of the holder, and a heartbeat that changes with every
/// tenure and, during a long tenure, many times a second.
///
/// Waiters only compare the bytes. The identity of the holder serves error messages.
///
///     0  "WHM1"                        32  number of the tenure in the process
///     4  process id, 32 bits           40  number of renewals
///     8  inode of its pid namespace    48  name of the program, 16 bytes, filled up with zeros
///    16  when the process started, in ticks since boot
///    24  a random number of the process
///
/// Numbers are little-endian.
struct HolderMark: Equatable, Sendable {
  static let size = 64

  /// The 64 bytes, as in the file.
  var words: SIMD8<UInt64>

  private static let magic = UInt64(0x314D_4857)

  /// The mark of a lock file that no process has held yet.
  static let unheld = HolderMark(words: SIMD8(magic, 0, 0, 0, 0, 0, 0, 0))

  init(words: SIMD8<UInt64>) { self.words = words }

  /// The mark of a process before its first tenure.
  init(of owner: ProcessIdentity) {
    var program: (UInt64, UInt64) = (0, 0)
    withUnsafeMutableBytes(of: &program) { $0.copyBytes(from: owner.program.utf8.prefix(16)) }
    words = SIMD8(
      Self.magic | UInt64(UInt32(bitPattern: owner.process)) << 32, owner.namespace,
      owner.started, owner.seed, 0, 0, program.0, program.1)
  }

  /// Nil if the bytes do not have this form, or no process has held the lock.
  var process: Int32? {
    guard words[0] & 0xffff_ffff == Self.magic, let process = Int32(exactly: words[0] >> 32),
      process > 0
    else { return nil }
    return process
  }
  /// As ``ProcessIdentity/isWhole``.
  var isWhole: Bool { started != 0 || namespace == 0 }
  var namespace: UInt64 { words[1] }
  var started: UInt64 { words[2] }

  private static let tenures = Atomic<UInt64>(0)

  /// Makes the mark different from all marks of this process, in all locks.
  mutating func begin() {
    tenure = Self.tenures.add(1, ordering: .relaxed).newValue
    renewals = 0
  }

  var tenure: UInt64 {
    get { words[4] }
    set { words[4] = newValue }
  }

  var renewals: UInt64 {
    get { words[5] }
    set { words[5] = newValue }
  }

  var program: String {
    let name = withUnsafeBytes(of: (words[6], words[7])) { bytes in
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }
    return name.harmless
  }
}

extension HolderMark {
  /// Reads the mark of a lock file; a short file reads as zeros.
  init(in file: borrowing Descriptor) throws(Errno) {
    words = SIMD8()
    _ = try withUnsafeMutableBytes(of: &words) { buffer throws(Errno) in
      try file.readFully(into: buffer)
    }
  }

  func write(to file: borrowing Descriptor) throws(Errno) { try write(toOpen: file.rawValue) }

  /// For a descriptor that its owner promises to keep open during the call.
  func write(toOpen file: CInt) throws(Errno) {
    try Descriptor.writeFully(CollectionOfOne(words).span.bytes, at: 0, toOpen: file)
  }
}
