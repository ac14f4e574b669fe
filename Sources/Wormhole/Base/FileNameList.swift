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
  mutating func sort() {
    var starts = starts
    self.starts = []
    bytes.withUnsafeBufferPointer { bytes in
      guard let base = bytes.baseAddress else { return }
      starts.sort { (base + $0).order(to: base + $1) < 0 }
      var kept = 0
      for start in starts
      where kept == 0 || (base + starts[kept - 1]).order(to: base + start) != 0 {
        starts[kept] = start
        kept += 1
      }
      starts.removeLast(starts.count - kept)
    }
    self.starts = starts
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
