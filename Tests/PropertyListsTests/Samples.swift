import FoundationEssentials
import WormholePropertyLists

/// Values that every form has to carry.
enum Samples {
  static let scalars: [PropertyListValue] = [
    .boolean(true), .boolean(false), .string(""), .string("a"), .string("fifteen letters"),
    .string(String(repeating: "long ", count: 100)), .string("Grüße, 世界 🎬"),
    .string("\u{7f}\u{80}"),
    .string("<&>\"'\n\t"), .integer(0), .integer(1), .integer(127), .integer(128), .integer(255),
    .integer(256), .integer(65535), .integer(65536), .integer(4_294_967_295),
    .integer(4_294_967_296), .integer(-1), .integer(.min), .integer(.max), .unsigned(.max),
    .unsigned(1 << 63), .real(0), .real(-0.0), .real(0.1), .real(.greatestFiniteMagnitude),
    .real(.leastNonzeroMagnitude), .real(-.pi), .real(1e21), .real(.infinity), .real(-.infinity),
    .real(.nan), .data(Data()), .data(Data([0])), .data(Data((0..<300).map { UInt8($0 % 256) })),
    .date(Date(timeIntervalSinceReferenceDate: 0)),
    .date(Date(timeIntervalSinceReferenceDate: 812_345_678.123456)),
    .date(Date(timeIntervalSinceReferenceDate: -63_114_076_800)),
  ]

  static let tree: PropertyListValue = [
    "scalars": .array(scalars),
    "empty": [[:], [], ["": ""]],
    "nested": ["a": ["b": ["c": [1, 2, [3, "x", true]]]]],
    "Ärger": ["same": "same", "🎬": 1.5],
  ]

  /// A tree of a number of objects, for widths of references and offsets.
  static func wide(_ count: Int) -> PropertyListValue {
    .array((0..<count).map { ["number": .integer(Int64($0)), "name": .string("item \($0)")] })
  }

  static func deep(_ depth: Int) -> PropertyListValue {
    (0..<depth).reduce("bottom") { value, _ in .array([value]) }
  }
}
