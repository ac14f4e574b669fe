internal import WormholeContainerStorage

/// The progress of the messages in one file: a byte for each message.
///
/// The low six bits count the started attempts, and the highest bit marks a finished message. The
/// bit between them marks a finished message as dead-lettered, and another one as interrupted: a
/// handler had it in an attempt that did not count.
struct BatchSlots: Sendable {
  // Stored inline: an array would be checked for further references at each change.
  private var bytes = InlineArray<64, UInt8>(repeating: 0)
  let count: Int
  private(set) var unfinished: Int
  private(set) var hasGivenUp: Bool
  /// How many unfinished messages wait for redelivery, without a receiver.
  private(set) var waiting = 0
  private var next = 0

  static let largest = 64
  private static let attemptMask: UInt8 = 0x3f
  private static let given: UInt8 = 0x40
  private static let done: UInt8 = 0x80

  /// Restores recorded slots; at most ``largest``.
  init(_ slots: some Collection<UInt8>) {
    count = slots.count
    unfinished = slots.count { $0 & Self.done == 0 }
    hasGivenUp = slots.contains { $0 >= Self.done | Self.given }
    for (index, slot) in slots.enumerated() { bytes[index] = slot }
  }

  /// - Parameter begun: how many earlier attempts have started, with unknown progress.
  init(count: Int, begun: Int = 0) {
    precondition(count <= Self.largest)
    self.count = count
    unfinished = count
    hasGivenUp = false
    guard begun > 0 else { return }
    let attempts = min(UInt8(clamping: begun), Self.attemptMask)
    for index in 0..<count { bytes[index] = attempts }
  }

  /// Whether all unfinished messages wait.
  var isAtRest: Bool { waiting > 0 && waiting == unfinished }

  /// Counts a message as waiting from now on, or no longer.
  mutating func wait(_ waits: Bool) { waiting += waits ? 1 : -1 }

  /// The recorded progress of a message.
  subscript(index: Int) -> UInt8 { bytes[index] }

  /// Calls the body with the bytes of adjacent messages.
  func withBytes(_ indices: ClosedRange<Int>, _ body: (RawSpan) -> Void) {
    body(bytes.span.extracting(indices).bytes)
  }

  /// Whether any message was given out since the slots were read.
  var hasGivenOut: Bool { next > 0 }

  func isDone(_ index: Int) -> Bool { bytes[index] & Self.done != 0 }

  /// How many attempts of a message have started.
  func attempts(_ index: Int) -> Int { Int(bytes[index] & Self.attemptMask) }

  /// Returns the next message not given out yet.
  mutating func takeNext() -> Int? {
    while next < count {
      next += 1
      if !isDone(next - 1) { return next - 1 }
    }
    return nil
  }

  /// Starts an attempt; returns its number.
  mutating func begin(_ index: Int) -> Int {
    let attempt = min(bytes[index] & Self.attemptMask + 1, Self.attemptMask)
    bytes[index] = bytes[index] & ~Self.attemptMask | attempt
    return Int(attempt)
  }

  /// Whether a handler had an unfinished message in an attempt that did not count.
  func isInterrupted(_ index: Int) -> Bool { bytes[index] & (Self.given | Self.done) == Self.given }

  /// Takes back the count of a started attempt.
  mutating func undo(_ index: Int, isInterrupted: Bool = false) {
    if bytes[index] & Self.attemptMask > 0 { bytes[index] -= 1 }
    if isInterrupted, !isDone(index), !Mutants.has(.forgetInterrupted) {
      bytes[index] |= Self.given
    }
  }

  /// Finishes a message; returns false if the message was finished already.
  mutating func finish(_ index: Int, givenUp: Bool = false) -> Bool {
    guard !isDone(index) else { return false }
    bytes[index] = bytes[index] & ~Self.given | Self.done | (givenUp ? Self.given : 0)
    unfinished -= 1
    if givenUp { hasGivenUp = true }
    return true
  }
}
