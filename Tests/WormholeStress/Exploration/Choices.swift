/// The decisions of a step in a model: which process advances, which fault happens, how a call
/// ends.
///
/// A step requests each decision when it needs the decision. So the same code serves both kinds of
/// search: all paths, one after the other, and random paths.
struct Choices {
  private var script: [UInt8] = []
  private var counts: [UInt8] = []
  /// The number of decisions that the current step has requested.
  private var asked = 0
  private var dice: Dice?
  private var words: [String] = []
  private let isTold: Bool

  /// Starts with the first of all paths.
  init() { isTold = false }

  /// Replays one path: earlier decisions, described in words.
  init(_ way: Way) {
    script = way.decisions
    isTold = true
  }

  /// Decides at random.
  init(_ dice: Dice) {
    self.dice = dice
    isTold = false
  }

  /// Returns a number below `count`; in a complete search, each number is returned some time.
  mutating func pick(_ count: Int) -> Int {
    guard count > 1 else { return 0 }
    if dice != nil {
      let number = dice!.number(0..<count)
      script.append(UInt8(number))
      return number
    }
    if asked == script.count { script.append(0) }
    if asked == counts.count { counts.append(UInt8(count)) }
    counts[asked] = UInt8(count)
    asked += 1
    return min(Int(script[asked - 1]), count - 1)
  }

  mutating func pick() -> Bool { pick(2) == 1 }

  /// Describes the step, for a reader of the path.
  mutating func tell(_ what: @autoclosure () -> String) {
    if isTold { words.append(what()) }
  }

  var told: String { words.joined(separator: ", ") }

  /// The decisions of the step.
  var way: Way { Way(decisions: script) }

  /// Prepares a step with random decisions.
  mutating func beginStep() {
    script = []
    asked = 0
  }

  /// Advances to the next path; returns false after the last path.
  mutating func next() -> Bool {
    script.removeSubrange(asked...)
    counts.removeSubrange(asked...)
    while let last = script.last {
      if last + 1 < counts[script.count - 1] {
        script[script.count - 1] = last + 1
        asked = 0
        return true
      }
      script.removeLast()
      counts.removeLast()
    }
    return false
  }
}

/// The decisions of one step, in so few bytes that a million steps fit into memory.
struct Way: Hashable, Sendable {
  private let bits: UInt64

  init(decisions: [UInt8]) {
    precondition(decisions.count <= 12, "a step decides on too much")
    bits = decisions.reduce(UInt64(decisions.count)) { $0 << 5 | UInt64($1) }
    precondition(decisions.allSatisfy { $0 < 32 })
  }

  var decisions: [UInt8] {
    var (bits, found) = (bits, [UInt8]())
    // The count precedes the decisions, at a position that depends on the count.
    for count in 0...12 where bits >> UInt64(5 * count) == UInt64(count) {
      for _ in 0..<count {
        found.insert(UInt8(bits & 31), at: 0)
        bits >>= 5
      }
      return found
    }
    return []
  }
}
