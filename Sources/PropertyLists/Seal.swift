/// The checksum in a binary property list's trailer, and what it says.
///
/// The trailer begins with six bytes that the format leaves unused and every reader ignores. Ours
/// are a mark of two bytes and the CRC-32, big-endian, of all bytes of the file but these six. Six
/// zeros are a foreign writer's, and believed. Everything else is damage: were an unknown mark
/// believed too, one flipped bit would turn the check off.
package enum Seal: String, Sendable {
  /// The checksum is there and right.
  case checked
  /// A foreign writer left none.
  case believed
  /// The checksum is wrong, or its mark is damaged.
  case broken

  static let mark: (UInt8, UInt8) = (0xC3, 0x32)
  /// The second byte of the mark in a file that was synced before it was moved into place.
  ///
  /// The
  /// checksum does not cover it: it is set afterwards, and no reader's trust depends on it.
  static let syncedMark: UInt8 = 0xCD
  static let length = 6

  /// What the seal of `bytes` says, which must be at least a trailer long.
  static func of(_ bytes: UnsafeRawBufferPointer) -> Seal {
    let start = bytes.count - BinaryFormat.trailerLength
    let seal = bytes[start..<start + length]
    if seal.allSatisfy({ $0 == 0 }) { return .believed }
    var expected = make(for: bytes)
    if seal[start + 1] == syncedMark { expected[1] = syncedMark }
    return zip(seal, expected).allSatisfy { $0 == $1 } ? .checked : .broken
  }

  /// The six bytes that seal `bytes`.
  static func make(for bytes: UnsafeRawBufferPointer) -> [UInt8] {
    let start = bytes.count - BinaryFormat.trailerLength
    let crc = Checksum.crc32(
      UnsafeRawBufferPointer(rebasing: bytes[..<start]),
      UnsafeRawBufferPointer(rebasing: bytes[(start + length)...]))
    return [mark.0, mark.1] + stride(from: 24, through: 0, by: -8).map { UInt8(crc >> $0 & 0xFF) }
  }
}
