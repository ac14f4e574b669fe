import Foundation
import WormholePropertyLists

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
