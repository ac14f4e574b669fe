import TestTraits
import Testing
import WormholePropertyLists

/// The fields of a record, in a file and as the entries of a dictionary.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct RecordFieldTests {
  @Test func everyFieldIsReadAsWritten() throws {
    let full = Account(name: "n", isOpen: true, small: -3, large: .max, tags: ["a", "b"])
    #expect(Account.fieldNames == ["name", "isOpen", "small", "large", "tags"])
    let entries: [String: PropertyListValue] = [
      "name": "n", "isOpen": true, "small": -3, "large": .unsigned(.max), "tags": ["a", "b"],
    ]
    #expect(try full.entries() == entries)
    #expect(try BinaryPropertyList.decode(full.encoded()) == .dictionary(entries))
    #expect(try Account(full.encoded()) == full)
    #expect(try Account(BinaryPropertyList.encode(.dictionary(entries))) == full)
  }

  /// Files of earlier programs lack a field that most files lack.
  @Test func aMissingFieldHasTheUsualValue() throws {
    let plain = Account()
    #expect(try plain.entries() == ["isOpen": false, "small": 0])
    #expect(try BinaryPropertyList.decode(plain.encoded()) == ["isOpen": false, "small": 0])
    #expect(try Account(plain.encoded()) == plain)
  }

  /// As with `Codable`, the text that stands for nil is another text than the same letters.
  @Test func aTextMayStandForNil() throws {
    let null = try Account(
      BinaryPropertyList.encode(["name": "$null", "isOpen": false, "small": 0]))
    #expect(null.name == nil)
    #expect(try Account(Account(name: "$null").encoded()).name == "$null")
  }

  @Test(arguments: [0, 20]) func aWrongFieldIsRefused(_ others: Int) throws {
    for (key, value, reason) in [
      ("name", 1, "at 'name': an integer where String is expected"),
      ("isOpen", 1, "at 'isOpen': an integer where Bool is expected"),
      ("small", 300, "at 'small': a number not representable as Int8"),
      ("large", -1, "at 'large': a number not representable as UInt64"),
      ("tags", ["a", 1], "at 'tags[1]': an integer where String is expected"),
    ] as [(String, PropertyListValue, String)] {
      var list: PropertyListValue = ["isOpen": false, "small": 0]
      for number in 0..<others { list["other\(number)"] = .integer(Int64(number)) }
      list[key] = value
      let bytes = try BinaryPropertyList.encode(list)
      let error = #expect(throws: PropertyListError.self) { _ = try Account(bytes) }
      let found = try #require(error)
      #expect("\(found)" == "cannot read property list " + reason)
    }
  }
}

/// A record with fields of each kind that no message has.
private struct Account: FileRecord, Equatable {
  var name: String?
  var isOpen = false
  var small: Int8 = 0
  var large: UInt64?
  var tags: [String] = []

  mutating func visit(_ fields: inout some FieldVisitor) throws {
    try fields.field("name", &name)
    try fields.field("isOpen", &isOpen)
    try fields.field("small", &small)
    try fields.field("large", &large)
    try fields.field("tags", &tags, unless: [])
  }
}
