/// A table that finds the object of a key seen before.
///
/// The bytes of the keys stay in the file; the table contains hashes and object numbers. The hash
/// has a random seed per process, so that an attacker cannot choose keys that collide. The owner
/// frees the table.
struct KeyTable {
  /// Holds the keys while they are few: comparing each takes less time than setting up a table.
  private var few = InlineArray<8, UInt64>(repeating: 0)
  /// Memory of the table's own: for a few keys an array would cost more than everything else here.
  private var slots: UnsafeMutablePointer<UInt64>?
  private var capacity = 0
  private var count = 0
  /// Texts beyond ASCII: Swift decides whether two of them are the same key, because bytes do not
  /// show it.
  private var beyondASCII = [String: UInt32]()

  private static let seed = UInt64(bitPattern: Int64(Hasher().finalize())) | 1

  static func hash(_ bytes: RawSpan) -> UInt32 {
    var hash = seed ^ UInt64(truncatingIfNeeded: bytes.byteCount)
    var index = 0
    while index + 8 <= bytes.byteCount {
      hash = mix(hash, bytes.word(at: index))
      index += 8
    }
    var rest: UInt64 = 0
    while index < bytes.byteCount {
      rest = rest << 8 | UInt64(bytes[index])
      index += 1
    }
    return UInt32(truncatingIfNeeded: mix(hash, rest) >> 32)
  }

  @inline(__always)
  private static func mix(_ hash: UInt64, _ word: UInt64) -> UInt64 {
    let product = (hash ^ word).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15 ^ seed)
    return product.high ^ product.low
  }

  /// Returns the object of an equal ASCII key; if no key is equal, adds the key with `object`.
  @inline(__always)
  mutating func find(
    hash: UInt32, orInsert object: UInt32, where isSame: (UInt32) -> Bool
  ) -> UInt32? {
    if capacity == 0 {
      for index in 0..<count where UInt32(truncatingIfNeeded: few[index] >> 32) == hash {
        let candidate = UInt32(truncatingIfNeeded: few[index]) - 1
        if isSame(candidate) { return candidate }
      }
      if count < few.count {
        few[count] = UInt64(hash) << 32 | UInt64(object + 1)
        count += 1
        return nil
      }
    }
    if 2 * (count + 1) > capacity { grow() }
    let slots = slots.unsafelyUnwrapped
    let mask = capacity - 1
    var index = Int(hash) & mask
    while slots[index] != 0 {
      let candidate = UInt32(truncatingIfNeeded: slots[index]) - 1
      if UInt32(truncatingIfNeeded: slots[index] >> 32) == hash, isSame(candidate) {
        return candidate
      }
      index = (index + 1) & mask
    }
    slots[index] = UInt64(hash) << 32 | UInt64(object + 1)
    count += 1
    return nil
  }

  /// Returns the object of an equal key beyond ASCII; if no key is equal, adds the key with
  /// `object`.
  mutating func find(_ text: String, orInsert object: UInt32) -> UInt32? {
    if let known = beyondASCII[text] { return known }
    beyondASCII[text] = object
    return nil
  }

  /// The ASCII text that equals a text; nil if there is none.
  ///
  /// Unicode has three characters that are other spellings of ASCII characters: the sign for
  /// kelvin, the Greek question mark and the Greek varia.
  static func ascii(_ text: String) -> [UInt8]? {
    var bytes: [UInt8] = []
    for scalar in text.unicodeScalars {
      switch scalar.value {
      case 0..<0x80: bytes.append(UInt8(scalar.value))
      case 0x212A: bytes.append(UInt8(ascii: "K"))
      case 0x037E: bytes.append(UInt8(ascii: ";"))
      case 0x1FEF: bytes.append(UInt8(ascii: "`"))
      default: return nil
      }
    }
    return bytes
  }

  private mutating func grow() {
    let larger = max(32, 2 * capacity)
    let memory = UnsafeMutablePointer<UInt64>.allocate(capacity: larger)
    memory.initialize(repeating: 0, count: larger)
    for old in 0..<(capacity == 0 ? few.count : capacity) {
      let slot = slots?[old] ?? few[old]
      guard slot != 0 else { continue }
      var index = Int(slot >> 32) & (larger - 1)
      while memory[index] != 0 { index = (index + 1) & (larger - 1) }
      memory[index] = slot
    }
    free()
    slots = memory
    capacity = larger
  }

  func free() { slots?.deallocate() }
}
