import Synchronization

/// The number of calls and syncs made through this module since the start of the process.
package struct CallCounters: Equatable, Sendable {
  package let calls: Int
  package let syncs: Int

  package static var current: CallCounters {
    CallCounters(
      calls: totalCalls.load(ordering: .relaxed), syncs: totalSyncs.load(ordering: .relaxed))
  }

  static func count() { totalCalls.add(1, ordering: .relaxed) }
  static func countSync() { totalSyncs.add(1, ordering: .relaxed) }
}

private let totalCalls = Atomic<Int>(0)
private let totalSyncs = Atomic<Int>(0)
