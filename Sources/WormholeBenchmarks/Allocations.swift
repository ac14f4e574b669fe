import AllocationCounter

/// Counts calls of the allocator.
enum Allocations {
  /// How many calls one operation makes; nil where they are not counted.
  ///
  /// The average of several, after one that fills caches.
  static func count(_ operation: () throws -> Void) rethrows -> Double? {
    guard allocation_count() >= 0 else { return nil }
    try operation()
    let start = allocation_count()
    for _ in 0..<10 { try operation() }
    return Double(allocation_count() - start) / 10
  }
}
