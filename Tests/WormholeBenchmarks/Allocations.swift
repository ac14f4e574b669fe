import WormholeAllocationCounter

/// Counts calls of the allocator.
enum Allocations {
  /// Returns the number of calls that one operation makes; nil in a build without the counter.
  ///
  /// The result is the average of ten operations, after a first operation that fills caches.
  static func count(_ operation: () throws -> Void) rethrows -> Double? {
    guard allocation_count() >= 0 else { return nil }
    try operation()
    let start = allocation_count()
    for _ in 0..<10 { try operation() }
    return Double(allocation_count() - start) / 10
  }
}
