/// An incomplete bash command line, split into words as bash would, but without expanding or
/// running anything.
struct BashLine {
  /// The words without their quotes; the last word is being typed, and is empty if it has not
  /// started.
  private(set) var words: [String] = []
  private let bytes: [UInt8]
  private var next = 0
  /// The current word, without its quotes.
  private var word: [UInt8] = []
  /// The position where the current word begins.
  private var start = 0
  private var isInside = false
  private var quoting = QuoteStyle.bare

  private enum QuoteStyle {
    case bare, single, double

    var mark: UInt8? {
      switch self {
      case .bare: nil
      case .single: UInt8(ascii: "'")
      case .double: UInt8(ascii: "\"")
      }
    }
  }

  init(_ line: String) {
    bytes = Array(line.utf8)
    while next < bytes.count, step() {}
    words.append(String(decoding: word, as: UTF8.self))
  }

  /// Returns the last word, extended to `wanted`, in the form in which bash can insert it into the
  /// line.
  ///
  /// - Parameters:
  ///   - wanted: begins with the last word.
  ///   - part: the last word as bash sees it: bash also breaks words at ':' and '=', and leaves out
  ///     a quote at the beginning.
  func completed(_ wanted: String, replacing part: String) -> String {
    // The typed text stays unchanged.
    var text = Array(bytes[start..<next])
    for byte in wanted.utf8.dropFirst(word.count) { text += quoted(byte) }
    // Only bash knows that `part` is the end of the last word, so this code computes where it
    // begins.
    var begin = max(0, bytes.count - start - part.utf8.count)
    if let quote = quoting.mark {
      // Bash closes the quote, unless the text ends with a quote; if the text begins with two
      // quotes, bash takes the first for the quote already on the line.
      if text.last == quote, text.count > next - start { text.append(quote) }
      if begin > 0, text[begin - 1] == quote, text.dropFirst(begin).first == quote { begin -= 1 }
    }
    return String(decoding: text.dropFirst(begin), as: UTF8.self)
  }

  private func quoted(_ byte: UInt8) -> [UInt8] {
    if byte < 0x20 || byte == 0x7f {
      let digits = String(byte, radix: 8)
      let code = "$'\\" + String(repeating: "0", count: 3 - digits.count) + digits + "'"
      return around(Array(code.utf8))
    }
    switch quoting {
    case .bare: return Self.isPlain(byte) ? [byte] : Array("\\".utf8) + [byte]
    case .single: return byte == UInt8(ascii: "'") ? Array(#"'\''"#.utf8) : [byte]
    case .double:
      // Bash expands history within double quotes too.
      if byte == UInt8(ascii: "!") { return around(Array("'!'".utf8)) }
      return Self.countInQuotes.contains(byte) ? Array("\\".utf8) + [byte] : [byte]
    }
  }

  /// Returns the text outside the open quotes.
  private func around(_ text: [UInt8]) -> [UInt8] {
    switch quoting {
    case .bare: text
    case .single: Array("'".utf8) + text + Array("'".utf8)
    case .double: Array("\"".utf8) + text + Array("\"".utf8)
    }
  }

  private static func isPlain(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), 0x80...:
      true
    default: "_-./,%+:=@".utf8.contains(byte)
    }
  }

  /// The characters with a special meaning within double quotes.
  private static let countInQuotes = Set("$`\"\\".utf8)

  // MARK: Reading

  /// Reads one character with its quoting; returns false if the rest is incomplete.
  private mutating func step() -> Bool {
    let byte = bytes[next]
    switch (quoting, byte) {
    case (.bare, UInt8(ascii: " ")), (.bare, UInt8(ascii: "\t")), (.bare, UInt8(ascii: "\n")):
      endWord()
      return true
    case (.bare, UInt8(ascii: "'")): quoting = .single
    case (.single, UInt8(ascii: "'")), (.double, UInt8(ascii: "\"")): quoting = .bare
    case (.bare, UInt8(ascii: "\"")): quoting = .double
    case (.bare, UInt8(ascii: "\\")), (.double, UInt8(ascii: "\\")):
      guard next + 1 < bytes.count else { return false }
      next += 1
      if quoting == .double, !Self.countInQuotes.contains(bytes[next]) { word.append(byte) }
      word.append(bytes[next])
    case (.bare, UInt8(ascii: "$")) where bytes[next...].starts(with: Array("$'".utf8)):
      return stepOverCodes()
    default: word.append(byte)
    }
    isInside = true
    next += 1
    return true
  }

  private mutating func endWord() {
    if isInside { words.append(String(decoding: word, as: UTF8.self)) }
    next += 1
    (word, isInside, start) = ([], false, next)
  }

  /// Reads `$'...'` in the form that this type writes: with codes of three octal digits.
  private mutating func stepOverCodes() -> Bool {
    var text: [UInt8] = []
    var place = next + 2
    while place < bytes.count, bytes[place] != UInt8(ascii: "'") {
      let digits = bytes[place...].dropFirst().prefix(3)
      let code = UInt8(String(decoding: digits, as: UTF8.self), radix: 8)
      if bytes[place] == UInt8(ascii: "\\"), digits.count == 3, let code {
        text.append(code)
        place += 4
      } else {
        text.append(bytes[place])
        place += 1
      }
    }
    guard place < bytes.count else { return false }
    word += text
    isInside = true
    next = place + 1
    return true
  }
}
