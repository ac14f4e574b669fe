import WormholeContainerStorage
import WormholeSyscalls

/// Read, modify, write: by a single process, and by several at once.
struct Update: Benchmark {
  static let name = "update"
  static let summary = "read, modify and write a slot's value, against the same calls in C"
  static let isPaired = true
  // The library makes the same calls. On hosts where code runs at its full speed after a return
  // from the kernel, it takes three microseconds more than their nine, and the ratio in memory is
  // 0.7 to 0.77. On others it takes eight more than their thirteen, and the ratio is 0.6. The
  // required ratio detects a slower library, not a slower host: it is a seventh below 0.6.
  static func requiredRatio(_ size: Size) -> Double? { size == .small ? 0.52 : nil }

  private let size: Size
  private let scratch: Scratch
  private let slot: Slot
  private let floor: Floor

  init(size: Size) throws {
    self.size = size
    scratch = try Scratch()
    slot = try scratch.slot()
    floor = try scratch.floor(size)
    for _ in 0..<3 {
      try ours()
      try baseline()
    }
    try Sample.check(try slot.number() == 3 && floor.number() == 3, Self.name)
  }

  func ours() throws { try slot.addOne(size) }
  func baseline() throws { try floor.update() }

  func details() throws -> [Detail] {
    // A value above 16 KiB is not cached between updates: each update opens the file, checks its
    // status, reads the value and closes the file.
    let isKept = size == .small
    var details = [
      try Detail.calls("calls an update", underLock: isKept ? 11 : 15) { try ours() },
      try Detail.syncs("syncs an update", limit: 0.05) { try ours() },
      try Detail.calls("calls an update, synced", limit: isKept ? 18 : 22) {
        try slot.addOne(size, durability: .power)
      },
      try Detail.syncs("syncs an update, synced", limit: 2.05) {
        try slot.addOne(size, durability: .power)
      },
    ]
    // For the four counts, 45 processes start.
    for count in Measurement.isOnce ? [2] : [1, 2, 4, 8] {
      for side in UpdateProcess.Side.usual {
        details += try UpdateProcess.measure(side, size, processes: count)
      }
    }
    return details
  }
}

extension Detail {
  /// Counts the system calls of an operation, as the average of many.
  static func calls(
    _ label: String, limit: Double, _ operation: () throws -> Void
  ) throws -> Detail {
    try counted(label, limit, \.calls, operation)
  }

  /// Counts the system calls of an operation under a slot's lock, as the average of many.
  ///
  /// A process that takes the lock repeatedly checks every four milliseconds for waiters: one call.
  /// Twice a second the process saves the value, with up to 40 calls. Apart from these calls, whose
  /// number depends on the elapsed time, the count is exact.
  static func calls(
    _ label: String, underLock limit: Double, _ operation: () throws -> Void
  ) throws -> Detail {
    let begin = ContinuousClock.now
    let counted = try counted(label, 0, \.calls, operation)
    let taken = ContinuousClock.now - begin
    let others = taken / .milliseconds(4) + 1 + 40 * (taken / .milliseconds(500) + 1)
    return Detail(label, counted.value, limit: limit + others / 200)
  }

  /// Counts the syncs of an operation, as the average of many.
  static func syncs(
    _ label: String, limit: Double, _ operation: () throws -> Void
  ) throws -> Detail {
    try counted(label, limit, \.syncs, operation)
  }

  private static func counted(
    _ label: String, _ limit: Double, _ figure: KeyPath<CallCounters, Int>,
    _ operation: () throws -> Void
  ) throws -> Detail {
    let (before, times) = Measurement.isOnce ? (0, 1) : (5, 200)
    for _ in 0..<before { try operation() }
    let start = CallCounters.current
    for _ in 0..<times { try operation() }
    let count = CallCounters.current[keyPath: figure] - start[keyPath: figure]
    return Detail(label, Double(count) / Double(times), limit: limit)
  }
}
