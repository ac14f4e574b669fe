/// How far the messages of one file have come: a byte for each.
///
/// The low six bits count the attempts begun, the next says that the message was given up, the
/// highest that nothing more happens to it.
package struct BatchSlots: Sendable {
  // In place: an array would be looked at for other owners at each change.
  private var bytes = InlineArray<64, UInt8>(repeating: 0)
  package let count: Int
  private(set) var unfinished: Int
  private(set) var hasGivenUp: Bool
  /// How many of the unfinished are in nobody's hand, and wait to be handed over once more.
  private(set) var waiting = 0
  private var next = 0

  static let largest = 64
  private static let attemptMask: UInt8 = 0x3f
  private static let given: UInt8 = 0x40
  private static let done: UInt8 = 0x80

  /// As it was left; there are no more than ``largest``.
  package init(_ slots: some Collection<UInt8>) {
    count = slots.count
    unfinished = slots.count { $0 & Self.done == 0 }
    hasGivenUp = slots.contains { $0 & Self.given != 0 }
    for (index, slot) in slots.enumerated() { bytes[index] = slot }
  }

  /// - Parameter begun: how many attempts have begun before, of which nothing is known.
  package init(count: Int, begun: Int = 0) {
    precondition(count <= Self.largest)
    self.count = count
    unfinished = count
    hasGivenUp = false
    guard begun > 0 else { return }
    let attempts = min(UInt8(clamping: begun), Self.attemptMask)
    for index in 0..<count { bytes[index] = attempts }
  }

  /// Whether all that is left waits.
  var isAtRest: Bool { waiting > 0 && waiting == unfinished }

  /// A message waits from now on, or no longer.
  mutating func wait(_ waits: Bool) { waiting += waits ? 1 : -1 }

  /// What is known of a message.
  package subscript(index: Int) -> UInt8 { bytes[index] }

  /// What is known of some that lie side by side.
  func withBytes(_ indices: ClosedRange<Int>, _ body: (UnsafeRawBufferPointer) -> Void) {
    withUnsafeBytes(of: bytes) { body(UnsafeRawBufferPointer(rebasing: $0[indices])) }
  }

  /// Whether any was given out since this was read.
  var hasGivenOut: Bool { next > 0 }

  func isDone(_ index: Int) -> Bool { bytes[index] & Self.done != 0 }

  /// How many attempts have begun.
  package func attempts(_ index: Int) -> Int { Int(bytes[index] & Self.attemptMask) }

  /// The next message that nobody has been given yet.
  package mutating func takeNext() -> Int? {
    while next < count {
      next += 1
      if !isDone(next - 1) { return next - 1 }
    }
    return nil
  }

  /// An attempt begins; answers which.
  package mutating func begin(_ index: Int) -> Int {
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
  package mutating func finish(_ index: Int, givenUp: Bool = false) -> Bool {
    guard !isDone(index) else { return false }
    bytes[index] |= Self.done | (givenUp ? Self.given : 0)
    unfinished -= 1
    if givenUp { hasGivenUp = true }
    return true
  }
}
