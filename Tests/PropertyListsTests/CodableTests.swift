import FoundationEssentials
import TestTraits
import Testing

@testable import WormholePropertyLists

@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct CodableTests {
  struct Message: Codable, Equatable {
    var id: Int
    var name: String
    var sent: Date
    var price: Double
    var isRead: Bool
  }

  struct Envelope<T: Codable & Equatable>: Codable, Equatable {
    var version: Int
    var sent: Date
    var from: String
    var value: T?
  }

  enum Payload: Codable, Equatable {
    case none
    case text(String, size: Int)
    indirect case nested(Payload)
  }

  enum Day: String, Codable, CodingKeyRepresentable { case monday, tuesday }

  struct Everything: Codable, Equatable {
    var int8: Int8 = -8
    var int16: Int16 = -16
    var int32: Int32 = -32
    var int64 = Int64.min
    var uint8: UInt8 = 8
    var uint16: UInt16 = 16
    var uint32: UInt32 = 32
    var uint64 = UInt64.max
    var uint: UInt = 3
    var float: Float = 0.1
    var double = 0.1
    var data = Data([1, 2, 3])
    var missing: String?
    var present: String? = "here"
    var optionals: [Int?] = [1, nil, 3]
    var byNumber = [1: "one", -2: "two"]
    var byDay: [Day: [Day]] = [.monday: [.tuesday]]
    var byDouble: [Double: String] = [1.5: "x"]
    var payloads: [Payload] = [.none, .text("a", size: 1), .nested(.nested(.none))]
    var empty = Empty()
    var value = Samples.tree
    var set: Set<String> = ["a", "b"]
    var long = String(repeating: "é", count: 40)
    var url = Wrapped(text: "w")
  }

  struct Empty: Codable, Equatable {}

  struct Wrapped: Codable, Equatable, RawRepresentable {
    var text: String
    var rawValue: String { text }
    init(text: String) { self.text = text }
    init?(rawValue: String) { text = rawValue }
  }

  func roundTrip<T: Codable & Equatable>(
    _ value: T, sourceLocation: SourceLocation = #_sourceLocation
  ) throws {
    let bytes = try BinaryEncoder().encode(value)
    let read = try BinaryDecoder().decode(T.self, from: bytes)
    #expect(read == value, sourceLocation: sourceLocation)
  }

  @Test func carriesEveryType() throws {
    try roundTrip(Everything())
    try roundTrip([Everything(), Everything()])
    try roundTrip(Empty())
  }

  @Test func carriesFragments() throws {
    try roundTrip(1.5)
    try roundTrip("text")
    try roundTrip(Data([1]))
    try roundTrip(Date(timeIntervalSinceReferenceDate: 0.125))
    try roundTrip(true)
    try roundTrip(UInt64.max)
    try roundTrip(Float.infinity)
    try roundTrip(Int?.none)
    try roundTrip(Int?.some(4))
    try roundTrip([String: Int]())
    try roundTrip(Day.monday)
    try roundTrip(Samples.tree)
  }

  @Test func carriesEnvelopes() throws {
    func envelope<T: Codable & Equatable>(_ value: T?) throws {
      try roundTrip(
        Envelope(
          version: 1, sent: Date(timeIntervalSinceReferenceDate: 7.5), from: "a", value: value))
    }
    try envelope(1)
    try envelope("x")
    try envelope(Samples.tree)
    try envelope(Data([1, 2]))
    try envelope([Samples.tree, 1, "x"])
    try envelope(Int?.none)
    try envelope(["a": Envelope(version: 2, sent: Date(), from: "b", value: 1)])
  }

  @Test func nestedAndSuperContainers() throws {
    let animal = Cat(name: "Minka", lives: 9)
    let bytes = try BinaryEncoder().encode(animal)
    #expect(
      try BinaryPropertyList.decode(bytes) == [
        "super": ["name": "Minka"], "deep": ["lives": 9, "list": [1, ["x": 2], [3]]],
      ])
    let read = try BinaryDecoder().decode(Cat.self, from: bytes)
    #expect(read.name == "Minka" && read.lives == 9)
  }

  @Test func classAndSuperclassMayShareAContainer() throws {
    let bytes = try BinaryEncoder().encode(Dog(name: "Rex", age: 3))
    #expect(try BinaryPropertyList.decode(bytes) == ["name": "Rex", "age": 3])
  }

  @Test func theLastOfTwoValuesForAKeyCounts() throws {
    struct Twice: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PathKey.self)
        for index in 0..<20 { try container.encode(index, forKey: PathKey(intValue: index % 10)) }
        try? container.encode(Failing(), forKey: PathKey(stringValue: "failing"))
      }
    }
    struct Failing: Encodable {
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PathKey.self)
        try container.encode(1, forKey: .super)
        throw CancellationError()
      }
    }
    let value = try BinaryPropertyList.decode(BinaryEncoder().encode(Twice()))
    #expect(
      value
        == .dictionary(.init(uniqueKeysWithValues: (0..<10).map { ("\($0)", .integer($0 + 10)) })))
  }

  /// The keys beyond the first 24 are found by an index.
  @Test func theLastOfManyKeysIsFoundFirst() throws {
    struct Many: Encodable {
      let count: Int
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PathKey.self)
        for index in 1..<count { try container.encode(0, forKey: PathKey(intValue: index)) }
        try container.encode(count, forKey: PathKey(stringValue: "last"))
      }
    }
    struct Last: Decodable { var last: Int }
    for count in 23...26 {
      let bytes = try BinaryEncoder().encode(Many(count: count))
      #expect(try BinaryDecoder().decode(Last.self, from: bytes).last == count)
    }
  }

  @Test func errorsNameTheWay() throws {
    let bytes = try BinaryPropertyList.encode([
      "messages": [
        ["id": 1, "name": "a", "sent": .date(Date()), "price": 1, "isRead": true],
        ["id": "one", "name": "a", "sent": .date(Date()), "price": 1, "isRead": true],
      ]
    ])
    struct Box: Decodable { var messages: [Message] }
    do {
      _ = try BinaryDecoder().decode(Box.self, from: bytes)
      Issue.record("no error")
    } catch let error as PropertyListError {
      #expect(error.kind == .typeMismatch)
      #expect(
        error.description
          == "cannot read property list at 'messages[1].id': a string where Int is expected")
    }
    expect(.missingKey) { _ = try BinaryDecoder().decode(Message.self, from: bytes) }
    expect(.missingKey) {
      let document = try BinaryDecoder().open(bytes)
      _ = try BinaryDecoder().decode(Int.self, requiredKey: "value", from: document)
    }
    expect(.invalidValue) {
      _ = try PropertyListValue.integer(300).decode(UInt8.self)
    }
    expect(.missingValue) { _ = try PropertyListValue.array([]).decode(Pair.self) }
    expect(.limit(.depth)) { _ = try BinaryEncoder().encode(Endless()) }
  }

  struct Pair: Decodable {
    init(from decoder: any Decoder) throws {
      var container = try decoder.unkeyedContainer()
      _ = try container.decode(Int.self)
    }
  }

  struct Endless: Encodable {
    func encode(to encoder: any Encoder) throws {
      var container = encoder.unkeyedContainer()
      try container.encode(self)
    }
  }

  @Test func largeDictionariesAreFoundInAnyOrder() throws {
    let value = Dictionary(uniqueKeysWithValues: (0..<500).map { ("key \($0)", $0) })
    try roundTrip(value)
    struct Some: Decodable {
      var first: Int
      var last: Int
      var absent: Int?
      enum CodingKeys: String, CodingKey {
        case last = "key 499"
        case first = "key 0"
        case absent
      }
    }
    let some = try BinaryDecoder().decode(Some.self, from: BinaryEncoder().encode(value))
    #expect(some.first == 0 && some.last == 499 && some.absent == nil)
  }

  class Animal: Codable {
    var name: String
    init(name: String) { self.name = name }
  }

  final class Dog: Animal {
    var age: Int
    init(name: String, age: Int) {
      self.age = age
      super.init(name: name)
    }
    required init(from decoder: any Decoder) throws { throw CancellationError() }
    override func encode(to encoder: any Encoder) throws {
      try super.encode(to: encoder)
      var container = encoder.container(keyedBy: PathKey.self)
      try container.encode(age, forKey: PathKey(stringValue: "age"))
    }
  }

  final class Cat: Animal {
    var lives: Int
    enum CodingKeys: CodingKey { case deep, lives, list }

    init(name: String, lives: Int) {
      self.lives = lives
      super.init(name: name)
    }

    required init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: CodingKeys.self)
      let deep = try container.nestedContainer(keyedBy: CodingKeys.self, forKey: .deep)
      lives = try deep.decode(Int.self, forKey: .lives)
      var list = try deep.nestedUnkeyedContainer(forKey: .list)
      #expect(try list.decode(Int.self) == 1)
      _ = try list.nestedContainer(keyedBy: CodingKeys.self)
      var inner = try list.nestedUnkeyedContainer()
      #expect(try inner.decode(Int8.self) == 3)
      #expect(inner.codingPath.pathDescription == "deep.list[2]")
      try super.init(from: container.superDecoder())
    }

    override func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: CodingKeys.self)
      var deep = container.nestedContainer(keyedBy: CodingKeys.self, forKey: .deep)
      let parent = container.superEncoder()
      var list = deep.nestedUnkeyedContainer(forKey: .list)
      try list.encode(1)
      try deep.encode(lives, forKey: .lives)
      var item = list.nestedContainer(keyedBy: PathKey.self)
      var inner = list.nestedUnkeyedContainer()
      try super.encode(to: parent)
      try inner.encode(Int8(3))
      try item.encode(2, forKey: PathKey(stringValue: "x"))
    }
  }

  /// Nil is written as the text `$null`, for want of anything else.
  @Test func aTextThatLooksLikeNilIsNone() throws {
    struct Texts: Codable, Equatable {
      var one: String? = "$null"
      var other: String?
      var all: [String?] = ["$null", nil, "null", "short", "$nul1"]
    }
    let bytes = try BinaryEncoder().encode(Texts())
    #expect(try BinaryDecoder().decode(Texts.self, from: bytes) == Texts())
    let text = try BinaryEncoder().encode(["$null"])
    #expect(try BinaryDecoder().decode([String?].self, from: text) == ["$null"])
    #expect(try BinaryDecoder().decode([String].self, from: text) == ["$null"])
    let none = try BinaryEncoder().encode([String?.none])
    #expect(try BinaryDecoder().decode([String?].self, from: none) == [nil])
    // Through a value of any shape nil stays nil.
    let tree = try BinaryPropertyList.decode(none)
    #expect(try BinaryDecoder().decode([String?].self, from: BinaryEncoder().encode(tree)) == [nil])
  }

  /// Foundation's decoders report a value not found, and not a string, in this case.
  @Test func nilInPlaceOfAValueIsAMissingValue() throws {
    let list = try BinaryEncoder().encode(["seats": [1, nil] as [Int?]])
    explains(
      .missingValue, "cannot read property list at 'seats[1]': null where Int is expected"
    ) { _ = try BinaryDecoder().decode([String: [Int]].self, from: list) }
    let none = try BinaryEncoder().encode(["seat": Int?.none])
    explains(
      .missingValue, "cannot read property list at 'seat': null where Bool is expected"
    ) { _ = try BinaryDecoder().decode([String: Bool].self, from: none) }
    expect(.missingValue) { _ = try BinaryDecoder().decode([String: [Int]].self, from: none) }
    let text = try BinaryEncoder().encode(["seat": "$null"])
    explains(
      .typeMismatch, "cannot read property list at 'seat': a string where Bool is expected"
    ) { _ = try BinaryDecoder().decode([String: Bool].self, from: text) }
  }

  @Test(arguments: ["x", "ü"]) func aStringMayBeAsLongAsAFile(character: String) throws {
    // Made of pieces, in a hundredth of the time.
    let piece = String(repeating: character, count: 1024)
    let text = String(repeating: piece, count: (17 << 10) / character.utf8.count)
    let bytes = try BinaryEncoder().encode([text])
    #expect(try BinaryDecoder().decode([String].self, from: bytes) == [text])
    #expect(try BinaryPropertyList.decode(bytes) == [.string(text)])
  }
}
