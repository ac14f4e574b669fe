import Foundation
import TestTraits
import Testing

@testable import WormholePropertyLists

/// Types whose coding is written by hand, in every shape that `Codable` allows.
///
/// Foundation's coders are the second opinion.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct CodableShapesTests {
  @Test func anArrayHoldsEveryPrimitiveType() throws {
    let bytes = try BinaryEncoder().encode(Row())
    #expect(try BinaryPropertyList.decode(bytes) == .array(Row.tree))
    #expect(try BinaryDecoder().decode(Row.self, from: bytes) == Row())
    #expect(try foundation(Row()) == .array(Row.tree))
    #expect(try Foundation.PropertyListDecoder().decode(Row.self, from: Data(bytes)) == Row())
  }

  @Test func anElementOfAnotherKindIsRefusedWithItsPlace() throws {
    func read(_ value: PropertyListValue, at index: Int) throws -> [String: [Row]] {
      var elements = Row.tree
      elements[index] = value
      let bytes = try BinaryPropertyList.encode(["rows": [.array(Row.tree), .array(elements)]])
      return try BinaryDecoder().decode([String: [Row]].self, from: bytes)
    }
    for index in 0..<14 {
      let error = try #require(throws: PropertyListError.self) {
        try read(.data(Data([1])), at: index)
      }
      #expect(error.kind == .typeMismatch)
      #expect(error.codingPath.pathDescription == "rows[1][\(index)]")
    }
    let integers = [
      "Int", "Int8", "Int16", "Int32", "Int64", "UInt", "UInt8", "UInt16", "UInt32", "UInt64",
    ]
    for (index, name) in integers.enumerated() {
      explains(
        .invalidValue,
        "cannot read property list at 'rows[1][\(4 + index)]': "
          + "a number not representable as \(name)"
      ) { _ = try read(0.5, at: 4 + index) }
    }
  }

  @Test func aSingleValueHasEveryWidth() throws {
    func carries<T: FixedWidthInteger & Codable>(_ type: T.Type) throws {
      let numbers = [T.min, 7, T.max]
      let bytes = try BinaryEncoder().encode(numbers)
      let tree = numbers.compactMap { PropertyListValue($0) }
      #expect(try BinaryPropertyList.decode(bytes) == .array(tree))
      #expect(try BinaryDecoder().decode([T].self, from: bytes) == numbers)
      for number in [Int128(T.min) - 1, Int128(T.max) + 1] {
        // The neighbours of the widest types are in no property list.
        guard let value = PropertyListValue(number) else { continue }
        let bytes = try BinaryPropertyList.encode(["seats": [7, value]])
        explains(
          .invalidValue,
          "cannot read property list at 'seats[1]': a number not representable as \(type)"
        ) { _ = try BinaryDecoder().decode([String: [T]].self, from: bytes) }
      }
    }
    try carries(Int.self)
    try carries(Int8.self)
    try carries(Int16.self)
    try carries(Int32.self)
    try carries(Int64.self)
    try carries(UInt.self)
    try carries(UInt8.self)
    try carries(UInt16.self)
    try carries(UInt32.self)
    try carries(UInt64.self)
  }

  /// No property list has such an integer: the encoder throws an error, and does not trap.
  @Test func anIntegerOfMoreThan64BitsIsRefused() {
    for number in [Int128(Int64.min) - 1, Int128(UInt64.max) + 1] {
      #expect(throws: PropertyListError.self) { try BinaryEncoder().encode(number) }
      #expect(throws: PropertyListError.self) { try BinaryEncoder().encode([number]) }
      #expect(throws: PropertyListError.self) { try BinaryEncoder().encode(["seats": number]) }
    }
  }

  @Test func aRawValueIsASingleValue() throws {
    struct Flag: RawRepresentable, Codable, Equatable { var rawValue: Bool }
    struct Price: RawRepresentable, Codable, Equatable { var rawValue: Double }
    let flags = [Flag(rawValue: true), Flag(rawValue: false)]
    let flagBytes = try BinaryEncoder().encode(flags)
    #expect(try BinaryPropertyList.decode(flagBytes) == [true, false])
    #expect(try BinaryDecoder().decode([Flag].self, from: flagBytes) == flags)
    let prices = [Price(rawValue: 12.5), Price(rawValue: -0.1)]
    let priceBytes = try BinaryEncoder().encode(prices)
    #expect(try BinaryPropertyList.decode(priceBytes) == [12.5, -0.1])
    #expect(try BinaryDecoder().decode([Price].self, from: priceBytes) == prices)
    let numbers = try BinaryPropertyList.encode([1, 2])
    #expect(
      try BinaryDecoder().decode([Price].self, from: numbers)
        == [Price(rawValue: 1), Price(rawValue: 2)])
    explains(
      .typeMismatch, "cannot read property list at '[0]': an integer where Bool is expected"
    ) { _ = try BinaryDecoder().decode([Flag].self, from: numbers) }
    explains(
      .typeMismatch, "cannot read property list at '[0]': a boolean where Double is expected"
    ) { _ = try BinaryDecoder().decode([Price].self, from: flagBytes) }
  }

  /// What is not nil, or not of the type, is still the next element.
  @Test func onlyWhatWasReadIsPassed() throws {
    struct Cautious: Decodable {
      init(from decoder: any Decoder) throws {
        var list = try decoder.unkeyedContainer()
        let isFirstNil = try list.decodeNil()
        #expect(!isFirstNil)
        #expect(list.currentIndex == 0)
        let narrow = try? list.decode(Int8.self)
        #expect(narrow == nil)
        let text = try? list.decode(String.self)
        #expect(text == nil)
        #expect(list.currentIndex == 0)
        #expect(try list.decode(Int16.self) == 300)
        #expect(list.currentIndex == 1)
        let isSecondNil = try list.decodeNil()
        #expect(isSecondNil)
        #expect(list.currentIndex == 2)
        #expect(list.isAtEnd)
        _ = try list.decodeNil()
      }
    }
    let bytes = try BinaryEncoder().encode(["list": [300, nil] as [Int?]])
    explains(.missingValue, "cannot read property list at 'list[2]': the array ends here") {
      _ = try BinaryDecoder().decode([String: Cautious].self, from: bytes)
    }
  }

  @Test func superclassesHaveAnyPlace() throws {
    let tree: PropertyListValue = [
      "super": 7, "base": 8, "nothing": [:], "list": [1, 9, [:], 2],
    ]
    let bytes = try BinaryEncoder().encode(Family())
    #expect(try BinaryPropertyList.decode(bytes) == tree)
    #expect(try foundation(Family()) == tree)
    // The expectations are in the type.
    _ = try BinaryDecoder().decode(Family.self, from: bytes)
    func read(_ value: PropertyListValue) throws {
      _ = try BinaryDecoder().decode([Family].self, from: BinaryPropertyList.encode(value))
    }
    explains(.missingKey, "cannot read property list at '[0]': no key 'super'") {
      try read([["base": 8, "list": []]])
    }
    explains(.missingKey, "cannot read property list at '[0]': no key 'base'") {
      try read([["super": 7, "list": []]])
    }
    explains(.missingValue, "cannot read property list at '[0].list[1]': the array ends here") {
      try read([["super": 7, "base": 8, "list": [1]]])
    }
  }

  /// A nested container may be asked for again, with other values written in between.
  @Test func aNestedContainerMayBeReopened() throws {
    struct Reopened: Encodable {
      func encode(to encoder: any Encoder) throws {
        var top = encoder.container(keyedBy: PathKey.self)
        try top.encodeNil(forKey: key("none"))
        try? top.encode(Failing(), forKey: key("seat"))
        var seat = top.nestedContainer(keyedBy: PathKey.self, forKey: key("seat"))
        try seat.encode(7, forKey: key("row"))
        var names = top.nestedUnkeyedContainer(forKey: key("names"))
        try names.encode("a")
        var sameSeat = top.nestedContainer(keyedBy: PathKey.self, forKey: key("seat"))
        try sameSeat.encode(3, forKey: key("number"))
        var sameNames = top.nestedUnkeyedContainer(forKey: key("names"))
        try sameNames.encode("b")
      }
    }
    struct Failing: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PathKey.self)
        try container.encode("gone", forKey: key("row"))
        throw CancellationError()
      }
    }
    let tree: PropertyListValue = [
      "none": "$null", "seat": ["row": 7, "number": 3], "names": ["a", "b"],
    ]
    #expect(try PropertyListValue(encoding: Reopened()) == tree)
    #expect(try foundation(Reopened()) == tree)
  }

  /// Of several values for a key the last counts, also for a container that continues it.
  @Test func aNestedContainerContinuesTheLastValueOfItsKey() throws {
    struct Replaced: Encodable {
      let number: Int?
      func encode(to encoder: any Encoder) throws {
        var top = encoder.container(keyedBy: PathKey.self)
        var first = top.nestedContainer(keyedBy: PathKey.self, forKey: key("seat"))
        try first.encode(1, forKey: key("a"))
        if let number {
          try top.encode(number, forKey: key("seat"))
        } else {
          try top.encode(["b": 2], forKey: key("seat"))
        }
        var last = top.nestedContainer(keyedBy: PathKey.self, forKey: key("seat"))
        try last.encode(3, forKey: key("c"))
      }
    }
    let replaced = try PropertyListValue(encoding: Replaced(number: nil))
    #expect(replaced == ["seat": ["b": 2, "c": 3]])
    // The number would remain, and the container disappear without a trace.
    expect(.invalidValue) { _ = try BinaryEncoder().encode(Replaced(number: 7)) }
  }

  @Test func anEncoderKnowsItsPlaceAndItsUser() throws {
    let hall = try #require(CodingUserInfoKey(rawValue: "hall"))
    let journal = Journal(hall: hall)
    var encoder = BinaryEncoder()
    encoder.userInfo[hall] = 7
    let other = Watched(journal: Journal(hall: hall))
    let bytes = try encoder.encode(["shows": [other, Watched(journal: journal)]])
    #expect(
      journal.paths == [
        "shows[1]", "shows[1].Gäste", "shows[1].Gäste[1]",
        "shows[1].Gäste[1].a key of more than fifteen letters",
        "shows[1].Gäste[1].a key of more than fifteen letters", "shows[1].Gäste[2]",
        "shows[1].base", "shows[1]",
      ])
    #expect(journal.halls == [7, 7])
    let show: PropertyListValue = [
      "Gäste": ["a", ["a key of more than fifteen letters": true], [:]], "base": [:],
    ]
    #expect(try BinaryPropertyList.decode(bytes) == ["shows": [show, show]])
  }
}

