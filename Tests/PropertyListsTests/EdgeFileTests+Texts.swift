import TestTraits
import Testing

@testable import WormholePropertyLists

extension EdgeFileTests {
  private func ascii(_ text: String) -> [UInt8] {
    let count = UInt8(text.utf8.count)
    return (count < 15 ? [0x50 | count] : [0x5F, 0x10, count]) + text.utf8
  }

  /// The bytes are checked by words, and the last ones together.
  @Test(.blocking) func eachByteOfAStringIsChecked() throws {
    for count in 1...18 {
      let object = ascii(String(repeating: "x", count: count))
      #expect(try decode(object) == .string(String(repeating: "x", count: count)))
      for place in 1...count {
        var changed = object
        changed[object.count - place] = 0x80
        refuses(.malformed, "a non-ASCII character in an ASCII string", "\(changed)") {
          _ = try decode(changed)
        }
      }
    }
  }

  /// Of so many keys, two have the same hash.
  @Test(.blocking) func keysWithOneHashAreTwoKeys() throws {
    var (known, pair): ([UInt32: Int], [Int]) = ([:], [])
    for number in 0..<1_000_000 where pair.isEmpty {
      let hash = KeyTable.hash("key number \(number)".utf8.span.bytes)
      if let other = known.updateValue(number, forKey: hash) { pair = [other, number] }
    }
    #expect(pair.count == 2)
    let keys = (pair + (1_000_000..<1_000_010)).map { ("key number \($0)", $0 == pair.first) }
    let value = PropertyListValue.dictionary(
      Dictionary(uniqueKeysWithValues: keys.map { ($0.0, .boolean($0.1)) }))
    #expect(try BinaryPropertyList.decode(BinaryPropertyList.encode(value)) == value)
  }

  /// A few keys are compared by their first eight bytes and their lengths, and by more only if both
  /// are equal.
  @Test(.blocking) func keysThatBeginAlikeAreCompared() throws {
    func file(_ keys: [String]) -> RawFile {
      let count = UInt8(keys.count)
      let references = (1...count) + [UInt8](repeating: count + 1, count: keys.count)
      return RawFile([[0xD0 | count] + references] + keys.map(ascii) + [[0x08]])
    }
    for keys in [
      ["abcdefghi", "abcdefghj"], ["abcdefgh", "abcdefghi"], ["a", "b", "ab", "ba", "", "aa"],
      (1...8).map { "key number \($0)" }, (1...9).map { "key number \($0)" },
    ] {
      let value = try decode(file(keys))
      #expect(value == .dictionary(Dictionary(uniqueKeysWithValues: keys.map { ($0, false) })))
      for key in keys where keys.count < 14 {
        refuses(.duplicateKey, "the key '\(key)' occurs twice") {
          _ = try decode(file(keys + [key]))
        }
      }
    }
  }
}
