internal import Syscalls

/// Numbers that nobody else comes up with: for names, not for secrets.
///
/// The kernel is asked once a process and not for each number, which would be a system call for
/// every message. A copy of the process begins anew: it does not have the mark.
enum Randomness {
  private static let state = Monitor<UInt64>(0)
  private static let mark = ForkMark()

  /// SplitMix64: a counter, mixed so that each number comes once in 2⁶⁴.
  static func next() -> UInt64 {
    var word = state.withLock { word in
      if !mark.isThere {
        word = .random(in: .min ... .max)
        mark.make()
      }
      word &+= 0x9e37_79b9_7f4a_7c15
      return word
    }
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }
}
