import TestTraits
import Testing

@testable import WormholePropertyLists

/// Keys of other letters that Swift takes for the same text.
///
/// Unicode defines a few characters as other spellings of ASCII characters: the sign for kelvin,
/// the Greek question mark and the Greek varia.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct EquivalentKeysTests {
  private static let spellings: [(ascii: UInt8, other: UInt16)] = [
    (0x4B, 0x212A), (0x3B, 0x037E), (0x60, 0x1FEF),
  ]

  private func text(_ unit: UInt16) throws -> String {
    String(Character(try #require(Unicode.Scalar(unit))))
  }

  /// One reader would take the first value, and another reader the last.
  @Test func twoSpellingsOfAKeyAreRefusedInEveryForm() throws {
    for (ascii, unit) in Self.spellings {
      let (plain, other) = (try text(UInt16(ascii)), try text(unit))
      #expect(plain == other, "Swift compares them so")
      expect(.duplicateKey) {
        _ = try JSONPropertyList.decode(Array("{\"\(plain)\":1,\"\(other)\":2}".utf8))
      }
      let objects: [[UInt8]] = [[0x51, ascii], [0x61, UInt8(unit >> 8), UInt8(unit & 0xFF)]]
      for keys in [objects, objects.reversed()] {
        let file = RawFile([[0xD2, 1, 2, 3, 4]] + keys + [[0x08], [0x09]])
        expect(.duplicateKey) { _ = try BinaryPropertyList.decode(file.bytes) }
      }
    }
  }

  /// A writer that has written a key in one spelling does not write the other spelling.
  @Test func aKeyIsFoundInItsOtherSpelling() throws {
    for (ascii, unit) in Self.spellings {
      let (plain, other) = (try text(UInt16(ascii)), try text(unit))
      // Also beyond the number of keys that are compared one by one.
      for more in [0, 1, 23, 24, 40] {
        var value: PropertyListValue = .dictionary([plain: 7])
        for index in 0..<more { value["another \(index)"] = 0 }
        let document = try BinaryDecoder().open(BinaryPropertyList.encode(value))
        for key in [plain, other] {
          #expect(try BinaryDecoder().decode(Int.self, forKey: key, from: document) == 7)
          #expect(BinaryDecoder().has(key, in: document))
          #expect(!BinaryDecoder().has(key + "x", in: document))
        }
      }
    }
  }

  @Test func theLastValueOfAKeyInTwoSpellingsIsWritten() throws {
    struct Twice: Encodable {
      let keys: [String]
      func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: PathKey.self)
        for (number, key) in keys.enumerated() {
          try container.encode(number, forKey: PathKey(stringValue: key))
        }
      }
    }
    for (ascii, unit) in Self.spellings {
      let (plain, other) = (try text(UInt16(ascii)), try text(unit))
      for keys in [[plain, other], [other, plain]] {
        let bytes = try BinaryEncoder().encode(Twice(keys: keys))
        #expect(try BinaryPropertyList.decode(bytes) == .dictionary([plain: 1]))
        #expect(try BinaryDecoder().decode([String: Int].self, from: bytes) == [plain: 1])
      }
    }
  }
}
