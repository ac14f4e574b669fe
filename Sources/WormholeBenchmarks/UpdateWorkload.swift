import SharedContainer
import Syscalls

/// Read, modify, write: by one process, and by several at once.
struct Update: Benchmark {
  static let name = "update"
  static let summary = "read, modify and write a slot's value, against the same calls in C"
  static let isPaired = true
  static func requiredRatio(_ size: Size) -> Double? { size == .small ? 0.8 : nil }

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
    var details = [
      try Detail.calls("calls an update", limit: 13.5) { try ours() },
      try Detail.syncs("syncs an update", limit: 0.05) { try ours() },
      try Detail.calls("calls an update, synced", limit: 18) {
        try slot.addOne(size, durability: .power)
      },
      try Detail.syncs("syncs an update, synced", limit: 2.05) {
        try slot.addOne(size, durability: .power)
      },
    ]
    for count in [1, 2, 4, 8] {
      for side in UpdateProcess.Side.allCases {
        details += try UpdateProcess.measure(side, size, processes: count)
      }
    }
    return details
  }
}

extension Detail {
  /// How many system calls an operation makes, on the average of many.
  static func calls(
    _ label: String, limit: Double, _ operation: () throws -> Void
  ) throws -> Detail {
    try counted(label, limit, \.calls, operation)
  }

  /// How many syncs an operation makes, on the average of many.
  static func syncs(
    _ label: String, limit: Double, _ operation: () throws -> Void
  ) throws -> Detail {
    try counted(label, limit, \.syncs, operation)
  }

  private static func counted(
    _ label: String, _ limit: Double, _ figure: KeyPath<CallCounters, Int>,
    _ operation: () throws -> Void
  ) throws -> Detail {
    for _ in 0..<5 { try operation() }
    let start = CallCounters.current
    for _ in 0..<200 { try operation() }
    let count = CallCounters.current[keyPath: figure] - start[keyPath: figure]
    return Detail(label, Double(count) / 200, limit: limit)
  }
}
