import FoundationEssentials

/// A reader of one value in JSON.
struct JSONReader {
  var cursor: TextCursor
  private var stack: TreeStack

  init(cursor: TextCursor) {
    self.cursor = cursor
    stack = TreeStack(limits: cursor.limits)
  }

  mutating func read() throws(PropertyListError) -> PropertyListValue {
    cursor.skipSpace()
    guard !cursor.isAtEnd else {
      throw PropertyListError(.notPropertyList, "the text is empty", at: cursor.index)
    }
    repeat { try readItem() } while !stack.isEmpty
    cursor.skipSpace()
    return try stack.value(at: cursor)
  }

  /// Reads a leaf with the separators behind it, or opens a container.
  private mutating func readItem() throws(PropertyListError) {
    let start = cursor.index
    switch cursor.byte {
    case UInt8(ascii: "{"):
      if let value = readReserved() {
        try stack.add(value, at: start)
        return try readSeparators()
      }
      cursor.index += 1
      try stack.open(isDictionary: true, at: start)
      cursor.skipSpace()
      if cursor.skip("}") { try finish(at: start) } else { try readKey() }
    case UInt8(ascii: "["):
      cursor.index += 1
      try stack.open(isDictionary: false, at: start)
      cursor.skipSpace()
      if cursor.skip("]") { try finish(at: start) }
    default:
      try stack.add(try readLeaf(), at: start)
      try readSeparators()
    }
  }

  private mutating func finish(at offset: Int) throws(PropertyListError) {
    guard let value = stack.close() else { return }
    try stack.add(try meaning(of: value, at: offset), at: offset)
    try readSeparators()
  }

  /// Closes all containers that end here, and goes to the next value, if any.
  private mutating func readSeparators() throws(PropertyListError) {
    while let isDictionary = stack.isInDictionary {
      cursor.skipSpace()
      let start = cursor.index
      if cursor.skip(",") {
        cursor.skipSpace()
        if isDictionary { try readKey() }
        return
      }
      guard isDictionary ? cursor.skip("}") : cursor.skip("]") else {
        throw cursor.failure(isDictionary ? "neither ',' nor '}'" : "neither ',' nor ']'")
      }
      guard let value = stack.close() else { return }
      try stack.add(try meaning(of: value, at: start), at: start)
    }
  }

  private mutating func readKey() throws(PropertyListError) {
    let start = cursor.index
    guard cursor.byte == UInt8(ascii: "\"") else { throw cursor.failure("no key in quotes") }
    try stack.setKey(try readString(), at: start)
    cursor.skipSpace()
    guard cursor.skip(":") else { throw cursor.failure("no ':' after a key") }
    cursor.skipSpace()
  }

  private mutating func readLeaf() throws(PropertyListError) -> PropertyListValue {
    switch cursor.byte {
    case UInt8(ascii: "\""): return .string(try readText())
    case UInt8(ascii: "-"), 0x30...0x39: return try readNumber()
    default: break
    }
    if cursor.skip("true") { return .boolean(true) }
    if cursor.skip("false") { return .boolean(false) }
    if cursor.skip("null") { return .string(BinaryWriter.null) }
    throw cursor.failure(
      cursor.isAtEnd ? "the text ends too early" : "no JSON value; a string needs double quotes")
  }
}

extension JSONReader {
  /// Reads a string that is a value.
  ///
  /// The text that represents nil is refused: a reader would find null in its place.
  private mutating func readText() throws(PropertyListError) -> String {
    let start = cursor.index
    let text = try readString()
    guard text == BinaryWriter.null else { return text }
    throw PropertyListError(
      .unsupported, "the text '\(text)', which property lists read as null", at: start,
      path: stack.path)
  }

  private mutating func digits() throws(PropertyListError) -> Range<Int> {
    let start = cursor.index
    while (0x30...0x39).contains(cursor.byte) { cursor.index += 1 }
    guard cursor.index > start else { throw cursor.failure("no digit in a number") }
    return start..<cursor.index
  }

  private mutating func readNumber() throws(PropertyListError) -> PropertyListValue {
    let start = cursor.index
    _ = cursor.skip("-")
    let whole = try digits()
    guard whole.count == 1 || cursor.bytes[whole.lowerBound] != 0x30 else {
      throw cursor.failure("a number with a leading zero", at: start)
    }
    var isInteger = true
    if cursor.skip(".") {
      isInteger = false
      _ = try digits()
    }
    if cursor.skip("e") || cursor.skip("E") {
      isInteger = false
      if !cursor.skip("+") { _ = cursor.skip("-") }
      _ = try digits()
    }
    let text = cursor.text(start..<cursor.index)
    if isInteger {
      if let value = Int64(text) { return .integer(value) }
      if let value = UInt64(text) { return .unsigned(value) }
      throw PropertyListError(.unsupported, "an integer of more than 64 bits", at: start)
    }
    guard let value = Double(text), value.isFinite else {
      throw PropertyListError(.unsupported, "a number outside the range of Double", at: start)
    }
    return .real(value)
  }

