/// How far the messages of one file have come: a byte for each.
///
/// The low six bits count the attempts begun, the next says that the message was given up, the
/// highest that nothing more happens to it.
struct BatchSlots: Sendable {
  // In place: an array would be looked at for other owners at each change.
  private var bytes = InlineArray<64, UInt8>(repeating: 0)
  let count: Int
  private(set) var unfinished: Int
  private(set) var hasGivenUp: Bool
  private var next = 0

  static let largest = 64
  private static let attemptMask: UInt8 = 0x3f
  private static let given: UInt8 = 0x40
  private static let done: UInt8 = 0x80

  /// As it was left; there are no more than ``largest``.
  init(_ slots: some Collection<UInt8>) {
    count = slots.count
    unfinished = slots.count { $0 & Self.done == 0 }
    hasGivenUp = slots.contains { $0 & Self.given != 0 }
    for (index, slot) in slots.enumerated() { bytes[index] = slot }
  }

  init(count: Int) {
    precondition(count <= Self.largest)
    self.count = count
    unfinished = count
    hasGivenUp = false
  }

  /// What is known of a message.
  subscript(index: Int) -> UInt8 { bytes[index] }

  /// Whether any was given out since this was read.
  var hasGivenOut: Bool { next > 0 }

  func isDone(_ index: Int) -> Bool { bytes[index] & Self.done != 0 }

  /// How many attempts have begun.
  func attempts(_ index: Int) -> Int { Int(bytes[index] & Self.attemptMask) }

  /// The next message that nobody has been given yet.
  mutating func takeNext() -> Int? {
    while next < count {
      next += 1
      if !isDone(next - 1) { return next - 1 }
    }
    return nil
  }

  /// An attempt begins; answers which.
  mutating func begin(_ index: Int) -> Int {
    let attempt = min(bytes[index] & Self.attemptMask + 1, Self.attemptMask)
    bytes[index] = bytes[index] & ~Self.attemptMask | attempt
    return Int(attempt)
  }

  /// The attempt that has begun was none.
  mutating func undo(_ index: Int) {
    guard bytes[index] & Self.attemptMask > 0 else { return }
    bytes[index] -= 1
  }

  /// Nothing more is to happen to a message; false if that was so already.
  mutating func finish(_ index: Int, givenUp: Bool = false) -> Bool {
    guard !isDone(index) else { return false }
    bytes[index] |= Self.done | (givenUp ? Self.given : 0)
    unfinished -= 1
    if givenUp { hasGivenUp = true }
    return true
  }
}
