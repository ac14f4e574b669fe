/// A position in a UTF-8 text during reading.
struct TextCursor {
  let bytes: [UInt8]
  let limits: PropertyListLimits
  var index = 0

  /// Checks that the text is UTF-8 and not too long; skips a byte order mark.
  init(_ bytes: [UInt8], limits: PropertyListLimits) throws(PropertyListError) {
    guard bytes.count <= limits.bytes else { throw .limit(.bytes, limits) }
    guard String(validating: bytes, as: UTF8.self) != nil else {
      throw PropertyListError(.malformed, "the text is not UTF-8")
    }
    self.bytes = bytes
    self.limits = limits
    if bytes.starts(with: [0xEF, 0xBB, 0xBF]) { index = 3 }
  }

  var isAtEnd: Bool { index >= bytes.count }

  /// The byte here; at the end 0, a byte that no text contains.
  var byte: UInt8 { index < bytes.count ? bytes[index] : 0 }

  mutating func skipSpace() {
    while index < bytes.count, Self.isSpace(bytes[index]) { index += 1 }
  }

  static func isSpace(_ byte: UInt8) -> Bool {
    byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09
  }

  /// Skips a literal, if the text continues with it.
  mutating func skip(_ literal: StaticString) -> Bool {
    let length = literal.utf8CodeUnitCount
    guard bytes.count - index >= length else { return false }
    for offset in 0..<length where bytes[index + offset] != literal.utf8Start[offset] {
      return false
    }
    index += length
    return true
  }

  /// Skips to the end of the next occurrence of a literal, and returns the range before it.
  mutating func skip(behind literal: StaticString) throws(PropertyListError) -> Range<Int> {
    let start = index
    while index < bytes.count {
      let end = index
      if skip(literal) { return start..<end }
      index += 1
    }
    throw failure("the text ends before '\(literal)'", at: start)
  }

  func text(_ range: Range<Int>) -> String { String(decoding: bytes[range], as: UTF8.self) }

  func failure(_ reason: String, at offset: Int? = nil) -> PropertyListError {
    PropertyListError(.malformed, reason, at: offset ?? index)
  }
}
