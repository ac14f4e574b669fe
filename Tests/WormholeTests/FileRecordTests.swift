import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholePropertyLists

@testable import Wormhole

/// The forms of files, compared with the article that describes them and with a program in another
/// language.
@Suite(.blocking) struct FileRecordTests {
  private static let article = "../Sources/Wormhole/Wormhole.docc/TheDirectory.md"

  /// Each key of a form is a row of the article's table, and each row is a key.
  @Test(arguments: [
    ("is a channel's latest value, in an envelope:", Envelope.Header.fieldNames, ["value"]),
    (
      "The file is a dictionary, with a checksum like every other:",
      MessageFile.Header.fieldNames, ["value", "values"]
    ),
    ("A request or a message is a dictionary:", LiveFile.Header.fieldNames, ["value"]),
  ])
  func theArticleHasARowForEachKey(
    _ sentence: String, _ fields: [String], _ values: [String]
  ) throws {
    let text = try Fixture.text(Self.article)
    let parts = text.split(separator: sentence + "\n")
    try #require(parts.count == 2)
    let rows = parts[1].split(separator: "\n").prefix { $0.hasPrefix("|") }.dropFirst(2)
    let keys = rows.map { String($0.split(separator: "`")[1]) }
    let place = "TheDirectory.md, the table below '\(sentence)'"
    for key in fields + values where !keys.contains(key) {
      Issue.record("\(place) has no row for the key `\(key)`")
    }
    for key in keys where !(fields + values).contains(key) {
      Issue.record("\(place) has a row for `\(key)`, which is not in the form")
    }
    #expect(Set(keys).count == keys.count, "\(place) has a row twice")
  }

  /// The program in Python uses no other keys.
  @Test func thePeerInPythonKnowsTheKeys() throws {
    let text = try Fixture.text("python/take_part.py")
    for (variable, fields) in [
      ("changed", Envelope.Header.fieldNames), ("message", MessageFile.Header.fieldNames),
    ] {
      let block = try #require(text.split(separator: "    \(variable) = {\n").dropFirst().first)
        .split(separator: "    }\n")[0]
      let keys = block.matches(of: /"([a-zA-Z]+)":/).map { String($0.output.1) }
      #expect(keys.count > 3)
      #expect(Set(fields + ["value"]).isSuperset(of: keys))
      #expect(keys.starts(with: fields.prefix(3)))
    }
  }

  /// A header with each of its fields is read as it was written, whatever else is in the file.
  @Test(arguments: [0, 20]) func everyFieldIsReadAsWritten(_ others: Int) throws {
    var header = MessageFile.Header(
      kind: "K", sent: .init(timeIntervalSinceReferenceDate: 1), to: "watch",
      expires: .init(timeIntervalSinceReferenceDate: 2), orderingKey: "seat",
      headers: try SenderHeaders(["a": "b"], "send", "watch"),
      file: MessageFile.FileHeader(name: "f", size: 3, checksum: 4, synced: true),
      origin: ["machine": "m"], isRedelivered: true)
    let full = try BinaryPropertyList.decode(BinaryEncoder().seal(header, 7))
    for name in MessageFile.Header.fieldNames where full[name] == nil {
      Issue.record("the header in everyFieldIsReadAsWritten has no value for '\(name)'")
    }
    for _ in 0..<2 {
      var list = try BinaryPropertyList.decode(BinaryEncoder().seal(header, 7))
      for number in 0..<others { list["other\(number)"] = .integer(Int64(number)) }
      let document = try MessageFile.Document(BinaryPropertyList.encode(list), BinaryDecoder())
      #expect(document.header == header)
      header = MessageFile.Header(kind: "K", sent: header.sent, to: "watch")
    }
  }

  /// A wrong field is refused by its name, in a small dictionary and in a large one.
  @Test(arguments: [0, 20]) func aWrongFieldIsRefused(_ others: Int) throws {
    let right: PropertyListValue = [
      "kind": "K", "sent": .date(.init(timeIntervalSinceReferenceDate: 1)), "to": "watch",
      "value": 7,
    ]
    for (key, value, reason) in [
      ("kind", nil, ": no key 'kind'"),
      ("to", 1, " at 'to': an integer where String is expected"),
      ("sent", "now", " at 'sent': a string where Date is expected"),
      ("expires", "now", " at 'expires': a string where Date is expected"),
      ("file", "f", " at 'file': a string where Dictionary<String, PropertyListValue> is expected"),
      ("redelivered", 1, " at 'redelivered': an integer where Bool is expected"),
    ] as [(String, PropertyListValue?, String)] {
      var list = right
      for number in 0..<others { list["other\(number)"] = .integer(Int64(number)) }
      list[key] = value
      let bytes = try BinaryPropertyList.encode(list)
      let error = #expect(throws: PropertyListError.self) {
        _ = try MessageFile.Document(bytes, BinaryDecoder())
      }
      #expect("\(try #require(error))" == "cannot read property list" + reason)
    }
  }
}