/// Expects an error of this kind with this whole text.
func explains(
  _ kind: PropertyListError.Kind, _ description: String,
  sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record("no error", sourceLocation: sourceLocation)
  } catch let error as PropertyListError {
    #expect(error.kind == kind, sourceLocation: sourceLocation)
    #expect(error.description == description, sourceLocation: sourceLocation)
  } catch {
    Issue.record("another error: \(error)", sourceLocation: sourceLocation)
  }
}

/// What Foundation's encoder writes for the same value.
func foundation(_ value: some Encodable) throws -> PropertyListValue {
  let encoder = Foundation.PropertyListEncoder()
  encoder.outputFormat = .binary
  return try BinaryPropertyList.decode(Array(try encoder.encode(value)))
}

private func key(_ name: String) -> PathKey { PathKey(stringValue: name) }

/// An array of one value of each primitive type, and nil.
private struct Row: Codable, Equatable {
  var truth = true
  var text = "seat"
  var double = -0.5
  var float: Float = 0.1
  var int = -5
  var int8 = Int8.min
  var int16 = Int16.min
  var int32 = Int32.min
  var int64 = Int64.min
  var uint: UInt = 5
  var uint8 = UInt8.max
  var uint16 = UInt16.max
  var uint32 = UInt32.max
  var uint64 = UInt64.max

