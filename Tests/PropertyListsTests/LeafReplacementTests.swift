import TestTraits
import Testing

@testable import WormholePropertyLists

/// Copies of a file in which a few leaves differ.
///
/// Each copy must be the file that the writer makes of all values, byte by byte.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct LeafReplacementTests {
  private func file(
    _ values: [String: PropertyListValue], _ version: Int = 1, limits: PropertyListLimits = .default
  ) throws -> [UInt8] {
    let writer = "a writer"
    return try BinaryEncoder(limits: limits).encode(values, forKey: "value") { leaves in
      leaves.add("version", version)
      leaves.add("from", writer)
    }
  }

  private func replaced(
    _ file: [UInt8], _ key: String, _ value: PropertyListValue, _ version: Int = 1,
    limits: PropertyListLimits = .default
  ) -> [UInt8]? {
    // Not in the order of the file.
    BinaryPropertyList.replacing(
      [
        (path: ["value", key], value: value),
        (path: ["version"], value: .integer(Int64(version))),
      ], in: file, limits: limits)
  }

  @Test(arguments: [1, 7, 8, 40, 300])
  func aCopyIsTheFileThatIsWritten(count: Int) throws {
    var values: [String: PropertyListValue] = ["scalars": Samples.tree, "\u{fc}": 1, "K": "text"]
    for number in 0..<count { values["key \(number)"] = .integer(Int64(number)) }
    var (version, known) = (1, try file(values))
    for key in ["key 0", "key \(count - 1)", "\u{fc}", "K"] {
      for value in Samples.scalars + ["$null", 7] {
        version += 100
        values[key] = value
        known = try #require(replaced(known, key, value, version))
        let whole = try file(values, version)
        #expect(known == whole, "\(key): \(value)")
      }
    }
    #expect(BinaryPropertyList.seal(of: known) == .checked)
  }

  /// The mark belongs to the file that was synced, not to its copy.
  @Test func aCopyOfASyncedFileIsNotMarkedAsSynced() throws {
    var synced = try file(["a": 1])
    BinaryPropertyList.markSynced(&synced)
    let whole = try file(["a": 2])
    #expect(replaced(synced, "a", 2) == whole)
  }

  @Test func otherChangesAreLeftToTheWriter() throws {
    let known = try file(["a": 1, "list": [1], "dictionary": [:]])
    #expect(replaced(known, "a", 2) != nil)
    #expect(replaced(known, "b", 2) == nil, "another key")
    for key in ["list", "dictionary"] {
      #expect(replaced(known, key, 2) == nil, "no leaf before")
    }
    for value: PropertyListValue in [[2], [:]] {
      #expect(replaced(known, "a", value) == nil, "no leaf afterwards")
    }
    for bytes in [[], [UInt8](repeating: 0, count: 100)] {
      #expect(replaced(bytes, "a", 2) == nil, "no file")
    }
  }

  /// Offsets take one byte up to a table at 255, and two bytes up to 65,535.
  @Test func offsetsOfAnotherWidthAreLeftToTheWriter() throws {
    var limits = PropertyListLimits()
    limits.expandedBytes = .max
    for length in [255, 65_535] {
      let short: PropertyListValue = .string(String(repeating: "x", count: length / 2))
      let long: PropertyListValue = .string(String(repeating: "x", count: length + 1))
      let (small, large) = (try file(["a": short]), try file(["a": long]))
      #expect(replaced(small, "a", long, limits: limits) == nil)
      #expect(replaced(large, "a", short, limits: limits) == nil)
      #expect(replaced(small, "a", short, limits: limits) == small)
      #expect(replaced(large, "a", long, limits: limits) == large)
    }
  }

  @Test func aCopyBeyondALimitIsLeftToTheWriter() throws {
    let (known, long) = (try file(["a": 1]), PropertyListValue.string("a text of 21 letters"))
    var (bytes, expanded) = (PropertyListLimits(), PropertyListLimits())
    bytes.bytes = known.count + 10
    expanded.expandedBytes = known.count * known.count / 2
    for limits in [bytes, expanded] {
      #expect(replaced(known, "a", 2, limits: limits) != nil)
      #expect(replaced(known, "a", long, limits: limits) == nil)
    }
  }
}
