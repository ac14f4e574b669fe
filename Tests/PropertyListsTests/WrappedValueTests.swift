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
}
