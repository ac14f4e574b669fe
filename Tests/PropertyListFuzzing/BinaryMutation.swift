import WormholePropertyLists

/// Damages a binary property list at its weak points.
struct BinaryMutation {
  var bytes: [UInt8]

  private static let trailer = 32

  /// Applies one to four changes, and mostly corrects the checksum, as the code behind the checksum
  /// would not be reached otherwise.
  static func mutate(_ file: [UInt8], _ random: inout Random) -> [UInt8] {
    var mutation = BinaryMutation(bytes: file)
    for _ in 0...random.below(4) { mutation.change(&random) }
    switch random.below(8) {
    case 0: break
    case 1: mutation.seal([0xC3, 0x32, 1, 2, 3, 4])
    default: mutation.seal([0, 0, 0, 0, 0, 0])
    }
    return mutation.bytes
  }

  private mutating func seal(_ seal: [UInt8]) {
    guard bytes.count >= Self.trailer else { return }
    let start = bytes.count - Self.trailer
    bytes.replaceSubrange(start..<start + 6, with: seal)
  }

  private mutating func change(_ random: inout Random) {
    guard bytes.count > 40 else {
      bytes.append(UInt8(random.below(256)))
      return
    }
    switch random.below(12) {
    case 0: bytes[random.below(bytes.count)] ^= 1 << UInt8(random.below(8))
    case 1: bytes[random.below(bytes.count)] = random.pick([0, 1, 0x7F, 0x80, 0xFF])
    case 2, 3: changeMarker(&random)
    case 4, 5: changeOffset(&random)
    case 6, 7: changeReference(&random)
    case 8, 9: changeTrailer(&random)
    case 10: splice(&random)
    default: bytes.removeLast(random.below(bytes.count))
    }
  }

  private func number(at offset: Int, width: Int) -> Int {
    guard offset >= 0, width <= 8, offset <= bytes.count - width else { return 0 }
    return bytes[offset..<offset + width].reduce(0) { $0 << 8 | Int($1) }
  }

  private var start: Int { bytes.count - Self.trailer }
  private var offsetSize: Int { max(1, Int(bytes[start + 6])) }
  private var count: Int { number(at: start + 8, width: 8) }
  private var table: Int { number(at: start + 24, width: 8) }

  private func object(_ random: inout Random) -> Int? {
    let index = random.below(min(max(count, 0), 1 << 20))
    guard table > 0, table < bytes.count, offsetSize <= 8 else { return nil }
    let offset = number(at: table + index * offsetSize, width: offsetSize)
    return (8..<start).contains(offset) ? offset : nil
  }

  private mutating func changeMarker(_ random: inout Random) {
    guard let offset = object(&random) else { return }
    let kinds: [UInt8] = [0, 1, 2, 3, 4, 5, 6, 7, 8, 0xA, 0xB, 0xC, 0xD, 0xF]
    switch random.below(3) {
    case 0: bytes[offset] = bytes[offset] & 0xF | random.pick(kinds) << 4
    case 1: bytes[offset] = bytes[offset] & 0xF0 | UInt8(random.below(16))
    default:
      bytes[offset] |= 0xF
      if offset + 1 < bytes.count { bytes[offset + 1] = 0x10 | UInt8(random.below(6)) }
    }
  }

  private mutating func changeOffset(_ random: inout Random) {
    guard table > 0, table < start, let other = object(&random) else { return }
    let entry = table + random.below(count) * offsetSize + offsetSize - 1
    guard entry >= 0, entry < start else { return }
    bytes[entry] = UInt8(truncatingIfNeeded: other + random.pick([0, 0, 1, -1, 8]))
  }

  private mutating func changeReference(_ random: inout Random) {
    guard let offset = object(&random), bytes[offset] >= 0xA0 else { return }
    let length = Int(bytes[offset] & 0xF)
    let target = offset + 1 + random.below(2 * length)
    guard target < bytes.count else { return }
    bytes[target] = UInt8(truncatingIfNeeded: random.below(count + 1))
  }

  private mutating func changeTrailer(_ random: inout Random) {
    let field = start + random.pick([6, 7, 8, 12, 14, 15, 16, 22, 23, 24, 30, 31])
    bytes[field] = random.pick([0, 1, 2, 3, 4, 8, 9, 16, 0x7F, 0x80, 0xFF, bytes[field] &+ 1])
  }

  private mutating func splice(_ random: inout Random) {
    let from = random.below(bytes.count)
    let piece = bytes[from..<min(bytes.count, from + random.below(40))]
    bytes.insert(contentsOf: Array(piece), at: random.below(bytes.count))
  }
}
