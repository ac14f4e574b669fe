import FoundationEssentials

/// A reader of one value in an XML property list.
struct XMLReader {
  var cursor: TextCursor
  private var stack: TreeStack

  init(cursor: TextCursor) {
    self.cursor = cursor
    stack = TreeStack(limits: cursor.limits)
  }

  mutating func read() throws(PropertyListError) -> PropertyListValue {
    try readProlog()
    try readPlistTag()
    repeat { try readItem() } while !stack.isEmpty
    try skipIgnored()
    guard cursor.skip("</plist") else { throw cursor.failure("more than one value") }
    try endTag()
    try skipIgnored()
    return try stack.value(at: cursor)
  }

  private mutating func readProlog() throws(PropertyListError) {
    cursor.skipSpace()
    let start = cursor.index
    guard cursor.byte == UInt8(ascii: "<") else {
      throw PropertyListError(.notPropertyList, "the text does not begin with a tag", at: start)
    }
    if cursor.skip("<?xml") {
      let declaration = cursor.text(try cursor.skip(behind: "?>")).lowercased()
      let utf8 = declaration.contains("utf-8") || declaration.contains("utf8")
      guard !declaration.contains("encoding") || utf8 else {
        throw PropertyListError(.unsupported, "an encoding other than UTF-8", at: start)
      }
    }
    try skipIgnored()
    if cursor.skip("<!DOCTYPE") {
      let type = try cursor.skip(behind: ">")
      guard !cursor.bytes[type].contains(UInt8(ascii: "[")) else {
        throw PropertyListError(
          .unsupported, "a document type with declarations of its own", at: type.lowerBound)
      }
      guard cursor.text(type).split(whereSeparator: \.isWhitespace).first == "plist" else {
        throw PropertyListError(.notPropertyList, "a document of another type", at: type.lowerBound)
      }
    }
    try skipIgnored()
  }

  private mutating func readPlistTag() throws(PropertyListError) {
    let start = cursor.index
    guard cursor.skip("<plist"), cursor.byte == 0x3E || TextCursor.isSpace(cursor.byte) else {
      throw PropertyListError(.notPropertyList, "the text is not a plist element", at: start)
    }
    let attributes = try cursor.skip(behind: ">")
    guard cursor.bytes[attributes].last != UInt8(ascii: "/") else {
      throw cursor.failure("no value")
    }
  }

  /// Skips space, comments and processing instructions.
  private mutating func skipIgnored() throws(PropertyListError) {
    while true {
      cursor.skipSpace()
      if cursor.skip("<!--") {
        _ = try cursor.skip(behind: "-->")
      } else if cursor.skip("<?") {
        _ = try cursor.skip(behind: "?>")
      } else {
        return
      }
    }
  }

  private mutating func endTag() throws(PropertyListError) {
    cursor.skipSpace()
    guard cursor.skip(">") else { throw cursor.failure("a tag without end") }
  }

  /// Reads a key or a leaf, or opens or closes a container.
  private mutating func readItem() throws(PropertyListError) {
    try skipIgnored()
    let start = cursor.index
    if cursor.skip("</") {
      try closeContainer(at: start)
      return
    }
    guard cursor.skip("<") else {
      throw cursor.failure(
        cursor.isAtEnd ? "the text ends too early" : "text where a tag is expected")
    }
    let name = readName()
    cursor.skipSpace()
    let isEmpty = cursor.skip("/")
    guard cursor.skip(">") else { throw cursor.failure("an unsupported tag", at: start) }
    if name == "key" {
      guard stack.isInDictionary == true, !stack.hasKey else {
        throw cursor.failure("a misplaced key", at: start)
      }
      try stack.setKey(isEmpty ? "" : try readText(name), at: start)
      return
    }
    guard stack.isInDictionary != true || stack.hasKey else {
      throw cursor.failure("a value without a key", at: start)
    }
    if name == "dict" || name == "array" {
      try stack.open(isDictionary: name == "dict", at: start)
      if isEmpty { try finish(at: start) }
    } else {
      let text = isEmpty ? "" : try readText(name)
      try stack.add(try leaf(name, text, at: start), at: start)
    }
  }

  private mutating func readName() -> String {
    let start = cursor.index
    while (0x61...0x7A).contains(cursor.byte) { cursor.index += 1 }
    return cursor.text(start..<cursor.index)
  }

  private mutating func closeContainer(at start: Int) throws(PropertyListError) {
    let name = readName()
    try endTag()
    guard let isDictionary = stack.isInDictionary, name == (isDictionary ? "dict" : "array"),
      !stack.hasKey
    else { throw cursor.failure("an unmatched end tag, or an end tag before a value", at: start) }
    try finish(at: start)
  }

  private mutating func finish(at offset: Int) throws(PropertyListError) {
    if let value = stack.close() { try stack.add(value, at: offset) }
  }
}

