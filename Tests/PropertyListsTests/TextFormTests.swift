import Foundation
import TestTraits
import Testing

@testable import WormholePropertyLists

@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct TextFormTests {
  func json(_ text: String) throws -> PropertyListValue {
    try JSONPropertyList.decode(Array(text.utf8))
  }

  func xml(_ body: String) throws -> PropertyListValue {
    try XMLPropertyList.decode(Array("<plist version=\"1.0\">\(body)</plist>".utf8))
  }

  @Test(arguments: Samples.scalars + [Samples.tree, [], [:], [[:], []]], [true, false])
  func jsonCarriesEveryValue(_ value: PropertyListValue, _ isPretty: Bool) throws {
    let text = try JSONPropertyList.encode(value, pretty: isPretty)
    #expect(try json(text) == value)
    #expect(throws: Never.self) {
      try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)
    }
  }

  @Test func jsonEscapesDictionariesThatLookLikeValues() throws {
    for key in ["$date", "$data", "$real", "$$", "$$date", "$", "$x"] {
      for inner in ["x", ["$date": "y"], .date(Date(timeIntervalSinceReferenceDate: 1))]
        as [PropertyListValue]
      {
        let value: PropertyListValue = .dictionary([key: inner])
        #expect(try json(JSONPropertyList.encode(value)) == value)
        let two: PropertyListValue = .dictionary([key: inner, "other": [value]])
        #expect(try json(JSONPropertyList.encode(two)) == two)
      }
    }
    #expect(try JSONPropertyList.encode(["$date": "x"]) == #"{"$$date":"x"}"#)
  }

  /// A date, data and a real that JSON lacks are leaves, as in the other forms.
  @Test(
    arguments: [
      .date(Date(timeIntervalSinceReferenceDate: 0.5)),
      .date(Date(timeIntervalSinceReferenceDate: 1e300)), .data(Data([1, 2])), .real(.nan),
    ] as [PropertyListValue])
  func aValueThatJSONLacksIsOneObject(_ leaf: PropertyListValue) throws {
    let depth = PropertyListLimits.default.depth
    let deepest = (0..<depth).reduce(leaf) { value, _ in .array([value]) }
    #expect(try json(JSONPropertyList.encode(deepest)) == deepest)
    let value: PropertyListValue = [leaf, ["a": leaf]]
    var limits = PropertyListLimits()
    limits.objects = 5
    let text = Array(try JSONPropertyList.encode(value, pretty: true, limits: limits).utf8)
    #expect(try JSONPropertyList.decode(text, limits: limits) == value)
    limits.objects = 4
    expect(.limit(.objects)) { _ = try JSONPropertyList.decode(text, limits: limits) }
  }

  /// A dictionary with an escaped key stays a dictionary.
  @Test func anEscapedDictionaryIsAContainer() throws {
    func nested(_ depth: Int) -> String {
      let start = String(repeating: "[", count: depth)
      return start + #"{"$$date":1}"# + String(repeating: "]", count: depth)
    }
    let depth = PropertyListLimits.default.depth
    let innermost: PropertyListValue = ["$date": 1]
    let value = (1..<depth).reduce(innermost) { value, _ in .array([value]) }
    #expect(try json(nested(depth - 1)) == value)
    expect(.limit(.depth)) { _ = try json(nested(depth)) }
  }

  /// What a Swift program reads where JSON has null, and the reverse.
  @Test func jsonsNullIsNil() throws {
    struct Seat: Codable, Equatable {
      var row: Int?
      var names: [String?]
    }
    let value = try json(#"{"row": null, "names": ["a", null]}"#)
    let file = try BinaryEncoder().encode(value)
    let seat = try BinaryDecoder().decode(Seat.self, from: file)
    #expect(seat == Seat(row: nil, names: ["a", nil]))
    let back = try BinaryPropertyList.decode(BinaryEncoder().encode(["a", nil] as [String?]))
    #expect(try JSONPropertyList.encode(back) == #"["a",null]"#)
    let top = try BinaryEncoder().encode(try json("null"))
    #expect(try BinaryDecoder().decode(Int?.self, from: top) == nil)
    let dictionary = try json(##"[{"$$date": null}]"##)
    #expect(dictionary == [["$date": "$null"]])
    #expect(try JSONPropertyList.encode(dictionary) == #"[{"$$date":null}]"#)
  }

  @Test(arguments: [
    (#""$null""#, ""), (#"{"a": {"b": ["x", "$null"]}}"#, "a.b[1]"), (#"["\u0024null"]"#, "[0]"),
  ])
  func aTextThatMeansNilIsRefusedWithItsPath(_ text: String, _ path: String) throws {
    let error = try #require(throws: PropertyListError.self) { try json(text) }
    #expect(error.codingPath.pathDescription == path)
    #expect(error.kind == .unsupported)
    #expect(try json(#"{"$null": "a"}"#) == ["$null": "a"])
  }

  @Test func jsonIsWrittenForPeople() throws {
    let value: PropertyListValue = [
      "b": [1, 2.0, "x\"\n"], "a": [:], "c": .date(Date(timeIntervalSinceReferenceDate: 0.5)),
      "d": .data(Data([1, 2])), "e": .real(.nan),
    ]
    #expect(
      try JSONPropertyList.encode(value)
        == #"{"a":{},"b":[1,2.0,"x\"\n"],"c":{"$date":"2001-01-01T00:00:00.500Z"},"#
        + #""d":{"$data":"AQI="},"e":{"$real":"nan"}}"#)
    #expect(
      try JSONPropertyList.encode(["a": [1, ["b": true]], "z": []], pretty: true) == """
        {
          "a": [
            1,
            {
              "b": true
            }
          ],
          "z": []
        }

        """)
  }

  /// Terminals take some of them for orders, and some programs for ends of lines.
  @Test func jsonShowsControlCharacters() throws {
    let text = "\u{1b}\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\r\n\u{a0}\u{202f}"
    let shown = #"\u001b\u007f\u0085\u009b\u2028\u2029\r\n"# + "\u{a0}\u{202f}"
    #expect(try JSONPropertyList.encode(.string(text)) == "\"\(shown)\"")
    #expect(try json("\"\(shown)\"") == .string(text))
    #expect(text.withoutControls == shown)
  }

  /// A terminal that obeys a control shows the text around the control in a different order.
  @Test func jsonShowsBidirectionalControls() throws {
    let controls: [UInt32] =
      [0x061c, 0x200e, 0x200f] + Array(0x202a...0x202e) + Array(0x2066...0x2069)
    for value in controls {
      let text = String(Character(try #require(Unicode.Scalar(value))))
      let digits = String(value, radix: 16)
      let shown = "a\\u" + String(repeating: "0", count: 4 - digits.count) + digits + "b"
      #expect(try JSONPropertyList.encode(.string("a\(text)b")) == "\"\(shown)\"")
      #expect(try json("\"\(shown)\"") == .string("a\(text)b"))
      #expect("a\(text)b".withoutControls == shown)
    }
    // Joiners and marks of the scripts themselves are text.
    for text in ["שלום", "مرحبا", "👩\u{200d}🎬", "می\u{200c}خواهم"] {
      #expect(try JSONPropertyList.encode(.string(text)) == "\"\(text)\"")
      #expect(text.withoutControls == text)
    }
  }

  @Test func jsonReadsWhatOthersWrite() throws {
    #expect(try json(" [ 1 , -0.5e1 , \"\\ud83c\\udfac\\u00e9\\/\" ] ") == [1, -5.0, "🎬é/"])
    #expect(try json("\u{FEFF}true") == true)
    #expect(try json("18446744073709551615") == .unsigned(.max))
    #expect(try json("-9223372036854775808") == .integer(.min))
    for bad in [
      "01", "1.", ".5", "+1", "-", "1e", "\"\u{1}\"", "\"\\x\"", "{\"a\"}", "{a:1}", "[1 2]", "nul",
    ] {
      #expect(throws: PropertyListError.self, "\(bad)") { try json(bad) }
    }
  }

  @Test(arguments: Samples.scalars + [[], [:], [[:], []], Samples.wide(3)])
  func xmlCarriesEveryValueButFractionsOfSeconds(_ value: PropertyListValue) throws {
    guard let text = try? XMLPropertyList.encode(value) else {
      #expect(value.dateValue != nil)
      return
    }
    let read = try XMLPropertyList.decode(Array(text.utf8))
    if let date = value.dateValue {
      let seconds = date.timeIntervalSinceReferenceDate.rounded(.down)
      #expect(read == .date(Date(timeIntervalSinceReferenceDate: seconds)))
    } else {
      #expect(read == value)
    }
  }

  @Test func xmlReadsWhatPeopleWrite() throws {
    #expect(try xml("<!-- x --><string>a&amp;&#65;&#x1F3AC;<![CDATA[<b>]]></string>") == "a&A🎬<b>")
    #expect(try xml("<integer> -0x1F </integer>") == -31)
    #expect(try xml("<integer>18446744073709551615</integer>") == .unsigned(.max))
    #expect(try xml("<integer>-9223372036854775808</integer>") == .integer(.min))
    #expect(try xml("<data>\n\tAQ\n\tI=\n</data>").dataValue == Data([1, 2]))
    #expect(try xml("<dict><key/><array/><key>b</key><string/></dict>") == ["": [], "b": ""])
    #expect(try xml("<string>a\r\nb\rc</string>") == "a\nb\nc")
    #expect(
      try xml("<date>2001-01-01T01:00:00.5+01:00</date>")
        == .date(Date(timeIntervalSinceReferenceDate: 0.5)))
    for bad in [
      "<integer>1.5</integer>", "<integer></integer>", "<integer>-</integer>", "<real>0x1</real>",
      "<integer>--5</integer>", "<real/>", "<data>!</data>", "<date>today</date>", "<uid/>",
      "<true>x</true>", "", "x",
      "<string>", "<string><true/></string>", "<array", "<integer>18446744073709551616</integer>",
      "<key>a</key>", "<dict><key>a</key><key>b</key></dict>", "</plist>",
    ] {
      #expect(throws: PropertyListError.self, "\(bad)") { try xml(bad) }
    }
    expect(.invalidValue) { _ = try XMLPropertyList.encode("\u{1}") }
  }

  @Test func datesAgreeWithFoundation() throws {
    let formatter = ISO8601DateFormatter()
    for day in stride(from: -730_000, to: 2_900_000, by: 997) {
      let date = Date(timeIntervalSinceReferenceDate: Double(day) * 86400 + 12345)
      guard date > Date(timeIntervalSince1970: -11_000_000_000) else { continue }
      let text = try #require(DateText.format(date))
      #expect(text == formatter.string(from: date))
      #expect(DateText.parse(text) == date)
    }
    for text in [
      "2001-02-29T00:00:00Z", "2001-01-01", "2001-01-01T24:00:00Z", "2001-01-01T00:00:00",
    ] {
      #expect(DateText.parse(text) == nil)
    }
  }

  /// The seconds are counted by hand, from the first of January 2001.
  @Test(arguments: [
    ("2000-02-29T00:00:00Z", -26_524_800), ("2000-03-01T00:00:00Z", -26_438_400),
    ("1900-02-28T00:00:00Z", -3_182_284_800), ("1900-03-01T00:00:00Z", -3_182_198_400),
    ("2024-02-29T23:59:59Z", 730_943_999), ("0001-01-01T00:00:00Z", -63_113_904_000),
    ("9999-12-31T23:59:59Z", 252_423_993_599),
  ])
  func theCalendarIsGregorys(_ text: String, _ seconds: Double) {
    let date = Date(timeIntervalSinceReferenceDate: seconds)
    #expect(DateText.parse(text) == date)
    #expect(DateText.format(date) == text)
  }

  @Test(arguments: [
    "1900-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2023-02-29T00:00:00Z", "2000-02-30T00:00:00Z",
    "2001-04-31T00:00:00Z", "2001-00-01T00:00:00Z", "2001-13-01T00:00:00Z", "2001-01-00T00:00:00Z",
    "0000-12-31T00:00:00Z", "2001-01-01T24:00:00Z", "2001-01-01T23:60:00Z", "2001-01-01T23:59:60Z",
    "2001-01-01T00:00:00+24:00", "2001-01-01T00:00:00+00:60", "2001-01-01T00:00:00+1",
    "2001-01-01T00:00:00+", "2001-01-01T00:00:00.Z", "2001-01-01T00:00:00ZZ",
    "2001-01-01T00:00:00.\(String(repeating: "0", count: 31))Z", "2001-1-1T00:00:00Z",
  ])
  func whatIsNoDateIsNone(_ text: String) {
    #expect(DateText.parse(text) == nil)
    expect(.malformed) { _ = try xml("<date>\(text)</date>") }
    expect(.malformed) { _ = try json("{\"$date\": \"\(text)\"}") }
  }

  /// People and other programs write a date as seconds since the beginning of 2001, too.
  @Test(arguments: [
    ("700000000", 700_000_000), ("0", 0), ("-1", -1), ("700000000.5", 700_000_000.5),
  ])
  func aDateInJSONMayBeANumber(_ number: String, _ seconds: Double) throws {
    let date = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: seconds))
    #expect(try json("{\"$date\": \(number)}") == date)
    #expect(try json("{\"a\": [{\"$date\": \(number)}]}") == ["a": [date]])
  }

  /// India's zone has a half hour, Newfoundland's is west of Greenwich, Nepal's has three quarters.
  @Test(arguments: [
    ("2001-01-01T05:30:00+05:30", 0), ("2001-01-01T05:30:00+0530", 0),
    ("2000-12-31T20:30:00-03:30", 0), ("2000-12-31T23:30:00-00:30", 0),
    ("2001-01-01T05:45:00+05:45", 0), ("2001-01-01T00:00:00-23:59", 86_340),
    ("2001-01-01T00:00:00+23:59", -86_340), ("2001-01-01 00:00:00.5-09:30", 34_200.5),
  ])
  func zonesHaveMinutes(_ text: String, _ seconds: Double) {
    #expect(DateText.parse(text) == Date(timeIntervalSinceReferenceDate: seconds))
  }

  @Test func aTextHasNoDateBeyondTheCalendar() {
    for seconds in [-63_113_904_000.5, 252_423_993_600, .infinity, .nan] {
      #expect(DateText.format(Date(timeIntervalSinceReferenceDate: seconds)) == nil)
    }
    let last = Date(timeIntervalSinceReferenceDate: 252_423_993_599.5)
    #expect(DateText.format(last) == "9999-12-31T23:59:59.500Z")
  }

  /// RFC 8259: characters below U+0020, quotes and backslashes are escaped, and no others.
  @Test func jsonHasNoRawControlCharacters() throws {
    for byte in UInt8(0)..<0x20 {
      for text in [[byte], [0x61, byte, 0x61]] {
        refuses("a control character in a string") {
          _ = try JSONPropertyList.decode([0x22] + text + [0x22])
        }
        refuses("a control character in a string") {
          _ = try JSONPropertyList.decode(Array("{\"".utf8) + text + Array("\":1}".utf8))
        }
      }
    }
    #expect(try json("\" !\u{7F}\u{80}\u{2028}\"") == .string(" !\u{7F}\u{80}\u{2028}"))
    refuses("a string without end") { _ = try json("\"a") }
    refuses("the text ends too early") { _ = try json("[1, ") }
    refuses("no JSON value; a string needs double quotes") { _ = try json("[1, ]") }
  }

  @Test func jsonNumbersAreThoseOfTheStandard() throws {
    #expect(try json("[0, -0, 0.0, 0e0, 10, -10]") == [0, 0, 0.0, 0.0, 10, -10])
    #expect(try json("[1E2, 1e+2, 1E-2]") == [100.0, 100.0, 0.01])
    #expect(try json("9223372036854775808") == .unsigned(1 << 63))
    #expect(try json("1.7976931348623157e308") == .real(.greatestFiniteMagnitude))
    for number in ["00", "01", "-01", "007", "00.5"] {
      refuses("a number with a leading zero") { _ = try json(number) }
    }
    for number in ["18446744073709551616", "-9223372036854775809", "1" + zeros(40)] {
      refuses("an integer of more than 64 bits") { _ = try json(number) }
    }
    for number in ["1.8e308", "-1e309", "1" + zeros(400) + ".0"] {
      refuses("a number outside the range of Double") { _ = try json(number) }
    }
  }

  /// As in JSON: only a text that names infinity is read as infinity.
  @Test func anXMLRealHasTheRangeOfDouble() throws {
    #expect(try xml("<real>1.7976931348623157e308</real>") == .real(.greatestFiniteMagnitude))
    #expect(try xml("<real>1e-400</real>") == .real(0))
    for number in ["1e400", "-1e309", "1" + zeros(400), "1" + zeros(400) + ".0"] {
      refuses("a number outside the range of Double") { _ = try xml("<real>\(number)</real>") }
    }
    for (text, value) in [
      ("inf", Double.infinity), ("+infinity", .infinity), ("-inf", -.infinity),
      ("-Infinity", -.infinity), ("nan", .nan),
    ] {
      #expect(try xml("<real>\(text)</real>") == .real(value))
    }
  }

  @Test func xmlNumbersHaveSixtyFourBits() throws {
    #expect(try xml("<integer>-0x8000000000000000</integer>") == .integer(.min))
    #expect(try xml("<integer>+0xFFFFFFFFFFFFFFFF</integer>") == .unsigned(.max))
    for number in ["-9223372036854775809", "18446744073709551616", "0x10000000000000000"] {
      refuses("invalid content of 'integer'") { _ = try xml("<integer>\(number)</integer>") }
    }
  }

  @Test func xmlEntitiesAreCharactersThatItCarries() throws {
    #expect(try xml("<string>&#9;&#xA;&#13;&#32;&#xFFFD;</string>") == "\t\n\r \u{FFFD}")
    for entity in [
      "#0", "#8", "#x1F", "#11", "#xFFFE", "#xFFFF", "#xD800", "#x110000", "nbsp", "#",
    ] {
      refuses("the entity '\(entity)'") { _ = try xml("<string>&\(entity);</string>") }
    }
    for byte: UInt8 in [0, 1, 8, 0x0B, 0x1F] {
      refuses("a character that XML does not allow") {
        _ = try XMLPropertyList.decode(
          Array("<plist><string>".utf8) + [byte] + Array("</string></plist>".utf8))
      }
    }
  }

  private func zeros(_ count: Int) -> String { String(repeating: "0", count: count) }

  private func refuses(
    _ reason: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) {
    do {
      try body()
      Issue.record("no error", sourceLocation: sourceLocation)
    } catch {
      let found = (error as? PropertyListError)?.reason
      #expect(found == reason, sourceLocation: sourceLocation)
    }
  }
}
