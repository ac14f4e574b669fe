import FoundationEssentials
import PropertyListFuzzing
import TestTraits
import Testing

@testable import WormholePropertyLists

@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct HostileFileTests {
  typealias Kind = PropertyListError.Kind

  /// The expected error of each file of `Fixtures/PropertyLists/hostile`.
  static let expected: [String: Kind] = [
    "deep-nesting.plist": .limit(.depth),
    "shared-reference-bomb.plist": .limit(.reached),
    "junk-after-the-letters.plist": .malformed,
    "empty.plist": .notPropertyList,
    "letters-only.plist": .malformed,
    "later-version.plist": .malformed,
    "uid.plist": .unsupported,
    "null.plist": .unsupported,
    "set.plist": .unsupported,
    "key-that-is-a-number.plist": .unsupported,
    "key-twice.plist": .duplicateKey,
    "key-twice-as-two-objects.plist": .duplicateKey,
    "key-twice-in-two-encodings.plist": .duplicateKey,
    "array-in-itself.plist": .malformed,
    "arrays-in-each-other.plist": .malformed,
    "overlapping-objects.plist": .malformed,
    "same-offset-twice.plist": .malformed,
    "offset-outside.plist": .malformed,
    "offset-in-the-letters.plist": .malformed,
    "reference-outside.plist": .malformed,
    "top-outside.plist": .malformed,
    "no-objects.plist": .malformed,
    "count-too-large.plist": .limit(.objects),
    "count-and-size-overflow.plist": .limit(.objects),
    "table-outside.plist": .malformed,
    "table-in-the-letters.plist": .malformed,
    "garbage-before-the-trailer.plist": .malformed,
    "garbage-after-the-trailer.plist": .checksum,
    "offsets-of-nine-bytes.plist": .malformed,
    "references-of-no-bytes.plist": .malformed,
    "string-too-long.plist": .malformed,
    "string-of-huge-count.plist": .malformed,
    "utf16-of-huge-count.plist": .malformed,
    "dictionary-of-huge-count.plist": .malformed,
    "count-that-is-a-string.plist": .malformed,
    "count-of-sixteen-bytes.plist": .malformed,
    "ascii-that-is-not.plist": .malformed,
    "utf16-half-a-pair.plist": .malformed,
    "utf16-halves-swapped.plist": .malformed,
    "integer-of-32-bytes.plist": .malformed,
    "integer-of-128-bits.plist": .unsupported,
    "real-of-two-bytes.plist": .malformed,
    "date-of-four-bytes.plist": .malformed,
    "unknown-kind.plist": .malformed,
    "flipped-bit.plist": .checksum,
    "flipped-bit-in-the-mark.plist": .checksum,
    "mark-without.plist": .checksum,
    "sort-version.plist": .checksum,
    "entities.xml": .unsupported,
    "external-entity.xml": .unsupported,
    "unknown-entity.xml": .unsupported,
    "deep-nesting.xml": .limit(.depth),
    "key-twice.xml": .duplicateKey,
    "value-without-key.xml": .malformed,
    "key-without-value.xml": .malformed,
    "crossed-tags.xml": .malformed,
    "two-values.xml": .malformed,
    "control-character.xml": .unsupported,
    "html.xml": .notPropertyList,
    "latin1.xml": .unsupported,
    "unfinished.xml": .malformed,
    "deep-nesting.json": .limit(.depth),
    "nil-text.json": .unsupported,
    "key-twice.json": .duplicateKey,
    "large-integer.json": .unsupported,
    "half-a-pair.json": .malformed,
    "trailing-comma.json": .malformed,
    "two-values.json": .malformed,
    "openstep.json": .malformed,
    "bad-date.json": .malformed,
    "not-utf8.json": .malformed,
  ]

  @Test func everyFileIsRefusedForItsReason() throws {
    #expect(try Fixtures.names(in: "hostile") == Set(Self.expected.keys))
    for (name, kind) in Self.expected {
      let bytes = try Fixtures.bytes("hostile/\(name)")
      expect(kind) { _ = try PropertyListValue(reading: bytes) }
      if name.hasSuffix(".plist") {
        #expect(throws: PropertyListError.self, "\(name)") {
          try BinaryDecoder().decode(PropertyListValue.self, from: bytes)
        }
      }
    }
  }

  @Test func everySingleFlippedBitIsNoticed() throws {
    let good = try BinaryPropertyList.encode(Samples.tree)
    for index in good.indices {
      for bit in 0..<8 {
        var bytes = good
        bytes[index] ^= 1 << UInt8(bit)
        #expect(throws: PropertyListError.self, "bit \(bit) of byte \(index)") {
          try BinaryPropertyList.decode(bytes)
        }
      }
    }
  }

  @Test func everyShorterFileIsRefused() throws {
    let good = try BinaryPropertyList.encode(Samples.tree)
    for count in good.indices {
      #expect(throws: PropertyListError.self) {
        try BinaryPropertyList.decode(Array(good.prefix(count)))
      }
    }
  }

  @Test func sealsSayWhatTheyAre() throws {
    var bytes = try BinaryPropertyList.encode("text")
    #expect(BinaryPropertyList.seal(of: bytes) == .checked)
    bytes.replaceSubrange(bytes.count - 32..<bytes.count - 26, with: [0, 0, 0, 0, 0, 0])
    #expect(BinaryPropertyList.seal(of: bytes) == .believed)
    #expect(try BinaryPropertyList.decode(bytes) == "text")
    bytes[bytes.count - 28] = 1
    #expect(BinaryPropertyList.seal(of: bytes) == .broken)
    #expect(BinaryPropertyList.seal(of: Array("bplist00junk".utf8)) == nil)
    #expect(BinaryPropertyList.seal(of: []) == nil)
  }

  /// All containers are measured again if one contains a container with a lower number.
  ///
  /// The array with the number 2 contains such an array, as the files of some writers do; the array
  /// with the number 3 has been measured by then.
  @Test func aContainerThatIsMeasuredTwiceHasOneSize() throws {
    let file = RawFile([[0xA2, 2, 3], [0xA0], [0xA1, 1], [0xA1, 4], [0x51, 0x61]])
    var limits = PropertyListLimits()
    limits.expandedBytes = 3 + 1 + 2 + 2 + 2
    #expect(try BinaryPropertyList.decode(file.bytes, limits: limits) == [[[]], ["a"]])
    limits.expandedBytes -= 1
    expect(.limit(.expandedBytes)) {
      _ = try BinaryPropertyList.decode(file.bytes, limits: limits)
    }
  }

  /// Time and memory follow the size of the file and not of its expansion.
  @Test func sharedReferencesAreCountedEachTime() throws {
    var limits = PropertyListLimits()
    limits.reachedPerByte = 1000
    limits.reached = (1 << 13) - 1
    let bytes = SharedReferences.file(levels: 12, width: 2)
    #expect(throws: Never.self) { try BinaryPropertyList.decode(bytes, limits: limits) }
    limits.reached -= 1
    expect(.limit(.reached)) { _ = try BinaryPropertyList.decode(bytes, limits: limits) }
    limits = PropertyListLimits()
    expect(.limit(.reached)) { _ = try BinaryPropertyList.decode(bytes, limits: limits) }
    limits.reachedPerByte = 1000
    limits.expandedBytes = 10_000
    expect(.limit(.expandedBytes)) { _ = try BinaryPropertyList.decode(bytes, limits: limits) }
  }

  /// Otherwise a small file with many references to one large object would fill the memory.
  @Test(arguments: [(0x4F, 64), (0x5F, 64), (0x6F, 32)] as [(UInt8, UInt8)])
  func aLeafIsInMemoryOnceHoweverOftenItIsReferredTo(_ kind: UInt8, _ count: UInt8) throws {
    let leaf: [UInt8] = [kind, 0x10, count] + [UInt8](repeating: 0x61, count: 64)
    let file = RawFile([[0xA3, 1, 2, 2], [0xA1, 2], leaf])
    let list = try BinaryPropertyList.decode(file.bytes)
    let places = [list[0]?[0], list[1], list[2]].compactMap { Self.place(of: $0) }
    #expect(places.count == 3)
    #expect(Set(places).count == 1)
  }

  /// The address of the bytes of a long text or data.
  private static func place(of value: PropertyListValue?) -> UInt? {
    if let data = value?.dataValue {
      return data.withUnsafeBytes { UInt(bitPattern: $0.baseAddress) }
    }
    guard let text = value?.stringValue else { return nil }
    return text.utf8.withContiguousStorageIfAvailable { UInt(bitPattern: $0.baseAddress) }
  }
}
