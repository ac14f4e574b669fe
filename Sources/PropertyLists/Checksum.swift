/// The CRC-32 of zlib, gzip and PNG, eight bytes a step.
///
/// Our own, because zlib would be a dependency and the rooms above carry no Foundation.
enum Checksum {
  /// Row `k` holds what a byte is worth when `k` more bytes follow it in the same step.
  private static let table: [UInt32] = {
    var table = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : (value >> 1) ^ 0xEDB8_8320 }
      table[byte] = value
    }
    for index in 256..<table.count {
      let before = table[index - 256]
      table[index] = (before >> 8) ^ table[Int(before & 0xFF)]
    }
    return table
  }()

  /// The CRC-32 of two stretches of bytes as if they were one.
  static func crc32(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer
  ) -> UInt32 {
    table.withUnsafeBufferPointer { table in
      ~update(update(~UInt32(0), with: first, table), with: second, table)
    }
  }

  private static func update(
    _ start: UInt32, with bytes: UnsafeRawBufferPointer, _ table: UnsafeBufferPointer<UInt32>
  ) -> UInt32 {
    var crc = start
    var index = 0
    while index + 8 <= bytes.count {
      let word =
        UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: index, as: UInt64.self))
        ^ UInt64(crc)
      crc =
        table[0x700 | Int(word & 0xFF)] ^ table[0x600 | Int(word >> 8 & 0xFF)]
        ^ table[0x500 | Int(word >> 16 & 0xFF)] ^ table[0x400 | Int(word >> 24 & 0xFF)]
        ^ table[0x300 | Int(word >> 32 & 0xFF)] ^ table[0x200 | Int(word >> 40 & 0xFF)]
        ^ table[0x100 | Int(word >> 48 & 0xFF)] ^ table[Int(word >> 56)]
      index += 8
    }
    while index < bytes.count {
      crc = (crc >> 8) ^ table[Int((crc ^ UInt32(bytes[index])) & 0xFF)]
      index += 1
    }
    return crc
  }
}
