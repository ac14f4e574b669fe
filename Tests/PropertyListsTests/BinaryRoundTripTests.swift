import FoundationEssentials
import TestTraits
import Testing

@testable import WormholePropertyLists

@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct BinaryRoundTripTests {
  @Test(arguments: Samples.scalars + [Samples.tree, [], [:]])
  func carriesEveryValue(_ value: PropertyListValue) throws {
    let bytes = try BinaryPropertyList.encode(value)
    let read = try BinaryPropertyList.decode(bytes)
    #expect(read == value)
    #expect(BinaryPropertyList.seal(of: bytes) == .checked)
  }

  @Test(arguments: [1, 10, 50, 100, 1000, 20000])
  func carriesEveryWidthOfReferences(_ count: Int) throws {
    let value = Samples.wide(count)
    #expect(try BinaryPropertyList.decode(BinaryPropertyList.encode(value)) == value)
  }

  @Test func equalValuesGiveEqualFiles() throws {
    let pairs = (0..<40).map { ("key \($0)", PropertyListValue.integer($0)) }
    let first = PropertyListValue.dictionary(Dictionary(uniqueKeysWithValues: pairs))
    let second = PropertyListValue.dictionary(Dictionary(uniqueKeysWithValues: pairs.reversed()))
    #expect(try BinaryPropertyList.encode(first) == BinaryPropertyList.encode(second))
  }

  @Test func keepsTheSignOfZeroAndTheCaseOfIntegers() throws {
    let zero = try BinaryPropertyList.decode(BinaryPropertyList.encode(.real(-0.0)))
    guard case .real(let value) = zero else { throw PropertyListError(.malformed, "no real") }
    #expect(value.sign == .minus)
    let seven = try BinaryPropertyList.decode(BinaryPropertyList.encode(.unsigned(7)))
    guard case .integer(7) = seven else { throw PropertyListError(.malformed, "no integer") }
  }

  @Test func theWriterKeepsTheReadersLimits() throws {
    var limits = PropertyListLimits()
    limits.depth = 5
    _ = try BinaryPropertyList.encode(Samples.deep(5), limits: limits)
    expect(.limit(.depth)) { _ = try BinaryPropertyList.encode(Samples.deep(6), limits: limits) }
    expect(.limit(.depth)) {
      _ = try BinaryPropertyList.decode(BinaryPropertyList.encode(Samples.deep(6)), limits: limits)
    }
    limits = PropertyListLimits()
    limits.objects = 20
    expect(.limit(.objects)) { _ = try BinaryPropertyList.encode(Samples.wide(9), limits: limits) }
    limits = PropertyListLimits()
    limits.bytes = 100
    expect(.limit(.bytes)) { _ = try BinaryPropertyList.encode(Samples.wide(9), limits: limits) }
  }

  @Test func writerAndReaderCountAlike() throws {
    let value = Samples.tree
    let bytes = try BinaryPropertyList.encode(value)
    for bound in [\PropertyListLimits.reached, \.expandedBytes] {
      var low = 1
      var high = 1 << 20
      while low < high {
        var limits = PropertyListLimits()
        limits[keyPath: bound] = (low + high) / 2
        if (try? BinaryPropertyList.decode(bytes, limits: limits)) != nil {
          high = (low + high) / 2
        } else {
          low = (low + high) / 2 + 1
        }
      }
      var limits = PropertyListLimits()
      limits[keyPath: bound] = low
      #expect(throws: Never.self) { try BinaryPropertyList.encode(value, limits: limits) }
      limits[keyPath: bound] = low - 1
      #expect(throws: PropertyListError.self) {
        try BinaryPropertyList.encode(value, limits: limits)
      }
    }
  }

  /// A repeated key counts each time, for the writer as for the reader.
  @Test(arguments: [("", 2), ("", 300), ("é", 99)])
  func nothingIsWrittenThatCannotBeRead(_ start: String, _ count: Int) {
    let key = start + String(repeating: "a", count: count)
    let list = PropertyListValue.array(Array(repeating: [key: true], count: 20))
    var limits = PropertyListLimits()
    let unreadable = stride(from: 20, through: 10_000, by: 5).filter { bytes in
      limits.expandedBytes = bytes
      guard let file = try? BinaryPropertyList.encode(list, limits: limits) else { return false }
      return (try? BinaryPropertyList.decode(file, limits: limits)) == nil
    }
    #expect(unreadable == [])
  }

  /// The file has the first spelling of a key for all, and a reader counts that one.
  @Test(arguments: [("e\u{301}", "é"), ("\u{212A}", "K"), ("é", "e\u{301}"), ("K", "\u{212A}")])
  func aKeyInAnotherSpellingCountsAsWritten(_ first: String, _ other: String) {
    let rest = String(repeating: "a", count: 99)
    let start: [PropertyListValue] = [[first + rest: true]]
    let list = PropertyListValue.array(
      start + Array(repeating: [other + rest: true], count: 20))
    var limits = PropertyListLimits()
    let unreadable = stride(from: 20, through: 10_000, by: 5).filter { bytes in
      limits.expandedBytes = bytes
      guard let file = try? BinaryPropertyList.encode(list, limits: limits) else { return false }
      return (try? BinaryPropertyList.decode(file, limits: limits)) == nil
    }
    #expect(unreadable == [])
  }
}

/// Expects a failure of one kind.
func expect(
  _ kind: PropertyListError.Kind, sourceLocation: SourceLocation = #_sourceLocation,
  _ body: () throws -> Void
) {
  do {
    try body()
    Issue.record("no error", sourceLocation: sourceLocation)
  } catch let error as PropertyListError {
    #expect(error.kind == kind, "\(error)", sourceLocation: sourceLocation)
  } catch {
    Issue.record("another error: \(error)", sourceLocation: sourceLocation)
  }
}
