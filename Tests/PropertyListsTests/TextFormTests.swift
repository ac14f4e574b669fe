import Foundation
import TestTraits
import Testing

@testable import PropertyLists

@Suite(.blocking) struct TextFormTests {
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
    let text = "\u{1b}\u{7f}\u{85}\u{9b}\u{2028}\u{2029}\r\n\u{a0}\u{202a}"
    let shown = #"\u001b\u007f\u0085\u009b\u2028\u2029\r\n"# + "\u{a0}\u{202a}"
    #expect(try JSONPropertyList.encode(.string(text)) == "\"\(shown)\"")
    #expect(try json("\"\(shown)\"") == .string(text))
    #expect(text.withoutControls == shown)
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
}
