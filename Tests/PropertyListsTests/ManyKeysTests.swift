import TestSupport
import TestTraits
import Testing

@testable import WormholePropertyLists

/// Keys that are looked up in a table: many of them, long ones, and those of the previous
/// dictionary.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct ManyKeysTests {
  private func ascii(_ text: String) -> [UInt8] {
    let count = UInt8(text.utf8.count)
    return (count < 15 ? [0x50 | count] : [0x5F, 0x10, count]) + text.utf8
  }

  /// A dictionary with these keys, all with the value false.
  private func file(_ keys: [String]) -> RawFile {
    let count = UInt8(keys.count)
    let head: [UInt8] = [0xDF, 0x10, count]
    let references = Array(1...count) + [UInt8](repeating: count + 1, count: keys.count)
    return RawFile([head + references] + keys.map(ascii) + [[0x08]])
  }

  private func decode(_ file: RawFile) throws -> PropertyListValue {
    try BinaryPropertyList.decode(file.bytes)
  }

  /// The number of objects that the file's last bytes state.
  private func objectCount(_ bytes: [UInt8]) -> Int {
    bytes[(bytes.count - 24)..<(bytes.count - 16)].reduce(0) { $0 << 8 | Int($1) }
  }

  /// The table grows at the ninth key, and again at the seventeenth and the thirty-third.
  @Test func aKeyIsKnownHoweverOftenTheTableHasGrown() throws {
    let keys = (0..<40).map { "key \($0)" }
    let value = PropertyListValue.dictionary(
      Dictionary(uniqueKeysWithValues: keys.map { ($0, PropertyListValue.boolean(false)) }))
    #expect(try decode(file(keys)) == value)
    for key in keys {
      refuses(.duplicateKey, "the key '\(key)' occurs twice") {
        _ = try decode(file(keys + [key]))
      }
    }
    // The writer finds them too: each key is written once.
    let bytes = try BinaryPropertyList.encode([value, value])
    #expect(objectCount(bytes) == 1 + 2 + 40 + 2 * 40)
    #expect(try BinaryPropertyList.decode(bytes) == [value, value])
  }

  /// The table of a thousand keys takes 16 kilobytes.
  @Test(.notSanitized("a sanitizer keeps freed memory")) func noTableIsLeft() throws {
    let outcome = try run(.encodeOften(keys: 1000, times: 500))
    let growth = try #require(Int(outcome.output.dropLast()), "\(outcome.errors)")
    #expect(growth < 4000, "in kilobytes")
  }

  @Test(arguments: [1, 14, 15, 16, 255, 256, 65_535, 65_536])
  func aKeyOfAnyLengthIsOneKey(_ length: Int) throws {
    struct Twice: Encodable {
      let key: String
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PathKey.self)
        try container.encode(1, forKey: PathKey(stringValue: key))
        try container.encode(2, forKey: PathKey(stringValue: key))
      }
    }
    let key = String(repeating: "k", count: length)
    let bytes = try BinaryEncoder().encode(Twice(key: key))
    #expect(try BinaryPropertyList.decode(bytes) == .dictionary([key: 2]))
    #expect(objectCount(bytes) == 4, "the key, both numbers and the dictionary")
  }

  /// Equally many keys are not yet the same keys.
  @Test func eachDictionaryIsCheckedForItsOwnKeys() throws {
    let (a, b, again): (UInt8, UInt8, UInt8) = (3, 4, 5)
    func file(_ first: [UInt8], _ second: [UInt8]) -> RawFile {
      let dictionaries: [[UInt8]] = [first, second].map { [0xD2] + $0 + [6, 6] }
      let keys = ["a", "b", "a"].map(ascii)
      return RawFile([[0xA2, 1, 2]] + dictionaries + keys + [[0x08]])
    }
    let both: PropertyListValue = ["a": false, "b": false]
    #expect(try decode(file([a, b], [again, b])) == [both, both])
    for (first, second) in [([a, again], [a, b]), ([a, b], [a, again])] {
      refuses(.duplicateKey, "the key 'a' occurs twice") { _ = try decode(file(first, second)) }
    }
  }

  /// The keys of the previous dictionary in another order, and then the same again.
  @Test func eachDictionaryHasItsOwnValues() throws {
    let file = RawFile([
      [0xA3, 1, 2, 3], [0xD2, 4, 5, 6, 7], [0xD2, 5, 4, 6, 7], [0xD2, 5, 4, 7, 6], ascii("a"),
      ascii("b"), [0x08], [0x09],
    ])
    #expect(
      try decode(file) == [
        ["a": false, "b": true], ["a": true, "b": false], ["a": false, "b": true],
      ])
  }
}
