import Foundation
import TestTraits
import Testing

@testable import WormholePropertyLists

/// Texts and values at the edges of what the forms carry.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct TextEdgesTests {
  /// What was written within a limit can be read within the same limit.
  @Test(arguments: [false, true]) func aTextTakesTheLimitAndNoByteMore(_ isPretty: Bool) throws {
    let value: PropertyListValue = ["name": "Metropolis", "seats": [1, 2]]
    func limits(_ bytes: Int) -> PropertyListLimits {
      var limits = PropertyListLimits.default
      limits.bytes = bytes
      return limits
    }
    func check(_ encode: (PropertyListLimits) throws -> String) throws {
      let size = try encode(.default).utf8.count
      #expect(try encode(limits(size)).utf8.count == size)
      expect(.limit(.bytes)) { _ = try encode(limits(size - 1)) }
    }
    try check { try JSONPropertyList.encode(value, pretty: isPretty, limits: $0) }
    try check { try XMLPropertyList.encode(value, limits: $0) }
  }

  @Test func aTextWithoutAValueIsNoPropertyList() {
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let empty: [([UInt8], Int)] = [
      ([], 0), (Array(" \n\t".utf8), 3), (mark, 3), (mark + [0x20], 4),
    ]
    for (text, offset) in empty {
      explains(
        .notPropertyList, "cannot read property list: the text is empty (byte \(offset))"
      ) { _ = try JSONPropertyList.decode(text) }
      explains(
        .notPropertyList,
        "cannot read property list: the text does not begin with a tag (byte \(offset))"
      ) { _ = try XMLPropertyList.decode(text) }
    }
    for (text, offset) in [("plist", 0), ("\r\n {}", 3), ("&lt;plist>", 0)] {
      explains(
        .notPropertyList,
        "cannot read property list: the text does not begin with a tag (byte \(offset))"
      ) { _ = try XMLPropertyList.decode(Array(text.utf8)) }
    }
  }

  /// Property lists distinguish the two zeros, as two values of a date.
  @Test func theSignOfAZeroDateStays() throws {
    for (seconds, text) in [(0.0, #""2001-01-01T00:00:00Z""#), (-0.0, "-0.0")] {
      let date = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: seconds))
      let json = try JSONPropertyList.encode(date)
      #expect(json == "{\"$date\":\(text)}")
      #expect(try JSONPropertyList.decode(Array(json.utf8)) == date)
    }
  }

  @Test(arguments: [("nan", Double.nan), ("inf", Double.infinity), ("-inf", -Double.infinity)])
  func aMomentOutsideTimeHasAName(_ name: String, _ seconds: Double) throws {
    let date = PropertyListValue.date(Date(timeIntervalSinceReferenceDate: seconds))
    let text = "{\"$date\":\"\(name)\"}"
    #expect(try JSONPropertyList.encode(date) == text)
    #expect(try JSONPropertyList.encode(date, pretty: true) == "{\"$date\": \"\(name)\"}\n")
    #expect(try JSONPropertyList.decode(Array(text.utf8)) == date)
    let real = "{\"$real\":\"\(name)\"}"
    #expect(try JSONPropertyList.encode(.real(seconds)) == real)
    #expect(try JSONPropertyList.decode(Array(real.utf8)) == .real(seconds))
    let unknown = "{\"$date\":\"\(name)inity\"}"
    explains(
      .malformed,
      "cannot read property list: '$date' with a string as an invalid value "
        + "(byte \(unknown.utf8.count - 1))"
    ) { _ = try JSONPropertyList.decode(Array(unknown.utf8)) }
    explains(
      .invalidValue, "cannot write property list: a date outside the years 1 to 9999"
    ) { _ = try XMLPropertyList.encode(date) }
  }

  /// The array is the fourth object, and the dictionary with its key the third.
  @Test func everyFormCountsTheSameObjects() throws {
    for (value, count) in [([1, 2, 3], 4), (["a": "b"], 3)] as [(PropertyListValue, Int)] {
      let files = try PropertyListForm.allCases.map { try value.written(as: $0) }
      var limits = PropertyListLimits()
      limits.objects = count
      for (form, file) in zip(PropertyListForm.allCases, files) {
        #expect(try value.written(as: form, limits: limits) == file)
        #expect(try PropertyListValue(reading: file, limits: limits) == value)
      }
      limits.objects = count - 1
      let reason = "more than \(count - 1) objects (limit: objects)"
      for (form, file) in zip(PropertyListForm.allCases, files) {
        explains(.limit(.objects), "cannot write property list: \(reason)") {
          _ = try value.written(as: form, limits: limits)
        }
        let error = try #require(throws: PropertyListError.self) {
          try PropertyListValue(reading: file, limits: limits)
        }
        #expect(error.kind == .limit(.objects))
        #expect(error.reason == reason)
        #expect(!error.isWriting)
      }
    }
  }

  /// Nothing is shared in a text, so both limits count the same objects.
  @Test func theSmallerLimitOfATextIsNamed() throws {
    let value: PropertyListValue = [1, 2, 3]
    for (objects, reached, bound) in [(9, 3, "reached"), (3, 9, "objects"), (3, 3, "objects")] {
      var limits = PropertyListLimits()
      (limits.objects, limits.reached) = (objects, reached)
      for form in [PropertyListForm.xml, .json] {
        let text = try value.written(as: form)
        let written = try #require(throws: PropertyListError.self) {
          try value.written(as: form, limits: limits)
        }
        let read = try #require(throws: PropertyListError.self) {
          try PropertyListValue(reading: text, limits: limits)
        }
        for error in [written, read] {
          #expect(error.reason.hasSuffix("(limit: \(bound))"), "\(error)")
        }
      }
    }
  }

  @Test func anObjectTooManyIsFoundWhereItStands() {
    var limits = PropertyListLimits()
    limits.objects = 3
    let reason = "cannot read property list: more than 3 objects (limit: objects)"
    explains(.limit(.objects), "\(reason) (byte 6)") {
      _ = try JSONPropertyList.decode(Array("[1,2,3]".utf8), limits: limits)
    }
    // The key is the fourth: the boolean, the first key and its value come before it.
    explains(.limit(.objects), "\(reason) (byte 14)") {
      _ = try JSONPropertyList.decode(Array(#"[true, {"a":1,"b":2}]"#.utf8), limits: limits)
    }
    let start = "<plist><array><true/><true/><true/>"
    explains(.limit(.objects), "\(reason) (byte \(start.utf8.count))") {
      _ = try XMLPropertyList.decode(Array("\(start)<true/></array></plist>".utf8), limits: limits)
    }
    explains(.limit(.objects), "\(reason) (byte \(start.utf8.count))") {
      _ = try XMLPropertyList.decode(Array("\(start)</array></plist>".utf8), limits: limits)
    }
  }

  @Test func jsonIsRefusedInWritingToo() throws {
    var limits = PropertyListLimits()
    limits.depth = 1
    explains(
      .limit(.depth), "cannot write property list: nested more than 1 deep (limit: depth)"
    ) { _ = try JSONPropertyList.encode([[]], limits: limits) }
    limits.depth = 2
    #expect(try JSONPropertyList.encode([[]], limits: limits) == "[[]]")
    limits.bytes = 3
    explains(.limit(.bytes), "cannot write property list: more than 3 bytes (limit: bytes)") {
      _ = try JSONPropertyList.encode([[]], limits: limits)
    }
    limits.bytes = 4
    #expect(try JSONPropertyList.encode([[]], limits: limits) == "[[]]")
  }

  // MARK: Values

  @Test func equalValuesHaveEqualHashes() {
    let otherNaN = Double(nan: 5, signaling: false)
    let pairs: [(PropertyListValue, PropertyListValue)] = [
      (.real(.nan), .real(otherNaN)), (.real(.nan), .real(-.nan)),
      (
        .date(Date(timeIntervalSinceReferenceDate: .nan)),
        .date(Date(timeIntervalSinceReferenceDate: otherNaN))
      ),
      ([["a": .real(.nan)]], [["a": .real(otherNaN)]]),
      (.unsigned(5), .integer(5)), (.unsigned(1 << 63 - 1), .integer(.max)),
    ]
    for (left, right) in pairs {
      #expect(left == right)
      #expect(left.hashValue == right.hashValue)
      #expect(Set([left, right]).count == 1)
    }
    let distinct: [PropertyListValue] = [
      .real(0), .real(-0.0), .real(5), .integer(5), .unsigned(.max), .integer(-1),
      .unsigned(1 << 63), .integer(.min), .real(.nan), .real(.infinity), .string("5"),
    ]
    let set = Set(distinct + distinct)
    #expect(set.count == distinct.count)
    for value in distinct { #expect(set.contains(value)) }
    #expect(set.contains(.unsigned(5)))
  }

  @Test func anIntegerBeyondSixtyFourBitsIsNoValue() {
    #expect(PropertyListValue(Int128(UInt64.max)) == PropertyListValue.unsigned(.max))
    #expect(PropertyListValue(Int128(UInt64.max) + 1) == nil)
    #expect(PropertyListValue(Int128(Int64.min)) == PropertyListValue.integer(.min))
    #expect(PropertyListValue(Int128(Int64.min) - 1) == nil)
    if case .integer(let number)? = PropertyListValue(UInt64(5)) {
      #expect(number == 5)
    } else {
      Issue.record("a small number is not in the case of small numbers")
    }
  }

  @Test func anotherDecoderGivesTheLargestNumbers() throws {
    func read(_ text: String) throws -> PropertyListValue {
      try JSONDecoder().decode(PropertyListValue.self, from: Data(text.utf8))
    }
    #expect(try read("18446744073709551615") == .unsigned(.max))
    #expect(try read("[9223372036854775808]") == [.unsigned(1 << 63)])
    #expect(try read("9223372036854775807") == .integer(.max))
    #expect(try read("-9223372036854775808") == .integer(.min))
    for text in ["null", "[1, null]"] {
      let error = try #require(throws: DecodingError.self) { try read(text) }
      guard case .dataCorrupted(let context) = error else {
        Issue.record("another error: \(error)")
        continue
      }
      #expect(context.debugDescription == "a value that property lists do not support")
      #expect(context.codingPath.isEmpty)
    }
  }
}

/// Values that the binary writer refuses, and fields that it writes without `Codable`.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct WriterEdgesTests {
  @Test func aValueThatEncodesNothingIsNothingOnlyAtTheTop() throws {
    struct Silent: Encodable { func encode(to encoder: any Encoder) {} }
    explains(.missingValue, "cannot write property list: the value encodes nothing") {
      _ = try BinaryEncoder().encode(Silent())
    }
    let nested = ["a": [Silent(), Silent()]]
    #expect(try PropertyListValue(encoding: nested) == ["a": [[:], [:]]])
    #expect(try foundation(nested) == ["a": [[:], [:]]])
  }

  @Test func onePlaceHasOneKindOfValue() throws {
    #expect(try PropertyListValue(encoding: Shape([.list, .list])) == [])
    #expect(try PropertyListValue(encoding: Shape([.dictionary, .dictionary])) == [:])
    let reason = "two values of different kinds in the same place"
    for kinds in [
      [Shape.Kind.list, .dictionary], [.dictionary, .list], [.leaf, .dictionary], [.leaf, .list],
    ] {
      explains(.invalidValue, "cannot write property list: \(reason)") {
        _ = try BinaryEncoder().encode(Shape(kinds))
      }
      let shapes = [Shape([.leaf]), Shape(kinds), Shape([.list])]
      explains(.invalidValue, "cannot write property list at 'shapes[1]': \(reason)") {
        _ = try BinaryEncoder().encode(["shapes": shapes])
      }
    }
  }

  /// A single value replaces neither a container nor another value.
  @Test func onePlaceHasOneSingleValue() throws {
    let reason = "two values in the same place"
    for kinds in [
      [Shape.Kind.leaf, .leaf], [.list, .leaf], [.dictionary, .leaf], [.row, .leaf], [.leaf, .row],
      [.row, .row], [.dictionary, .row],
    ] {
      explains(.invalidValue, "cannot write property list: \(reason)") {
        _ = try BinaryEncoder().encode(Shape(kinds))
      }
      let shapes = [Shape([.leaf]), Shape(kinds), Shape([.list])]
      explains(.invalidValue, "cannot write property list at 'shapes[1]': \(reason)") {
        _ = try BinaryEncoder().encode(["shapes": shapes])
      }
    }
    #expect(try PropertyListValue(encoding: [Shape([.row]), Shape([.leaf])]) == [[1], "leaf"])
  }

  /// A file that lacks a part of the value is worse than none.
  @Test(arguments: [[Shape.Kind.list, .dictionary], [.list, .leaf], [.leaf, .leaf]])
  fileprivate func aConflictCannotBeSwallowed(_ kinds: [Shape.Kind]) {
    struct Swallowing: Encodable {
      let kinds: [Shape.Kind]
      func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        try? list.encode(Shape(kinds))
      }
    }
    expect(.invalidValue) { _ = try BinaryEncoder().encode(Swallowing(kinds: kinds)) }
    expect(.invalidValue) { _ = try BinaryEncoder().encode([[Swallowing(kinds: kinds)]]) }
  }

  /// As if it had not been tried: neither counted nor in the way of the next one.
  @Test func anElementThatFailedIsNotCounted() throws {
    struct Refusing: Encodable {
      func encode(to encoder: any Encoder) throws { throw CancellationError() }
    }
    final class Trying: Encodable {
      var counts: [Int] = []
      var place: [String] = []
      func encode(to encoder: any Encoder) throws {
        var list = encoder.unkeyedContainer()
        try list.encode(1)
        try? list.encode(Refusing())
        counts.append(list.count)
        place = list.superEncoder().codingPath.map { "\($0.intValue ?? -1)" }
        counts.append(list.count)
      }
    }
    let trying = Trying()
    _ = try? BinaryEncoder().encode(trying)
    #expect(trying.counts == [1, 2])
    #expect(trying.place == ["1"])
  }

  @Test func aTypesOwnRefusalKeepsItsReasonAndPlace() {
    struct Refusing: Encodable {
      func encode(to encoder: any Encoder) throws {
        throw EncodingError.invalidValue(
          7,
          EncodingError.Context(codingPath: encoder.codingPath, debugDescription: "sold out"))
      }
    }
    struct Cancelled: Encodable {
      func encode(to encoder: any Encoder) throws { throw CancellationError() }
    }
    explains(.invalidValue, "cannot write property list at 'hall[0]': sold out") {
      _ = try BinaryEncoder().encode(["hall": [Refusing()]])
    }
    #expect(throws: CancellationError.self) {
      try BinaryEncoder().encode(["hall": [Cancelled()]])
    }
  }

  @Test func anElementBeyondTheLimitIsNamed() throws {
    let row = 7
    let letters = (0..<4).map { Data(repeating: UInt8($0), count: 60) }
    func write(bytes: Int) throws -> [UInt8] {
      var limits = PropertyListLimits()
      limits.bytes = bytes
      return try BinaryEncoder(limits: limits).encode(elements: letters[1...], forKey: "values") {
        $0.add("row", row)
      }
    }
    let whole = try write(bytes: 1000)
    let values: [PropertyListValue] = [.data(letters[1]), .data(letters[2]), .data(letters[3])]
    #expect(try BinaryPropertyList.decode(whole) == ["row": 7, "values": .array(values)])
    #expect(try write(bytes: whole.count) == whole)
    // 8 bytes of magic letters, 6 and 7 of the fields before the data, and 63 of each element.
    for (bytes, index) in [(83, 0), (84, 1), (146, 1), (147, 2), (209, 2)] {
      explains(
        .limit(.bytes),
        "cannot write property list at 'values[\(index)]': "
          + "more than \(bytes) bytes (limit: bytes)"
      ) { _ = try write(bytes: bytes) }
    }
    explains(
      .limit(.bytes),
      "cannot write property list: more than \(whole.count - 1) bytes (limit: bytes)"
    ) { _ = try write(bytes: whole.count - 1) }
  }

  @Test func leavesAreWrittenOneByOne() throws {
    let (yes, no) = (true, false)
    let deep: PropertyListValue = [[1]]
    func write(depth: Int) throws -> [UInt8] {
      var limits = PropertyListLimits()
      limits.depth = depth
      return try BinaryEncoder(limits: limits).encode { leaves in
        leaves.add("yes", yes)
        leaves.add("no", no)
        try leaves.add("deep", deep)
      }
    }
    #expect(
      try BinaryPropertyList.decode(write(depth: 3)) == ["yes": true, "no": false, "deep": [[1]]])
    explains(
      .limit(.depth), "cannot write property list: nested more than 2 deep (limit: depth)"
    ) { _ = try write(depth: 2) }
  }

  @Test func aFieldMayHaveAnyCodableType() throws {
    var ticket = Ticket()
    ticket.row = 7
    ticket.isPaid = true
    ticket.seats = [3, 4]
    let bytes = try BinaryEncoder().encode { leaves in try ticket.add(to: leaves) }
    let tree: PropertyListValue = ["row": 7, "isPaid": true, "seats": [3, 4]]
    #expect(try BinaryPropertyList.decode(bytes) == tree)
    #expect(try Ticket(bytes) == ticket)
    #expect(Ticket.fieldNames == ["row", "isPaid", "seats"])
    // Also among more fields than are looked at one by one.
    var many = tree
    for index in 0..<20 { many["another \(index)"] = "x" }
    #expect(try Ticket(BinaryPropertyList.encode(many)) == ticket)
    func read(_ value: PropertyListValue) throws {
      _ = try Ticket(BinaryPropertyList.encode(value))
    }
    explains(.missingKey, "cannot read property list: no key 'seats'") {
      try read(["row": 7, "isPaid": true])
    }
    explains(
      .typeMismatch, "cannot read property list at 'isPaid': an integer where Bool is expected"
    ) { try read(["row": 7, "isPaid": 1, "seats": []]) }
    explains(
      .typeMismatch, "cannot read property list at 'seats[1]': a string where Int is expected"
    ) { try read(["row": 7, "isPaid": true, "seats": [3, "x"]]) }
  }
}

/// A value that asks its encoder for several containers, one after the other.
private struct Shape: Encodable {
  /// A row is a list that is encoded as a single value.
  enum Kind { case leaf, list, dictionary, row }

  let kinds: [Kind]

  init(_ kinds: [Kind]) { self.kinds = kinds }

  func encode(to encoder: any Encoder) throws {
    for kind in kinds {
      switch kind {
      case .leaf:
        var place = encoder.singleValueContainer()
        try place.encode("leaf")
      case .row:
        var place = encoder.singleValueContainer()
        try place.encode([1])
      case .list: _ = encoder.unkeyedContainer()
      case .dictionary: _ = encoder.container(keyedBy: PathKey.self)
      }
    }
  }
}

/// A record with fields that have no method of their own.
private struct Ticket: FileRecord, Equatable {
  var row = 0
  var isPaid = false
  var seats: [Int] = []

  mutating func visit(_ fields: inout some FieldVisitor) throws {
    try fields.field("row", &row)
    try fields.field("isPaid", &isPaid)
    try fields.field("seats", &seats)
  }
}
