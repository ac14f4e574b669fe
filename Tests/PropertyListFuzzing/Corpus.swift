import FoundationEssentials
import WormholePropertyLists

/// The files that mutation starts from.
enum Corpus {
  /// A value with a bit of everything, up to a depth.
  static func value(_ random: inout Random, depth: Int = 4) -> PropertyListValue {
    switch random.below(depth > 0 ? 14 : 9) {
    case 0: .boolean(random.chance(2))
    case 1: .integer(Int64(truncatingIfNeeded: random.next() >> random.below(64)))
    case 2: .unsigned(random.next())
    case 3: .real(Double(bitPattern: random.next()))
    case 4: .real(Double(random.below(1000)) / 8)
    case 5: .date(Date(timeIntervalSinceReferenceDate: Double(random.below(1 << 30)) / 16))
    case 6: .data(Data((0..<random.below(20)).map { UInt8($0) }))
    case 7, 8: .string(string(&random))
    case 9, 10, 11:
      .array((0..<random.below(6)).map { _ in value(&random, depth: depth - 1) })
    default:
      .dictionary(
        Dictionary(
          (0..<random.below(6)).map { _ in
            (string(&random), value(&random, depth: depth - 1))
          }
        ) { $1 })
    }
  }

  private static func string(_ random: inout Random) -> String {
    switch random.below(6) {
    case 0: random.pick(["", "$null", "$date", "$$x", "super", "value", "version", "children"])
    case 1: String(repeating: "long", count: random.below(20))
    case 2: random.pick(["é", "e\u{301}", "🎬", "日本", "\u{10FFFF}", "<&>\"'"])
    default: "k\(random.below(8))"
    }
  }

  /// Values for the types whose decoding is tried.
  static let typed: [PropertyListValue] = [
    [
      "name": "root",
      "children": [["name": "a", "children": []], ["name": "b", "children": [["children": []]]]],
    ],
    ["version": 1, "sent": .date(Date(timeIntervalSinceReferenceDate: 1)), "value": [1, 2, "x"]],
    ["text": ["_0": "a", "size": 3]], [1, 2, 3, 4], [["a": 1.5], ["b": 2]],
  ]
}

/// A file of a kind that our writer never makes.
package enum SharedReferences {
  /// Arrays of arrays, `levels` deep; each refers `width` times to the same next array.
  package static func file(levels: Int, width: Int) -> [UInt8] {
    var objects: [[UInt8]] = []
    for level in 0..<levels {
      objects.append([0xA0 | UInt8(width)] + Array(repeating: UInt8(level + 1), count: width))
    }
    objects.append([0x51, 0x61])
    var bytes = Array("bplist00".utf8)
    var table: [UInt8] = []
    for object in objects {
      table += [UInt8(bytes.count >> 8), UInt8(bytes.count & 0xFF)]
      bytes += object
    }
    let start = bytes.count
    bytes += table + [0, 0, 0, 0, 0, 0, 2, 1]
    for number in [objects.count, 0, start] {
      bytes += (0..<8).reversed().map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
    }
    return bytes
  }
}
