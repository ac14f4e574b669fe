internal import WormholeSyscalls

/// The names of many files, in the kernel's form.
///
/// A name takes its own bytes and nine more. An array of strings would take two to four times as
/// much, which counts with the names of a full queue.
struct FileNameList {
  /// The names, each with the zero that ends it.
  private var bytes: [CChar] = []
  /// Where the names begin.
  private var starts: [Int] = []

  var isEmpty: Bool { starts.isEmpty }
  var count: Int { starts.count }

  mutating func add(_ name: String) { name.withCString { add($0) } }

  mutating func add(_ name: UnsafePointer<CChar>) {
    starts.append(bytes.count)
    bytes.append(contentsOf: UnsafeBufferPointer(start: name, count: name.length + 1))
  }

  /// Sorts the names by their bytes, and drops repeated names.
  ///
  /// Names of messages have a common start, and differ soon behind it. So nearly all comparisons
  /// are comparisons of two numbers, and read no name.
  mutating func sort() {
    var starts = starts
    self.starts = []
    bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress, let first = starts.first else { return }
      var common = (base + first).length
      for start in starts { common = Self.common(base + first, base + start, atMost: common) }
      var keyed = starts.map { (key: Self.key(base + $0 + common), start: $0) }
      keyed.sort { one, other in
        one.key == other.key
          ? (base + one.start).order(to: base + other.start) < 0 : one.key < other.key
      }
      // The array is used again: the names of a full queue leave little memory for others.
      starts.removeAll(keepingCapacity: true)
      var last: (key: UInt64, start: Int)?
      for one in keyed {
        if let last, last.key == one.key, (base + last.start).order(to: base + one.start) == 0 {
          continue
        }
        starts.append(one.start)
        last = one
      }
    }
    self.starts = starts
  }

  /// The number of equal bytes at the start of two names.
  private static func common(
    _ one: UnsafePointer<CChar>, _ other: UnsafePointer<CChar>, atMost most: Int
  ) -> Int {
    var count = 0
    while count < most, one[count] == other[count] { count += 1 }
    return count
  }

  /// The first eight bytes of a text as a number in the order of the bytes; zeros behind its end.
  private static func key(_ text: UnsafePointer<CChar>) -> UInt64 {
    var (key, count) = (UInt64(0), 0)
    while count < 8, text[count] != 0 {
      // A C char is unsigned on some machines.
      key = key << 8 | UInt64(UInt8(truncatingIfNeeded: text[count]))
      count += 1
    }
    return count == 8 ? key : key << UInt64(8 * (8 - count))
  }

  /// Calls the body with each name until the body returns false; returns whether it never did.
  @discardableResult
  func forEach(_ body: (UnsafePointer<CChar>) -> Bool) -> Bool {
    forEach(in: starts.indices, body)
  }

  /// As ``forEach(_:)``, with some of the names.
  @discardableResult
  func forEach(in range: Range<Int>, _ body: (UnsafePointer<CChar>) -> Bool) -> Bool {
    bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return true }
      return starts[range].allSatisfy { body(base + $0) }
    }
  }

  /// Whether a list that was sorted contains the name.
  func contains(_ name: String) -> Bool {
    name.withCString { name in
      bytes.withUnsafeBufferPointer { bytes in
        guard let base = bytes.baseAddress else { return false }
        var (low, high) = (0, starts.count)
        while low < high {
          let middle = (low + high) / 2
          let order = (base + starts[middle]).order(to: name)
          if order == 0 { return true }
          if order < 0 { low = middle + 1 } else { high = middle }
        }
        return false
      }
    }
  }
}
