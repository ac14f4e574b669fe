internal import Syscalls

/// Numbers that nobody else comes up with: for names, not for secrets.
///
/// The kernel is asked once a process and not for each number, which would be a system call for
/// every message. A copy of the process begins anew.
enum Randomness {
  private static let state = Monitor((word: UInt64(0), owner: ProcessCopy?.none))

  /// SplitMix64: a counter, mixed so that each number comes once in 2⁶⁴.
  static func next() -> UInt64 {
    var word = state.withLock { state in
      if state.owner != .current { state = (.random(in: .min ... .max), .current) }
      state.word &+= 0x9e37_79b9_7f4a_7c15
      return state.word
    }
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }
}
