package import WormholeContainerStorage
internal import WormholePropertyLists

/// A number with the name of its count.
///
/// Each count that starts from an empty slot has a name of its own, so that a mark from before a
/// removal is never taken for a mark from after it.
package struct Mark: Codable, Hashable, Sendable {
  package var count: UInt32
  package var number: Int

  package init(count: UInt32, number: Int) {
    self.count = count
    self.number = number
  }

  /// Reads a mark from a line of a file.
  package init?(_ line: some StringProtocol) {
    let words = line.split(separator: " ")
    guard words.count == 2, let count = UInt32(words[0]), let number = Int(words[1]) else {
      return nil
    }
    self.init(count: count, number: number)
  }
}

extension Slot {
  /// What was counted last; nil if there is nothing.
  package func lastMark() throws -> Mark? { try Self.mark(in: read()) }

  /// Increments the mark, or starts with 1 in an empty slot, such as a removal leaves.
  @discardableResult
  package func mark(_ body: () throws -> Void = {}) throws -> Mark {
    var mark = Mark(count: 0, number: 0)
    try change("update") { content in
      mark = try Self.mark(in: content) ?? Mark(count: .random(in: 1 ... .max), number: 0)
      mark.number += 1
      try body()
      return .put(try BinaryEncoder().encode(mark))
    }
    return mark
  }

  /// Removes the slot, after putting a mark that stands for an empty slot.
  ///
  /// - Parameter clearing: receives the mark that is replaced.
  package func remove(clearing: (Mark) -> Void = { _ in }) throws -> Bool {
    try remove("remove channel") { content in
      if let mark = try Self.mark(in: content) { clearing(mark) }
      return (try BinaryEncoder().encode(Mark(count: 0, number: 0)), 1)
    }
  }

  private static func mark(in content: Content) throws -> Mark? {
    guard case .value(let bytes, _) = content else { return nil }
    let mark = try BinaryDecoder().decode(Mark.self, from: bytes)
    return mark.count == 0 ? nil : mark
  }
}
