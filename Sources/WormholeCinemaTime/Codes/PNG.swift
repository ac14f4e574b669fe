internal import WormholeSyscalls

/// A picture in shades of grey, as a PNG file.
///
/// The rows are stored without compression: a ticket's image has ten thousand bytes.
public struct PNG: Hashable, Sendable {
  /// The bytes of the file.
  public let bytes: [UInt8]

  /// Draws a code, with a square of pixels for each module, in the middle of a light square.
  ///
  /// - Parameter side: the minimum number of pixels of each side; the side is longer if the code
  ///   would not be readable otherwise: a module needs two pixels, and the quiet zone has four
  ///   modules.
  public init(_ code: QRCode, side least: Int = 100) {
    let whole = code.side + 8
    let side = max(least, 2 * whole)
    let scale = side / whole
    let start = (side - scale * code.side) / 2
    let modules = (0..<side).map { pixel in
      pixel < start ? -1 : (pixel - start) / scale
    }
    var rows: [UInt8] = []
    for row in modules {
      // The first byte of a row names its filter: none.
      rows.append(0)
      for column in modules { rows.append(code[row, column] ? 0 : 255) }
    }
    let greyOfEightBits: [UInt8] = [8, 0, 0, 0, 0]
    bytes =
      Self.signature
      + Self.chunk("IHDR", Self.word(side) + Self.word(side) + greyOfEightBits)
      + Self.chunk("IDAT", Self.stored(rows)) + Self.chunk("IEND", [])
  }

  private static let signature: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]

  private static func word(_ value: Int) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> $0) }
  }

  private static func chunk(_ name: String, _ content: [UInt8]) -> [UInt8] {
    let checked = Array(name.utf8) + content
    return word(content.count) + checked + word(Int(checksum(checked)))
  }

  /// Returns a zlib stream of blocks with uncompressed bytes.
  private static func stored(_ bytes: [UInt8]) -> [UInt8] {
    var stream: [UInt8] = [0x78, 0x01]
    let largest = 65_535
    for start in stride(from: 0, to: bytes.count, by: largest) {
      let block = bytes[start..<min(start + largest, bytes.count)]
      let size = UInt16(block.count)
      stream.append(start + block.count == bytes.count ? 1 : 0)
      for value in [size, ~size] { stream += [UInt8(value & 0xFF), UInt8(value >> 8)] }
      stream += block
    }
    var (low, high) = (1, 0)
    for byte in bytes {
      low = (low + Int(byte)) % 65_521
      high = (high + low) % 65_521
    }
    return stream + word(high << 16 | low)
  }

  /// Returns the CRC-32 for a chunk of a PNG file.
  private static func checksum(_ bytes: [UInt8]) -> UInt32 {
    var value: UInt32 = 0xFFFF_FFFF
    for byte in bytes { value = table[Int(UInt8(truncatingIfNeeded: value) ^ byte)] ^ value >> 8 }
    return ~value
  }

  private static let table: [UInt32] = (0..<256).map { index in
    (0..<8).reduce(UInt32(index)) { value, _ in
      value & 1 == 1 ? 0xEDB8_8320 ^ value >> 1 : value >> 1
    }
  }
}

extension Movie {
  private static let images = Monitor([String: PNG]())

  /// Returns the image of a ticket for this film.
  ///
  /// Choosing the best of eight masks takes longer than all other work for a ticket, so each image
  /// is drawn once.
  public func ticketImage() throws(QRCode.TooLong) -> PNG {
    if let image = Self.images.withLock({ $0[ticketText] }) { return image }
    let image = PNG(try QRCode(ticketText))
    Self.images.withLock { $0[ticketText] = image }
    return image
  }
}
