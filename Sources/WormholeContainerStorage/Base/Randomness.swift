internal import WormholeSyscalls

/// Unique random numbers: for names, not for secrets.
///
/// The kernel provides one seed for each process and not each number, which would take a system
/// call for every message. A forked child gets a new seed.
enum Randomness {
  private static let state = Monitor((word: UInt64(0), owner: ProcessCopy?.none))

  /// SplitMix64: a mixed counter; each number occurs once in 2⁶⁴.
  static func next() -> UInt64 {
    var word = state.withLock { state in
      if state.owner != .current { state = (SystemRandom.number(), .current) }
      state.word &+= 0x9e37_79b9_7f4a_7c15
      return state.word
    }
    word = (word ^ (word >> 30)) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ (word >> 27)) &* 0x94d0_49bb_1331_11eb
    return word ^ (word >> 31)
  }

  /// Whether a name has the form of a random name: 16 hexadecimal digits.
  static func isName(_ name: String) -> Bool {
    name.utf8.count == 16
      && name.utf8.allSatisfy {
        (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
          || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
      }
  }
}

extension Environment {
  /// 16 random hexadecimal digits; no other name has them.
  package func randomName() -> String { random().digits }
}

extension UInt64 {
  /// 16 hexadecimal digits.
  package var digits: String {
    // At each message, twice: without the strings of a conversion and its padding.
    String(unsafeUninitializedCapacity: 16) { digits in
      write(to: digits, at: 0)
      return 16
    }
  }

  /// Writes the 16 digits to a buffer that has space for them behind the given index.
  func write(to buffer: UnsafeMutableBufferPointer<UInt8>, at start: Int) {
    for place in 0..<16 {
      let digit = UInt8(truncatingIfNeeded: self >> UInt64(60 - 4 * place)) & 15
      buffer[start + place] =
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }
  }

  /// Reads 16 hexadecimal digits; nil if another character is among them.
  init?(digitsIn bytes: UnsafeBufferPointer<UInt8>, at start: Int) {
    var (number, place) = (UInt64(0), start)
    while place < start + 16 {
      let digit: UInt8
      switch bytes[place] {
      case UInt8(ascii: "0")...UInt8(ascii: "9"): digit = bytes[place] - UInt8(ascii: "0")
      case UInt8(ascii: "a")...UInt8(ascii: "f"): digit = bytes[place] - UInt8(ascii: "a") + 10
      default: return nil
      }
      number = number << 4 | UInt64(digit)
      place += 1
    }
    self = number
  }
}