  static let tree: [PropertyListValue] = [
    true, "seat", -0.5, .real(Double(Float(0.1))), -5, -128, -32768, -2_147_483_648,
    .integer(.min), 5, 255, 65535, 4_294_967_295, .unsigned(.max), "$null",
  ]

  init() {}

  init(from decoder: any Decoder) throws {
    var row = try decoder.unkeyedContainer()
    #expect(row.count == 15)
    truth = try row.decode(Bool.self)
    text = try row.decode(String.self)
    double = try row.decode(Double.self)
    float = try row.decode(Float.self)
    int = try row.decode(Int.self)
    int8 = try row.decode(Int8.self)
    int16 = try row.decode(Int16.self)
    int32 = try row.decode(Int32.self)
    int64 = try row.decode(Int64.self)
    uint = try row.decode(UInt.self)
    uint8 = try row.decode(UInt8.self)
    uint16 = try row.decode(UInt16.self)
    uint32 = try row.decode(UInt32.self)
    uint64 = try row.decode(UInt64.self)
    #expect(!row.isAtEnd)
    let isNil = try row.decodeNil()
    #expect(isNil)
    #expect(row.isAtEnd)
  }

  func encode(to encoder: any Encoder) throws {
    var row = encoder.unkeyedContainer()
    #expect(row.count == 0)
    try row.encode(truth)
    try row.encode(text)
    try row.encode(double)
    try row.encode(float)
    try row.encode(int)
    try row.encode(int8)
    try row.encode(int16)
    try row.encode(int32)
    try row.encode(int64)
    try row.encode(uint)
    try row.encode(uint8)
    try row.encode(uint16)
    try row.encode(uint32)
    try row.encode(uint64)
    try row.encodeNil()
    #expect(row.count == 15)
  }
}

