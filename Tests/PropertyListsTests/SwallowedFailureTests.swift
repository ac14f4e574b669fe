import TestTraits
import Testing

@testable import WormholePropertyLists

/// Types that try to encode a single value, and go on when the attempt fails.
///
/// A failed attempt leaves the place as it was: without a value, but still a place.
@Suite(.blocking, .notSanitized("pure, on one thread", by: .thread)) struct SwallowedFailureTests {
  @Test func aFailedAttemptAtTheTopIsNoFile() {
    explains(.missingValue, "cannot write property list: the value encodes nothing") {
      _ = try BinaryEncoder().encode(FailedAttempt())
    }
  }

  /// A value that encodes nothing is an empty dictionary; no element and no key disappears.
  @Test func aFailedAttemptKeepsItsPlace() throws {
    let list = try PropertyListValue(encoding: [FailedAttempt(), FailedAttempt()])
    #expect(list == [[:], [:]])
    let dictionary = try PropertyListValue(encoding: ["a": FailedAttempt()])
    #expect(dictionary == ["a": [:]])
    let bytes = try BinaryEncoder().encode(FailedAttempt(), forKey: "value") { _ in }
    #expect(try BinaryPropertyList.decode(bytes) == ["value": [:]])
  }

  @Test func aSecondAttemptCountsAsOneElement() throws {
    final class Row: Encodable {
      var counts: [Int] = []
      var paths: [String] = []
      func encode(to encoder: any Encoder) throws {
        var row = encoder.unkeyedContainer()
        try row.encode(SecondAttempt())
        counts.append(row.count)
        try row.encode(SecondAttempt())
        counts.append(row.count)
        paths.append(row.superEncoder().codingPath.pathDescription)
        counts.append(row.count)
      }
    }
    let row = Row()
    #expect(try PropertyListValue(encoding: row) == ["instead", "instead", [:]])
    #expect(row.counts == [1, 2, 3])
    #expect(row.paths == ["[2]"])
  }
}

private struct RefusedAttempt: Encodable {
  func encode(to encoder: any Encoder) throws {
    var container = encoder.container(keyedBy: PathKey.self)
    try container.encode(1, forKey: .super)
    throw CancellationError()
  }
}

/// A value that encodes nothing, after an attempt.
private struct FailedAttempt: Encodable {
  func encode(to encoder: any Encoder) throws {
    var place = encoder.singleValueContainer()
    try? place.encode(RefusedAttempt())
  }
}

private struct SecondAttempt: Encodable {
  func encode(to encoder: any Encoder) throws {
    var place = encoder.singleValueContainer()
    do {
      try place.encode(RefusedAttempt())
    } catch {
      try place.encode("instead")
    }
  }
}
