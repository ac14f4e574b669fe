/// A source of numbers that the same seed repeats.
package struct Random: RandomNumberGenerator {
  private var state: UInt64

  package init(seed: UInt64, case index: Int = 0) {
    state = seed &+ UInt64(truncatingIfNeeded: index) &* 0xD6E8_FEB8_6659_FD93
  }

  package mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  mutating func below(_ bound: Int) -> Int {
    bound < 1 ? 0 : Int.random(in: 0..<bound, using: &self)
  }
  mutating func chance(_ part: Int) -> Bool { below(part) == 0 }
  mutating func pick<T>(_ choices: [T]) -> T { choices[below(choices.count)] }
}
