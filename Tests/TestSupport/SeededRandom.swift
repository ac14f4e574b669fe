/// Random numbers that repeat with their seed, so that a failure can be replayed.
package struct SeededRandom: RandomNumberGenerator, Sendable {
  private var state: UInt64

  package init(seed: UInt64) { state = seed }

  package mutating func next() -> UInt64 {
    // Weyl sequence and mixing of the kind called splitmix.
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  /// Random bytes that show no pattern.
  ///
  /// The bytes are not mapped one by one: in a debug build the library's generic code takes a lock
  /// of the runtime for each byte, and several threads that do it at once make no progress.
  package mutating func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      let bytes = UnsafeMutableRawBufferPointer(buffer)
      var place = 0
      while place < count {
        var word = next()
        let length = min(8, count - place)
        bytes.baseAddress!.advanced(by: place).copyMemory(from: &word, byteCount: length)
        place += length
      }
      initialized = count
    }
  }
}