extension XMLReader {
  /// Reads the content of an element, and its end tag.
  private mutating func readText(_ name: String) throws(PropertyListError) -> String {
    var text = ""
    while true {
      let run = cursor.index
      while !cursor.isAtEnd, cursor.byte != 0x3C, cursor.byte != 0x26 { cursor.index += 1 }
      try append(cursor.text(run..<cursor.index), at: run, to: &text)
      if cursor.skip("</") {
        guard readName() == name else { throw cursor.failure("the end of another element") }
        try endTag()
        break
      } else if cursor.skip("<![CDATA[") {
        let section = try cursor.skip(behind: "]]>")
        try append(cursor.text(section), at: section.lowerBound, to: &text)
      } else if cursor.skip("<!--") {
        _ = try cursor.skip(behind: "-->")
      } else if cursor.skip("&") {
        text.unicodeScalars.append(try readEntity())
      } else {
        throw cursor.failure(
          cursor.isAtEnd ? "the text ends too early" : "an element inside \(name)")
      }
    }
    return text
  }

  /// Appends characters, with each line end as a line feed.
  private func append(
    _ run: String, at offset: Int, to text: inout String
  ) throws(PropertyListError) {
    var endsWithReturn = false
    for scalar in run.unicodeScalars {
      guard XMLPropertyList.isAllowed(scalar) else {
        throw cursor.failure("a character that XML does not allow", at: offset)
      }
      if scalar == "\n", endsWithReturn {
        endsWithReturn = false
        continue
      }
      endsWithReturn = scalar == "\r"
      text.unicodeScalars.append(endsWithReturn ? "\n" : scalar)
    }
  }

  private mutating func readEntity() throws(PropertyListError) -> Unicode.Scalar {
    let start = cursor.index
    while cursor.byte != 0x3B, !cursor.isAtEnd, cursor.index - start < 12 { cursor.index += 1 }
    let name = cursor.text(start..<cursor.index)
    guard cursor.skip(";") else { throw cursor.failure("an entity without end", at: start) }
    switch name {
    case "lt": return "<"
    case "gt": return ">"
    case "amp": return "&"
    case "quot": return "\""
    case "apos": return "'"
    default: break
    }
    let number =
      name.hasPrefix("#x")
      ? UInt32(name.dropFirst(2), radix: 16)
      : name.hasPrefix("#") ? UInt32(name.dropFirst()) : nil
    // Swift reads numbers with a sign, too.
    guard let number, !name.utf8.contains(UInt8(ascii: "+")), let scalar = Unicode.Scalar(number),
      XMLPropertyList.isAllowed(scalar)
    else {
      throw PropertyListError(.unsupported, "the entity '\(name)'", at: start)
    }
    return scalar
  }

  private func leaf(
    _ name: String, _ text: String, at offset: Int
  ) throws(PropertyListError) -> PropertyListValue {
    switch name {
    case "string": return .string(text)
    case "true" where text.isEmpty: return .boolean(true)
    case "false" where text.isEmpty: return .boolean(false)
    case "integer": if let value = Self.integer(Self.trimmed(text)) { return value }
    case "real":
      if let value = Self.special(Self.trimmed(text)) { return .real(value) }
      if let value = Self.real(Self.trimmed(text)) {
        guard value.isFinite else {
          throw PropertyListError(.unsupported, "a number outside the range of Double", at: offset)
        }
        return .real(value)
      }
    case "date": if let value = DateText.parse(Self.trimmed(text)) { return .date(value) }
    case "data":
      let letters = text.unicodeScalars.filter { !$0.properties.isWhitespace }
      if let value = Data(base64Encoded: String(String.UnicodeScalarView(letters))) {
        return .data(value)
      }
    default: throw cursor.failure("an unknown element", at: offset)
    }
    throw cursor.failure("invalid content of '\(name)'", at: offset)
  }

  private static func trimmed(_ text: String) -> Substring {
    var text = text[...]
    while text.first?.isWhitespace == true { text.removeFirst() }
    while text.last?.isWhitespace == true { text.removeLast() }
    return text
  }

  private static func integer(_ text: Substring) -> PropertyListValue? {
    let isNegative = text.hasPrefix("-")
    var digits = isNegative || text.hasPrefix("+") ? text.dropFirst() : text
    let isHexadecimal = digits.hasPrefix("0x") || digits.hasPrefix("0X")
    if isHexadecimal { digits = digits.dropFirst(2) }
    guard digits.first?.isHexDigit == true,
      let size = UInt64(digits, radix: isHexadecimal ? 16 : 10)
    else { return nil }
    if !isNegative { return PropertyListValue(size) }
    guard size <= Int64.min.magnitude else { return nil }
    return .integer(Int64(truncatingIfNeeded: 0 &- size))
  }

  private static func special(_ text: Substring) -> Double? {
    switch text.lowercased() {
    case "nan": .nan
    case "inf", "infinity", "+inf", "+infinity": .infinity
    case "-inf", "-infinity": -.infinity
    default: nil
    }
  }

  /// Returns a number written with digits; infinity for a number that is too large.
  private static func real(_ text: Substring) -> Double? {
    guard text.allSatisfy({ $0.isASCII && ($0.isNumber || "+-.eE".contains($0)) }) else {
      return nil
    }
    return Double(text)
  }
}
