/// What a step of a modelled world decides on: who goes, what befalls, how a call ends.
///
/// A step asks for each decision when it comes to it. So one piece of code serves both ways of
/// going: all ways there are, one after the other, and one that chance picks.
struct Choices {
  private var script: [UInt8] = []
  private var counts: [UInt8] = []
  /// How many decisions the step under way has asked for.
  private var asked = 0
  private var dice: Dice?
  private var words: [String] = []
  private let isTold: Bool

  /// The first of all ways.
  init() { isTold = false }

  /// One way: what was decided once, told in words.
  init(_ way: Way) {
    script = way.decisions
    isTold = true
  }

  /// Whatever chance picks.
  init(_ dice: Dice) {
    self.dice = dice
    isTold = false
  }

  /// A number below that; each will be picked some time.
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

  /// What the step does, for whoever reads how something came about.
  mutating func tell(_ what: @autoclosure () -> String) {
    if isTold { words.append(what()) }
  }

  var told: String { words.joined(separator: ", ") }

  /// The way that was gone.
  var way: Way { Way(decisions: script) }

  /// Before a step that chance decides.
  mutating func beginStep() {
    script = []
    asked = 0
  }

  /// Goes on to the next way; false when all have been gone.
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

/// What was decided in one step, in as few bytes as a million of them ask for.
struct Way: Hashable, Sendable {
  private let bits: UInt64

  init(decisions: [UInt8]) {
    precondition(decisions.count <= 12, "a step decides on too much")
    bits = decisions.reduce(UInt64(decisions.count)) { $0 << 5 | UInt64($1) }
    precondition(decisions.allSatisfy { $0 < 32 })
  }

  var decisions: [UInt8] {
    var (bits, found) = (bits, [UInt8]())
    // The count stands before the decisions, wherever that is by now.
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
