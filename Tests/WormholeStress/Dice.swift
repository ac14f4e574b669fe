/// Random numbers from a seed: each run has the same numbers.
struct Dice: RandomNumberGenerator {
  private var state: UInt64

  /// - Parameter stream: selects an independent sequence for each part of a run.
  init(seed: UInt64, stream: UInt64 = 0) {
    state = seed &+ stream &* 0x9e37_79b9_7f4a_7c15
    for _ in 0..<2 { state = next() ^ stream }
  }

  mutating func next() -> UInt64 {
    // A counter with mixed bits: neighbouring values have nothing in common.
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }

  /// Returns true once in the given number of calls, on average.
  mutating func oneIn(_ number: Int) -> Bool { Int.random(in: 0..<number, using: &self) == 0 }

  mutating func number(_ range: Range<Int>) -> Int { Int.random(in: range, using: &self) }
}