  private mutating func readString() throws(PropertyListError) -> String {
    cursor.index += 1
    var bytes: [UInt8] = []
    while true {
      let run = cursor.index
      while cursor.byte >= 0x20, cursor.byte != 0x22, cursor.byte != 0x5C { cursor.index += 1 }
      bytes.append(contentsOf: cursor.bytes[run..<cursor.index])
      if cursor.skip("\"") { break }
      guard cursor.skip("\\") else {
        throw cursor.failure(
          cursor.isAtEnd ? "a string without end" : "a control character in a string")
      }
      try readEscape(into: &bytes)
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  private mutating func readEscape(into bytes: inout [UInt8]) throws(PropertyListError) {
    let character = cursor.byte
    cursor.index += 1
    switch character {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): bytes.append(character)
    case UInt8(ascii: "b"): bytes.append(0x08)
    case UInt8(ascii: "f"): bytes.append(0x0C)
    case UInt8(ascii: "n"): bytes.append(0x0A)
    case UInt8(ascii: "r"): bytes.append(0x0D)
    case UInt8(ascii: "t"): bytes.append(0x09)
    case UInt8(ascii: "u"):
      var value = try readHexadecimal()
      if UTF16.isLeadSurrogate(UInt16(value)), cursor.skip("\\u") {
        let low = try readHexadecimal()
        guard UTF16.isTrailSurrogate(UInt16(low)) else {
          throw cursor.failure("an unpaired surrogate in a string")
        }
        value = 0x10000 + (value - 0xD800) << 10 + (low - 0xDC00)
      }
      guard let scalar = Unicode.Scalar(value) else {
        throw cursor.failure("an unpaired surrogate in a string")
      }
      bytes.append(contentsOf: Array(String(Character(scalar)).utf8))
    default: throw cursor.failure("an unknown escape in a string")
    }
  }

  private mutating func readHexadecimal() throws(PropertyListError) -> UInt32 {
    guard cursor.bytes.count - cursor.index >= 4 else {
      throw cursor.failure("a string without end")
    }
    var value: UInt32 = 0
    for _ in 0..<4 {
      guard let digit = Character(Unicode.Scalar(cursor.byte)).hexDigitValue, cursor.byte < 0x80
      else { throw cursor.failure("an unknown escape in a string") }
      value = value << 4 | UInt32(digit)
      cursor.index += 1
    }
    return value
  }

  /// Reads a dictionary that represents a leaf; nil, without moving, for every other dictionary.
  ///
  /// Such a dictionary is one object and no container to the writer, so to the limits too.
  private mutating func readReserved() -> PropertyListValue? {
    let start = cursor.index
    if let leaf = try? readReservedPair() { return leaf }
    cursor.index = start
    return nil
  }

  private mutating func readReservedPair() throws(PropertyListError) -> PropertyListValue? {
    let start = cursor.index
    cursor.index += 1
    cursor.skipSpace()
    let key = cursor.index
    guard cursor.skip("\"$") else { return nil }
    cursor.index = key
    let name = try readString()
    cursor.skipSpace()
    guard cursor.skip(":") else { return nil }
    cursor.skipSpace()
    let content = try readLeaf()
    cursor.skipSpace()
    guard cursor.skip("}") else { return nil }
    let value = try meaning(of: .dictionary([name: content]), at: start)
    if case .dictionary = value { return nil }
    return value
  }

  /// Returns the value that a finished container represents.
  private func meaning(
    of value: PropertyListValue, at offset: Int
  ) throws(PropertyListError) -> PropertyListValue {
    guard case .dictionary(let dictionary) = value, dictionary.count == 1,
      let (key, value) = dictionary.first
    else { return value }
    switch (key, value) {
    case (JSONPropertyList.date, .string(let text)):
      if let date = DateText.parse(text) { return .date(date) }
      if let seconds = Self.special(text) {
        return .date(Date(timeIntervalSinceReferenceDate: seconds))
      }
    case (JSONPropertyList.date, .real), (JSONPropertyList.date, .integer):
      if let seconds = value.doubleValue {
        return .date(Date(timeIntervalSinceReferenceDate: seconds))
      }
    case (JSONPropertyList.data, .string(let text)):
      if let data = Data(base64Encoded: text) { return .data(data) }
    case (JSONPropertyList.real, .string(let text)):
      if let real = Self.special(text) { return .real(real) }
    case (JSONPropertyList.date, _), (JSONPropertyList.data, _), (JSONPropertyList.real, _): break
    case _ where key.utf8.starts(with: "$$".utf8):
      return .dictionary([String(key.dropFirst()): value])
    default: return .dictionary(dictionary)
    }
    throw PropertyListError(
      .malformed, "'\(key)' with \(value.kindName) as an invalid value", at: offset)
  }

  private static func special(_ text: String) -> Double? {
    switch text {
    case "nan": .nan
    case "inf": .infinity
    case "-inf": -.infinity
    default: nil
    }
  }
}
