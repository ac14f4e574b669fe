internal import WormholeCChecksum

/// The CRC-32 of zlib, gzip and PNG: sixty-four bytes a step if the processor has carry-less
/// multiplication, eight bytes a step otherwise.
///
/// The package has its own, because zlib would be a dependency and the modules above carry no
/// Foundation.
package struct Checksum: Sendable {
  /// The state of zlib, with all bits inverted.
  private var state = ~UInt32(0)

  package init() {}

  /// The CRC-32 of all bytes so far.
  package var value: UInt32 { ~state }

  package mutating func add(_ bytes: RawSpan) { state = Self.update(state, with: bytes) }

  /// Adds that many zeros, as a hole in a file reads, in almost no time.
  package mutating func addZeros(_ count: Int) {
    var zeros = Self.power(UInt64(count))
    // Eight times the count may overflow an integer, so the power is raised to the eighth instead.
    for _ in 0..<3 { zeros = Self.product(zeros, zeros) }
    state = Self.product(state, zeros)
  }

  /// Appends the checksum of the following bytes, computed elsewhere in the meantime.
  package mutating func append(_ other: Checksum, count: Int) {
    var before = self
    before.state ^= ~0
    before.addZeros(count)
    state = before.state ^ other.state
  }

  /// Returns the CRC-32 of two byte ranges as if the second followed the first directly.
  static func crc32(_ first: RawSpan, _ second: RawSpan) -> UInt32 {
    ~update(update(~UInt32(0), with: first), with: second)
  }

  // MARK: Bytes

  private static let canFold = checksum_can_fold() != 0

  private static func update(_ start: UInt32, with bytes: RawSpan) -> UInt32 {
    guard bytes.byteCount >= 64, canFold else { return updateByTable(start, with: bytes) }
    let count = bytes.byteCount & ~15
    let folded = withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) { folded in
      bytes.withUnsafeBytes {
        checksum_fold(start, $0.baseAddress!, count, folded.baseAddress!)
      }
      return updateByTable(0, with: folded.bytes)
    }
    return updateByTable(folded, with: bytes.extracting(count...))
  }

  /// Row `k` contains the contribution of a byte that has `k` more bytes behind it in the same
  /// step.
  private static let table: [UInt32] = {
    var table = [UInt32](repeating: 0, count: 8 * 256)
    for byte in 0..<256 {
      var value = UInt32(byte)
      for _ in 0..<8 { value = value & 1 == 0 ? value >> 1 : (value >> 1) ^ polynomial }
      table[byte] = value
    }
    for index in 256..<table.count {
      let before = table[index - 256]
      table[index] = (before >> 8) ^ table[Int(before & 0xFF)]
    }
    return table
  }()

  /// Updates the state by a table, as every processor can.
  static func updateByTable(_ start: UInt32, with bytes: RawSpan) -> UInt32 {
    update(start, with: bytes, table.span)
  }

  private static func update(
    _ start: UInt32, with bytes: RawSpan, _ table: Span<UInt32>
  ) -> UInt32 {
    // From the count, the compiler proves that each index below is inside the table.
    precondition(table.count == 8 * 256)
    var crc = start
    var index = 0
    while index + 8 <= bytes.byteCount {
      let word = UInt64(littleEndian: bytes.word(at: index)) ^ UInt64(crc)
      crc =
        table[0x700 | Int(word & 0xFF)] ^ table[0x600 | Int(word >> 8 & 0xFF)]
        ^ table[0x500 | Int(word >> 16 & 0xFF)] ^ table[0x400 | Int(word >> 24 & 0xFF)]
        ^ table[0x300 | Int(word >> 32 & 0xFF)] ^ table[0x200 | Int(word >> 40 & 0xFF)]
        ^ table[0x100 | Int(word >> 48 & 0xFF)] ^ table[Int(word >> 56)]
      index += 8
    }
    while index < bytes.byteCount {
      crc = (crc >> 8) ^ table[Int((crc ^ UInt32(bytes[index])) & 0xFF)]
      index += 1
    }
    return crc
  }

  // MARK: Zeros

  /// The bits from the right: x to the 31st down to x to the 0th, in reverse order as in the state.
  private static let polynomial: UInt32 = 0xEDB8_8320

  /// Returns the product of two remainders.
  private static func product(_ left: UInt32, _ right: UInt32) -> UInt32 {
    var (sum, shifted) = (UInt32(0), right)
    for bit in (0..<32).reversed() {
      if left >> UInt32(bit) & 1 == 1 { sum ^= shifted }
      shifted = shifted & 1 == 0 ? shifted >> 1 : (shifted >> 1) ^ polynomial
    }
    return sum
  }

  /// Returns the remainder of a power of x.
  private static func power(_ exponent: UInt64) -> UInt32 {
    var (result, square, rest) = (UInt32(1) << 31, UInt32(1) << 30, exponent)
    while rest > 0 {
      if rest & 1 == 1 { result = product(result, square) }
      square = product(square, square)
      rest >>= 1
    }
    return result
  }
}
