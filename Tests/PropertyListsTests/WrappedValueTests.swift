import TestTraits
import Testing

@testable import WormholePropertyLists

/// Values of any shape inside types that hand their encoder and decoder on.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct WrappedValueTests {
  struct Wrapper: Codable, Equatable {
    var value: PropertyListValue

    init(_ value: PropertyListValue) { self.value = value }
    init(from decoder: any Decoder) throws { value = try PropertyListValue(from: decoder) }
    func encode(to encoder: any Encoder) throws { try value.encode(to: encoder) }
  }

  static let values: [PropertyListValue] = [
    Samples.tree, 2.0, "$null", ["$null"], [2.0], ["a": 2.0],
  ]

  /// A real with a whole value stays a real, and nil stays nil.
  @Test(arguments: Samples.scalars + values)
  func aWrappedValueIsWrittenAndReadAsAWhole(_ value: PropertyListValue) throws {
    let bytes = try BinaryEncoder().encode(Wrapper(value))
    #expect(try BinaryPropertyList.encode(value) == bytes)
    #expect(try BinaryDecoder().decode(Wrapper.self, from: bytes) == Wrapper(value))
    let list = try BinaryEncoder().encode([Wrapper(value), Wrapper(value)])
    #expect(try BinaryPropertyList.decode(list) == [value, value])
    #expect(try BinaryDecoder().decode([Wrapper].self, from: list)[1] == Wrapper(value))
  }

  /// A dictionary of values is written without `Codable`, unlike one of wrapped values.
  @Test func aDictionaryOfValuesIsWrittenAndReadLikeAnyOther() throws {
    var values: [String: PropertyListValue] = [
      "scalars": Samples.tree, "nil": "$null", "K": 1, "\u{fc}": 2, "empty": [:],
    ]
    for (number, value) in Samples.scalars.enumerated() { values["scalar \(number)"] = value }
    let wrapped = values.mapValues { Wrapper($0) }
    let bytes = try BinaryEncoder().encode(wrapped)
    #expect(try BinaryEncoder().encode(values) == bytes)
    #expect(try BinaryDecoder().decode([String: PropertyListValue].self, from: bytes) == values)
    #expect(try BinaryDecoder().decode([String: Wrapper].self, from: bytes) == wrapped)
    let empty = try BinaryEncoder().encode([String: PropertyListValue]())
    #expect(try BinaryPropertyList.decode(empty) == [:])
    #expect(try BinaryDecoder().decode([String: PropertyListValue].self, from: empty) == [:])
  }

  @Test func aDictionaryOfValuesFailsLikeAnyOther() throws {
    let deep: [String: PropertyListValue] = ["a": ["b": ["c": ["d": 1]]]]
    let long: [String: PropertyListValue] = ["a": .string(String(repeating: "x", count: 1000))]
    let many: [String: PropertyListValue] = ["a": .array(Array(repeating: 7, count: 1000))]
    var limits = PropertyListLimits()
    (limits.depth, limits.bytes, limits.objects) = (3, 900, 500)
    func reason(_ value: some Encodable) throws -> String {
      let error = try #require(throws: PropertyListError.self) {
        try BinaryEncoder(limits: limits).encode(value)
      }
      return error.description
    }
    for values in [deep, long, many] {
      let (plain, wrapped) = (try reason(values), try reason(values.mapValues { Wrapper($0) }))
      #expect(plain == wrapped)
      #expect(plain.contains("'a'"), "the path to the value")
    }
    let list = try BinaryEncoder().encode([7])
    let mismatch = try #require(throws: PropertyListError.self) {
      try BinaryDecoder().decode([String: PropertyListValue].self, from: list)
    }
    #expect(mismatch.kind == .typeMismatch)
  }
}
