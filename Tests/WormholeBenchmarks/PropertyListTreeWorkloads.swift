import Foundation
import WormholePropertyLists

/// An array of a thousand numbers, or of ten.
struct EncodeArray: Benchmark {
  static let name = "plist-encode-array"
  static let summary = "[Int] to binary, against Foundation's PropertyListEncoder"
  static func requiredRatio(_ size: Size) -> Double? { 4 }

  let numbers: [Int]
  let foundation: Foundation.PropertyListEncoder

  init(size: Size) throws {
    numbers = (0..<(size == .small ? 10 : 1000)).map { $0 * 37 }
    foundation = Foundation.PropertyListEncoder()
    foundation.outputFormat = .binary
    let bytes = try BinaryEncoder().encode(numbers)
    let read = try Foundation.PropertyListDecoder().decode([Int].self, from: Data(bytes))
    try Sample.check(read == numbers, Self.name)
  }

  func ours() throws { _ = try BinaryEncoder().encode(numbers) }
  func baseline() throws { _ = try foundation.encode(numbers) }
}

struct DecodeArray: Benchmark {
  static let name = "plist-decode-array"
  static let summary = "[Int] from binary, against Foundation's PropertyListDecoder"
  static func requiredRatio(_ size: Size) -> Double? { 4 }

  let bytes: [UInt8]
  let data: Data

  init(size: Size) throws {
    let numbers = (0..<(size == .small ? 10 : 1000)).map { $0 * 37 }
    let foundation = Foundation.PropertyListEncoder()
    foundation.outputFormat = .binary
    bytes = try BinaryEncoder().encode(numbers)
    data = try foundation.encode(numbers)
    let read = try BinaryDecoder().decode([Int].self, from: Array(data))
    try Sample.check(read == numbers, Self.name)
  }

  func ours() throws { _ = try BinaryDecoder().decode([Int].self, from: bytes) }
  func baseline() throws {
    _ = try Foundation.PropertyListDecoder().decode([Int].self, from: data)
  }
}

/// The same tree as a value of both libraries.
private struct Tree {
  let value: PropertyListValue
  let object: Any

  init(_ size: Size) throws {
    value = try PropertyListValue(encoding: Sample.messages(size))
    object = try PropertyListSerialization.propertyList(
      from: Data(BinaryPropertyList.encode(value)), format: nil)
  }
}

struct EncodeValue: Benchmark {
  static let name = "plist-value-encode"
  static let summary = "PropertyListValue to binary, against PropertyListSerialization"
  /// The ratio is required for a tree; for a dictionary of five values it is only reported.
  static func requiredRatio(_ size: Size) -> Double? { size == .large ? 10 : nil }

  private let tree: Tree

  init(size: Size) throws { tree = try Tree(size) }

  func ours() throws { _ = try BinaryPropertyList.encode(tree.value) }
  func baseline() throws {
    _ = try PropertyListSerialization.data(
      fromPropertyList: tree.object, format: .binary, options: 0)
  }
}

struct DecodeValue: Benchmark {
  static let name = "plist-value-decode"
  static let summary = "PropertyListValue from binary, against PropertyListSerialization"
  /// The ratio is required for a tree; for a dictionary of five values it is only reported.
  static func requiredRatio(_ size: Size) -> Double? { size == .large ? 10 : nil }

  let bytes: [UInt8]
  let data: Data

  init(size: Size) throws {
    let tree = try Tree(size)
    bytes = try BinaryPropertyList.encode(tree.value)
    data = try PropertyListSerialization.data(
      fromPropertyList: tree.object, format: .binary, options: 0)
    try Sample.check(try BinaryPropertyList.decode(Array(data)) == tree.value, Self.name)
  }

  func ours() throws { _ = try BinaryPropertyList.decode(bytes) }
  func baseline() throws {
    _ = try PropertyListSerialization.propertyList(from: data, format: nil)
  }
}
