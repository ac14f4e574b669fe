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
