import TestTraits
import Testing

@testable import WormholePropertyLists

/// The order of tags in XML, and the ends of lines.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct XMLStructureTests {
  private func decode(_ text: String) throws -> PropertyListValue {
    try XMLPropertyList.decode(Array(text.utf8))
  }

  @Test func nothingButSpaceAndRemarksFollowsTheEnd() throws {
    let whole = "<plist><true/></plist>"
    for rest in ["", "\r\n", " <!-- no value --> ", "\n<?remark x?>\n<!---->"] {
      #expect(try decode(whole + rest) == true)
    }
    for (rest, space) in [("x", 0), (" x", 1), (whole, 0), ("\n<true/>", 1), ("\u{0}", 0)] {
      explains(
        .malformed,
        "cannot read property list: text after the end (byte \(whole.utf8.count + space))"
      ) { _ = try decode(whole + rest) }
    }
  }

  /// The second key would otherwise replace the first, and a value would be lost.
  @Test func aKeyFollowsNoKey() throws {
    let start = "<plist><dict><key>a</key>"
    let good = "\(start)<true/><key>b</key><false/></dict></plist>"
    #expect(try decode(good) == ["a": true, "b": false])
    for rest in ["<key>b</key><true/></dict></plist>", "<key/><true/></dict></plist>"] {
      explains(
        .malformed, "cannot read property list: a misplaced key (byte \(start.utf8.count))"
      ) { _ = try decode(start + rest) }
    }
    explains(.malformed, "cannot read property list: a misplaced key (byte 14)") {
      _ = try decode("<plist><array><key>a</key></array></plist>")
    }
    explains(.malformed, "cannot read property list: a misplaced key (byte 7)") {
      _ = try decode("<plist><key>a</key></plist>")
    }
  }

  /// A carriage return is a line end, alone or with the one line feed behind it.
  @Test func everyLineEndIsOneLineFeed() throws {
    for (text, lines) in [
      ("a\r\nb", "a\nb"), ("a\r\n\nb", "a\n\nb"), ("a\r\n\r\nb", "a\n\nb"), ("a\r\rb", "a\n\nb"),
      ("a\r\r\nb", "a\n\nb"), ("a\n\rb", "a\n\nb"), ("a\n\nb", "a\n\nb"),
      // What was written as a character is no line end, and a tag comes between two of them.
      ("a&#13;\nb", "a\r\nb"), ("a\r&#10;b", "a\n\nb"), ("a\r<![CDATA[\nb]]>", "a\n\nb"),
      ("<![CDATA[a\r\n\nb]]>", "a\n\nb"),
    ] {
      #expect(try decode("<plist><string>\(text)</string></plist>") == .string(lines))
      let dictionary = try decode("<plist><dict><key>\(text)</key><true/></dict></plist>")
      #expect(dictionary == .dictionary([lines: true]))
    }
  }

  /// Every reader takes a carriage return for a line end, unless it was written as an entity.
  @Test func aCarriageReturnIsWrittenAsAnEntity() throws {
    let text = try XMLPropertyList.encode("a\r\nb")
    #expect(text.hasSuffix("<string>a&#13;\nb</string>\n</plist>\n"))
    for line in ["\r", "a\rb", "a\r\nb", "a\n\rb\r"] {
      let value = PropertyListValue.dictionary([line: [.string(line)]])
      let text = try XMLPropertyList.encode(value)
      #expect(!text.utf8.contains(UInt8(ascii: "\r")))
      #expect(try decode(text) == value)
    }
  }

  /// An entity has digits alone: no sign belongs to its number.
  @Test func anEntityHasNoSign() throws {
    #expect(try decode("<plist><string>&#65;&#x41;</string></plist>") == "AA")
    for entity in ["#+65", "#x+41", "#-0", "#x-0", "#X41"] {
      refuses(.unsupported, "the entity '\(entity)'") {
        _ = try decode("<plist><string>&\(entity);</string></plist>")
      }
    }
  }
}
