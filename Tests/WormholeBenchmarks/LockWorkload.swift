import WormholeContainerStorage

/// The lock alone, without contention.
struct Lock: Benchmark {
  static let name = "lock"
  static let summary = "lock and unlock a slot, against flock and the heartbeat in C"
  static let isPaired = true

  private let scratch: Scratch
  private let slot: Slot
  private let floor: Floor

  init(size: Size) throws {
    scratch = try Scratch()
    slot = try scratch.slot()
    floor = try scratch.floor(size)
  }

  func ours() throws { try slot.change("lock") { _ in .none } }
  func baseline() throws { try floor.lock() }

  func details() throws -> [Detail] {
    [try Detail.calls("calls a lock", underLock: 8) { try ours() }]
  }
}
