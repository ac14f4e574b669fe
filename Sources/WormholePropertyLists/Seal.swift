/// The state of the checksum in a binary property list's trailer.
///
/// The trailer begins with six bytes that the format leaves unused and every reader ignores. This
/// package stores there a mark of two bytes and the CRC-32, big-endian, of all bytes of the file
/// but these six. Six zeros come from a foreign writer, and are accepted. Everything else is
/// damage: if an unknown mark were accepted too, one flipped bit would turn the check off.
package enum Seal: String, Sendable {
  /// The checksum is present and right.
  case checked
  /// A foreign writer left no checksum.
  case believed
  /// The checksum is wrong, or its mark is damaged.
  case broken

  static let mark: UInt64 = 0xC332
  /// The mark of a file that was synced before it was moved into place.
  ///
  /// The checksum does not cover this mark: the mark is set afterwards, and no reader's trust
  /// depends on it.
  static let syncedMark: UInt64 = 0xC3CD
  static let length = 6

  /// Returns the state of the seal of `bytes`, which must be at least as long as a trailer.
  static func of(_ bytes: RawSpan) -> Seal {
    let start = bytes.byteCount - BinaryFormat.trailerLength
    let found = bytes.bigEndian(at: start, width: length)
    if found == 0 { return .believed }
    let mark = found >> 32 == syncedMark ? syncedMark : mark
    return found == make(for: bytes, mark: mark) ? .checked : .broken
  }

  /// Returns the six bytes that seal `bytes`, as a number.
  static func make(for bytes: RawSpan, mark: UInt64 = Seal.mark) -> UInt64 {
    let start = bytes.byteCount - BinaryFormat.trailerLength
    let crc = Checksum.crc32(
      bytes.extracting(..<start), bytes.extracting((start + length)...))
    return mark << 32 | UInt64(crc)
  }
}
