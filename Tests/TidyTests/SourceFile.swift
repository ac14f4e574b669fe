/// A file of the package, taken apart far enough for the house rules.
struct SourceFile: Sendable {
  /// From the package's root.
  let path: String
  /// The room, or the test target, that the file belongs to.
  let room: String
  // The rules ask each word of the package for these.
  let isSwift, isSource, isTest: Bool
  let lines: [String]
  /// The lines with comments and the contents of strings blanked out.
  let code: [String]
  /// The lines with all but comments blanked out.
  let comments: [String]
  /// The words of each line of code.
  let words: [[Word]]
  /// The modules that it imports.
  let imported: Set<String>
  let endsInNewline: Bool

  init(_ path: String, _ text: String) {
    self.path = path
    let parts = path.split(separator: "/")
    room = parts.count > 2 ? String(parts[1]) : ""
    isSwift = path.hasSuffix(".swift")
    let isTool = parts.first == "Tests" && Self.tools.contains(room)
    isSource = parts.first == "Sources" || isTool
    isTest = parts.first == "Tests" && !isTool
    let bytes = Array(text.utf8)
    endsInNewline = bytes.last == newline && bytes.dropLast().last != newline
    lines = Self.lines(bytes)
    var layers = Parts(bytes)
    if isSwift { layers.takeApart() }
    code = Self.lines(layers.code)
    comments = Self.lines(layers.comments)
    words = isSwift ? code.map(Word.words(of:)) : []
    imported = Set(code.lazy.filter { $0.contains("import") }.compactMap(Rule.imported(by:)))
  }

  /// Programs that measure and stress the library, with their parts: they are beside the tests, and
  /// the rules for sources apply to them.
  static let tools: Set = [
    "WormholeAllocationCounter", "WormholeCFloor", "WormholeBenchmarks", "WormholeStress",
    "WormholeHubProtocol", "WormholeTrial",
  ]

  private static func lines(_ bytes: [UInt8]) -> [String] {
    var lines = bytes.split(separator: newline, omittingEmptySubsequences: false)
      .map { String(decoding: $0, as: UTF8.self) }
    if lines.last == "" { lines.removeLast() }
    return lines
  }
}

private let newline = UInt8(ascii: "\n")
private let quote = UInt8(ascii: "\"")

/// Tells code, comments and strings apart; knows nested comments, raw strings and interpolation.
private struct Parts {
  let bytes: [UInt8]
  var code: [UInt8]
  var comments: [UInt8]
  private var index = 0

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    code = bytes
    comments = bytes.map { $0 == newline ? newline : UInt8(ascii: " ") }
  }

  /// The bytes with which text other than code may begin, or a parenthesis.
  private static let special = Set("/#\"()".utf8)

  mutating func takeApart() { takeCode(untilParenthesis: false) }

  private func at(_ offset: Int) -> UInt8 {
    index + offset < bytes.count ? bytes[index + offset] : 0
  }

  private func isAt(_ text: StaticString) -> Bool {
    (0..<text.utf8CodeUnitCount).allSatisfy { at($0) == text.utf8Start[$0] }
  }

  private mutating func takeCode(untilParenthesis: Bool) {
    var depth = 0
    while index < bytes.count {
      guard Self.special.contains(bytes[index]) else {
        index += 1
        continue
      }
      if isAt("//") {
        while index < bytes.count, bytes[index] != newline { takeComment() }
      } else if isAt("/*") {
        takeBlockComment()
      } else if let hashes = hashesOfString() {
        takeString(hashes)
      } else {
        if at(0) == UInt8(ascii: "(") { depth += 1 }
        if at(0) == UInt8(ascii: ")") {
          if untilParenthesis, depth == 0 { return }
          depth -= 1
        }
        index += 1
      }
    }
  }

  private mutating func takeComment() {
    comments[index] = bytes[index]
    blank()
  }

  private mutating func blank() {
    if bytes[index] != newline { code[index] = UInt8(ascii: " ") }
    index += 1
  }

  private mutating func takeBlockComment() {
    var depth = 0
    repeat {
      if isAt("/*") {
        depth += 1
        takeComment()
      } else if isAt("*/") {
        depth -= 1
        takeComment()
      }
      takeComment()
    } while depth > 0 && index < bytes.count
  }

  /// How many number signs stand before the quote that begins here; nil if none does.
  private func hashesOfString() -> Int? {
    var count = 0
    while at(count) == UInt8(ascii: "#") { count += 1 }
    return at(count) == quote ? count : nil
  }

  private func isFollowed(by hashes: Int, from offset: Int) -> Bool {
    (0..<hashes).allSatisfy { at(offset + $0) == UInt8(ascii: "#") }
  }

  private mutating func takeString(_ hashes: Int) {
    index += hashes
    let isLong = isAt("\"\"\"")
    let width = isLong ? 3 : 1
    index += width
    while index < bytes.count {
      if at(0) == UInt8(ascii: "\\"), isFollowed(by: hashes, from: 1) {
        for _ in 0...hashes { blank() }
        if at(0) == UInt8(ascii: "(") {
          index += 1
          takeCode(untilParenthesis: true)
          index += 1
        } else if index < bytes.count {
          blank()
        }
      } else if isLong ? isAt("\"\"\"") : at(0) == quote, isFollowed(by: hashes, from: width) {
        index += width + hashes
        return
      } else if at(0) == newline, !isLong {
        return
      } else {
        blank()
      }
    }
  }
}
