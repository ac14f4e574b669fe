/// The numbers of the format `bplist00`.
///
/// A file consists of the eight letters, the objects, a table of their offsets, and a trailer. The
/// trailer contains the position of the table, the number of the top object, and the sizes of an
/// offset and of a reference in bytes.
enum BinaryFormat {
  /// "bplist00", as a big-endian number: a constant, while an array would be made at the first use
  /// and looked for at each.
  static let magic: UInt64 = 0x6270_6C69_7374_3030
  static let magicLength = 8
  static let trailerLength = 32
  /// The length of the shortest file: the letters, an object of one byte, its offset, the trailer.
  static let shortest = magicLength + 1 + 1 + trailerLength

  static func starts(_ bytes: RawSpan) -> Bool {
    bytes.byteCount >= magicLength && bytes.bigEndian(at: 0, width: magicLength) == magic
  }
}

/// The high half of an object's first byte.
enum ObjectKind: UInt8 {
  case boolean = 0x0
  case integer = 0x1
  case real = 0x2
  case date = 0x3
  case data = 0x4
  case ascii = 0x5
  case utf16 = 0x6
  case array = 0xA
  case dictionary = 0xD

  /// Returns the kind in an object's first byte; does the same as `init(rawValue:)`, but inlined.
  @inline(__always)
  init?(marker: UInt8) {
    switch marker >> 4 {
    case 0x0: self = .boolean
    case 0x1: self = .integer
    case 0x2: self = .real
    case 0x3: self = .date
    case 0x4: self = .data
    case 0x5: self = .ascii
    case 0x6: self = .utf16
    case 0xA: self = .array
    case 0xD: self = .dictionary
    default: return nil
    }
  }

  var isContainer: Bool { self == .array || self == .dictionary }
  var isString: Bool { self == .ascii || self == .utf16 }

  /// The kind of object, as error messages call it.
  var name: String {
    switch self {
    case .boolean: "a boolean"
    case .integer: "an integer"
    case .real: "a real"
    case .date: "a date"
    case .data: "data"
    case .ascii, .utf16: "a string"
    case .array: "an array"
    case .dictionary: "a dictionary"
    }
  }
}

/// An object without its payload.
struct ObjectHead {
  var kind: ObjectKind
  /// The position where the payload starts.
  var start: Int
  /// The number of elements, pairs, characters or bytes; for a boolean its value.
  var count: Int

  /// Returns the size of the payload in bytes.
  func length(referenceSize: Int) -> Int {
    switch kind {
    case .boolean: 0
    case .integer, .real, .date, .data, .ascii: count
    case .utf16: 2 * count
    case .array: referenceSize * count
    case .dictionary: 2 * referenceSize * count
    }
  }
}

/// The positions in a file: the content of the trailer, after validation.
struct BinaryLayout {
  var offsetSize: Int
  var referenceSize: Int
  var count: Int
  var top: Int
  var table: Int
}

// A read outside the bytes ends the process, in release builds too.
extension RawSpan {
  @inline(__always)
  subscript(offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

  /// Returns the eight bytes at an offset in the order of the processor.
  @inline(__always)
  func word(at offset: Int) -> UInt64 {
    unsafeLoadUnaligned(fromByteOffset: offset, as: UInt64.self)
  }

  /// Returns the big-endian number of `width` bytes (at most eight) at `offset`.
  func bigEndian(at offset: Int, width: Int) -> UInt64 {
    if width == 8 { return UInt64(bigEndian: word(at: offset)) }
    var value: UInt64 = 0
    for index in offset..<offset + width { value = value << 8 | UInt64(self[index]) }
    return value
  }

  func isSame(as other: RawSpan) -> Bool {
    guard byteCount == other.byteCount else { return false }
    for offset in byteOffsets where self[offset] != other[offset] { return false }
    return true
  }

  /// Whether no byte is above 127.
  var isASCII: Bool {
    var bits: UInt64 = 0
    var offset = 0
    while offset + 8 <= byteCount {
      bits |= word(at: offset)
      offset += 8
    }
    while offset < byteCount {
      bits |= UInt64(self[offset])
      offset += 1
    }
    return bits & 0x8080_8080_8080_8080 == 0
  }

  /// The bytes as UTF-8, repaired if they are not.
  var string: String { withUnsafeBytes { String(decoding: $0, as: UTF8.self) } }
}

// For `BinaryObjects`, which stores the pointer because no type that escapes can store a span, and
// whose offsets have been validated.
extension UnsafeRawBufferPointer {
  /// Returns the big-endian number of `width` bytes (at most eight) inside a whole file, where at
  /// least eight bytes follow `offset`: bytes before the trailer, or eight bytes of the trailer.
  ///
  /// The function needs one load and one shift, for any width.
  @inline(__always)
  func number(at offset: Int, width: Int) -> UInt64 {
    assert(offset >= 0 && offset + 8 <= count && 1...8 ~= width)
    let word = UInt64(bigEndian: loadUnaligned(fromByteOffset: offset, as: UInt64.self))
    return word &>> UInt64(truncatingIfNeeded: 64 &- 8 &* width)
  }

  /// Returns whether the bytes of both ranges, of equal length, are the same.
  @inline(__always)
  func same(_ left: Int, _ right: Int, count: Int) -> Bool {
    var index = 0
    while index + 8 <= count {
      if loadUnaligned(fromByteOffset: left + index, as: UInt64.self)
        != loadUnaligned(fromByteOffset: right + index, as: UInt64.self)
      {
        return false
      }
      index += 8
    }
    while index < count {
      if self[left + index] != self[right + index] { return false }
      index += 1
    }
    return true
  }

  /// Whether none of the bytes before the trailer is above 127.
  @inline(__always)
  func isASCII(at offset: Int, count: Int) -> Bool {
    var bits: UInt64 = 0
    var left = count
    while left > 8 {
      bits |= number(at: offset + count - left, width: 8)
      left -= 8
    }
    if left > 0 { bits |= number(at: offset + count - left, width: left) }
    return bits & 0x8080_8080_8080_8080 == 0
  }
}