/// A dictionary and an array with values of superclasses in them.
private struct Family: Codable {
  init() {}

  init(from decoder: any Decoder) throws {
    let top = try decoder.container(keyedBy: PathKey.self)
    let parent = try top.superDecoder()
    #expect(parent.codingPath.last?.stringValue == "super")
    #expect(try Int8(from: parent) == 7)
    let base = try top.superDecoder(forKey: key("base"))
    #expect(base.codingPath.last?.stringValue == "base")
    #expect(try Int16(from: base) == 8)
    var list = try top.nestedUnkeyedContainer(forKey: key("list"))
    #expect(try list.decode(Int.self) == 1)
    let element = try list.superDecoder()
    #expect(element.codingPath.pathDescription.hasSuffix("list[1]"))
    #expect(try Int32(from: element) == 9)
    let empty = try list.superDecoder().container(keyedBy: PathKey.self)
    #expect(empty.allKeys.isEmpty)
    #expect(list.currentIndex == 3)
    #expect(try list.decode(UInt.self) == 2)
  }

  func encode(to encoder: any Encoder) throws {
    var top = encoder.container(keyedBy: PathKey.self)
    try Int8(7).encode(to: top.superEncoder())
    try Int16(8).encode(to: top.superEncoder(forKey: key("base")))
    _ = top.superEncoder(forKey: key("nothing"))
    var list = top.nestedUnkeyedContainer(forKey: key("list"))
    try list.encode(1)
    try Int32(9).encode(to: list.superEncoder())
    _ = list.superEncoder()
    try list.encode(2)
  }
}

/// What the encoders of a value said.
private final class Journal {
  let hall: CodingUserInfoKey
  var paths: [String] = []
  var halls: [Int?] = []

  init(hall: CodingUserInfoKey) { self.hall = hall }

  func note(_ path: [any CodingKey]) { paths.append(path.pathDescription) }

  func note(_ encoder: any Encoder) {
    note(encoder.codingPath)
    halls.append(encoder.userInfo[hall] as? Int)
  }
}

/// A value that looks where it is, in containers of every shape.
private struct Watched: Encodable {
  let journal: Journal

  func encode(to encoder: any Encoder) throws {
    journal.note(encoder)
    var top = encoder.container(keyedBy: PathKey.self)
    var list = top.nestedUnkeyedContainer(forKey: key("Gäste"))
    journal.note(list.codingPath)
    try list.encode("a")
    var guest = list.nestedContainer(keyedBy: PathKey.self)
    journal.note(guest.codingPath)
    try guest.encode(Entry(journal: journal), forKey: key("a key of more than fifteen letters"))
    journal.note(list.superEncoder().codingPath)
    journal.note(top.superEncoder(forKey: key("base")).codingPath)
    journal.note(top.codingPath)
  }

  struct Entry: Encodable {
    let journal: Journal

    func encode(to encoder: any Encoder) throws {
      journal.note(encoder)
      var place = encoder.singleValueContainer()
      journal.note(place.codingPath)
      try place.encode(true)
    }
  }
}
