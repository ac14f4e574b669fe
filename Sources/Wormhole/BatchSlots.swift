/// How far the messages of one file have come: a byte for each.
///
/// The low six bits count the attempts begun, the next says that the message was given up, the
/// highest that nothing more happens to it.
struct BatchSlots: Equatable, Sendable {
  private(set) var slots: [UInt8]
  private(set) var unfinished: Int
  private var next = 0

  static let attemptMask: UInt8 = 0x3f
  static let given: UInt8 = 0x40
  static let done: UInt8 = 0x80

  init(_ slots: [UInt8]) {
    self.slots = slots
    unfinished = slots.count { $0 & Self.done == 0 }
  }

  init(count: Int) { self.init([UInt8](repeating: 0, count: count)) }

  var hasBegun: Bool { slots.contains { $0 != 0 } }
  /// Whether any was given out since this was read.
  var hasGivenOut: Bool { next > 0 }
  var hasGivenUp: Bool { slots.contains { $0 & Self.given != 0 } }

  func isDone(_ index: Int) -> Bool { slots[index] & Self.done != 0 }

  /// How many attempts have begun.
  func attempts(_ index: Int) -> Int { Int(slots[index] & Self.attemptMask) }

  /// The next message that nobody has been given yet.
  mutating func takeNext() -> Int? {
    while next < slots.count {
      next += 1
      if !isDone(next - 1) { return next - 1 }
    }
    return nil
  }

  /// An attempt begins; answers which.
  mutating func begin(_ index: Int) -> Int {
    let attempt = min(slots[index] & Self.attemptMask + 1, Self.attemptMask)
    slots[index] = slots[index] & ~Self.attemptMask | attempt
    return Int(attempt)
  }

  /// The attempt that has begun was none.
  mutating func undo(_ index: Int) {
    guard slots[index] & Self.attemptMask > 0 else { return }
    slots[index] -= 1
  }

  /// Nothing more is to happen to a message; false if that was so already.
  mutating func finish(_ index: Int, givenUp: Bool = false) -> Bool {
    guard !isDone(index) else { return false }
    slots[index] |= Self.done | (givenUp ? Self.given : 0)
    unfinished -= 1
    return true
  }
}
