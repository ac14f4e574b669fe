import WormholeContainerStorage
import TestTraits
import Testing

/// Names of people's choosing, and names of files.
@Suite(.blocking) struct EscapedNameTests {
  private static let plain = Set(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.".utf8)

  private static func hex(_ byte: UInt8) -> String {
    let digits = Array("0123456789ABCDEF")
    return "%" + String(digits[Int(byte >> 4)]) + String(digits[Int(byte & 15)])
  }

  /// Each byte that can be a name on its own, as first and as second byte of a name.
  @Test func everyByte() throws {
    for byte in UInt8(0)..<128 {
      let character = String(decoding: [byte], as: UTF8.self)
      let isPlain = Self.plain.contains(byte)
      let first = isPlain && byte != UInt8(ascii: ".") ? character : Self.hex(byte)
      let second = isPlain ? character : Self.hex(byte)
      #expect(try EscapedName.escape(character) == first)
      #expect(try EscapedName.escape("a" + character) == "a" + second)
      #expect(EscapedName.unescape(first) == character)
      #expect(EscapedName.unescape("a" + second) == "a" + character)
    }
  }

  /// A name in a command of a hint is one word of the shell.
  @Test func namesInCommandsAreQuoted() {
    for name in ["watch", "seat.a-1_b", "größe", "a/b@c"] { #expect(name.shellWord == name) }
    for (name, word) in [
      ("", "''"), ("my tv", "'my tv'"), ("it's", "'it'\\''s'"), ("$(date)", "'$(date)'"),
      ("a!", "'a!'"), ("a\nb", "'a\nb'"), ("~", "'~'"), ("*", "'*'"),
    ] {
      #expect(name.shellWord == word)
    }
  }

  /// A file name of one byte, or of one escape, decodes to a name only if the name encodes to this
  /// file name.
  @Test func onlyTheCanonicalFormIsAName() throws {
    for byte in UInt8.min ... .max {
      for file in [String(decoding: [byte], as: UTF8.self), Self.hex(byte)] {
        guard let name = EscapedName.unescape(file) else { continue }
        #expect(try EscapedName.escape(name) == file)
      }
      let isASCII = byte < 128
      let isPlain = Self.plain.contains(byte) && byte != UInt8(ascii: ".")
      #expect((EscapedName.unescape(Self.hex(byte)) != nil) == (isASCII && !isPlain))
      let isPlainLater = Self.plain.contains(byte)
      let later = EscapedName.unescape("a" + Self.hex(byte))
      #expect((later != nil) == (isASCII && !isPlainLater))
    }
    for file in [
      "", ".", "..", ".a", "%", "%4", "%4g", "%2f", "a%", "a%2", "%41", "a b", "a/b", "ä", "%C3",
      "%C3%28", "%ED%A0%80", "%F5%80%80%80", "a%2E", "+", "a~", "%%", "%25%",
    ] {
      #expect(EscapedName.unescape(file) == nil, "\(file)")
    }
  }

  @Test func namesOfAllKindsComeBack() throws {
    for name in [
      "speed", ".", "..", ".hidden", "a/b", "../../up", "tür", "🚪", "a\u{0}b", "%41", "a b", "-rf",
      "e\u{301}", "\u{FEFF}x", "\u{202E}gnp", "con", "x.plist", "line\nbreak",
    ] {
      let file = try EscapedName.escape(name)
      #expect(file.utf8.allSatisfy { Self.plain.contains($0) || $0 == UInt8(ascii: "%") })
      #expect(!file.hasPrefix("."))
      let back = try #require(EscapedName.unescape(file))
      #expect(Array(back.utf8) == Array(name.utf8))
    }
    // Equal to Swift, and two names all the same.
    #expect(try EscapedName.escape("e\u{301}") != (try EscapedName.escape("\u{e9}")))
  }

  @Test func theLengthIsBounded() throws {
    let most = EscapedName.limit
    #expect(try EscapedName.escape(String(repeating: "a", count: most)).utf8.count == most)
    #expect(try EscapedName.escape(String(repeating: " ", count: most / 3)).utf8.count == most)
    #expect(throws: EscapedName.Problem.tooLong(escaped: most + 1)) {
      try EscapedName.escape(String(repeating: "a", count: most + 1))
    }
    #expect(throws: EscapedName.Problem.tooLong(escaped: most + 3)) {
      try EscapedName.escape(String(repeating: "/", count: most / 3 + 1))
    }
    #expect(throws: EscapedName.Problem.empty) { try EscapedName.escape("") }
    #expect(EscapedName.unescape(String(repeating: "a", count: most)) != nil)
    #expect(EscapedName.unescape(String(repeating: "a", count: most + 1)) == nil)
    #expect(EscapedName.unescape(String(repeating: "a", count: 255)) == nil)
  }
}
