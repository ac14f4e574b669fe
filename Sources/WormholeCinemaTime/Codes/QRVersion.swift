/// The standard's parameters of a version at level Q: its size and the division of its codewords.
struct QRVersion: Sendable {
  let number: Int
  /// The number of error correction codewords in each block.
  let correction: Int
  /// The number of data codewords in each block, the shorter blocks first.
  let blocks: [Int]
  /// The rows and columns of the centres of alignment patterns.
  let alignment: [Int]

  var side: Int { 17 + 4 * number }
  private var capacity: Int { blocks.reduce(0, +) }
  /// The number of bits of the byte count.
  private var countBits: Int { number < 10 ? 8 : 16 }

  private init(
    _ number: Int, _ correction: Int, _ blocks: [(count: Int, data: Int)], _ alignment: [Int]
  ) {
    self.number = number
    self.correction = correction
    self.blocks = blocks.flatMap { Array(repeating: $0.data, count: $0.count) }
    self.alignment = alignment
  }

  static let all = [
    QRVersion(1, 13, [(1, 13)], []),
    QRVersion(2, 22, [(1, 22)], [6, 18]),
    QRVersion(3, 18, [(2, 17)], [6, 22]),
    QRVersion(4, 26, [(2, 24)], [6, 26]),
    QRVersion(5, 18, [(2, 15), (2, 16)], [6, 30]),
    QRVersion(6, 24, [(4, 19)], [6, 34]),
    QRVersion(7, 18, [(2, 14), (4, 15)], [6, 22, 38]),
    QRVersion(8, 22, [(4, 18), (2, 19)], [6, 24, 42]),
    QRVersion(9, 20, [(4, 16), (4, 17)], [6, 26, 46]),
    QRVersion(10, 24, [(6, 19), (2, 20)], [6, 28, 50]),
    QRVersion(11, 28, [(4, 22), (4, 23)], [6, 30, 54]),
    QRVersion(12, 26, [(4, 20), (6, 21)], [6, 32, 58]),
    QRVersion(13, 24, [(8, 20), (4, 21)], [6, 34, 62]),
  ]

  // MARK: Data

  /// The marker for UTF-8 bytes: extended interpretation 26.
  ///
  /// Readers need no marker for ASCII.
  private static let unicode = [(value: 0b0111, bits: 4), (value: 26, bits: 8)]

  func holds(_ bytes: [UInt8], isASCII: Bool) -> Bool {
    (isASCII ? 0 : 12) + 4 + countBits + 8 * bytes.count <= 8 * capacity
  }

  /// Returns the data codewords: mode, count, bytes, end, and padding.
  func data(of bytes: [UInt8], isASCII: Bool) -> [UInt8] {
    var bits: [Bool] = []
    func append(_ value: Int, _ count: Int) {
      for place in (0..<count).reversed() { bits.append(value >> place & 1 == 1) }
    }
    if !isASCII { for part in Self.unicode { append(part.value, part.bits) } }
    append(0b0100, 4)
    append(bytes.count, countBits)
    for byte in bytes { append(Int(byte), 8) }
    append(0, min(4, 8 * capacity - bits.count))
    append(0, (8 - bits.count % 8) % 8)
    var codewords = stride(from: 0, to: bits.count, by: 8).map { start in
      bits[start..<start + 8].reduce(UInt8(0)) { $0 << 1 | ($1 ? 1 : 0) }
    }
    while codewords.count < capacity {
      codewords.append(0xEC)
      if codewords.count < capacity { codewords.append(0x11) }
    }
    return codewords
  }

  /// Returns the first codeword of each block, followed by the second of each, and so on; a stain
  /// then damages a little of many blocks instead of much of a single block.
  func interleaved(_ data: [UInt8]) -> [UInt8] {
    var start = 0
    let parts = blocks.map { count in
      defer { start += count }
      return Array(data[start..<start + count])
    }
    let code = ReedSolomon(correction)
    let corrections = parts.map(code.remainder)
    var result: [UInt8] = []
    for index in 0..<(blocks.max() ?? 0) {
      for part in parts where index < part.count { result.append(part[index]) }
    }
    for index in 0..<correction {
      for part in corrections { result.append(part[index]) }
    }
    return result
  }
}
