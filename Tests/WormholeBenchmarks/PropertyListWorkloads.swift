import Foundation
import WormholePropertyLists

/// The five fields of a typical application message.
struct Message: Codable, Equatable {
  var id: Int
  var title: String
  var sent: Date
  var price: Double
  var isRead: Bool

  static func sample(_ index: Int) -> Message {
    Message(
      id: 1000 + index, title: "Two seats for tonight, row \(index)",
      sent: Date(timeIntervalSinceReferenceDate: 800_000_000.25 + Double(index)),
      price: 12.5 + Double(index), isRead: index % 2 == 0)
  }
}

/// The encoded values: one message in the small size, a thousand messages in the large size.
enum Sample {
  static func messages(_ size: Size) -> [Message] {
    (0..<(size == .small ? 1 : 1000)).map(Message.sample)
  }

  static func check(_ isRight: Bool, _ name: String) throws {
    if !isRight { throw BenchmarkError.wrongResult(name) }
  }
}

struct EncodeMessage: Benchmark {
  static let name = "plist-encode"
  static let summary = "Codable to binary, against Foundation's PropertyListEncoder"
  static func requiredRatio(_ size: Size) -> Double? { 4 }

  let messages: [Message]
  let foundation: Foundation.PropertyListEncoder

  init(size: Size) throws {
    messages = Sample.messages(size)
    foundation = Foundation.PropertyListEncoder()
    foundation.outputFormat = .binary
    let bytes = try BinaryEncoder().encode(messages)
    let read = try Foundation.PropertyListDecoder().decode([Message].self, from: Data(bytes))
    try Sample.check(read == messages, Self.name)
  }

  func ours() throws {
    if messages.count == 1 {
      _ = try BinaryEncoder().encode(messages[0])
    } else {
      _ = try BinaryEncoder().encode(messages)
    }
  }

  func baseline() throws {
    if messages.count == 1 {
      _ = try foundation.encode(messages[0])
    } else {
      _ = try foundation.encode(messages)
    }
  }
}

struct DecodeMessage: Benchmark {
  static let name = "plist-decode"
  static let summary = "Codable from binary, against Foundation's PropertyListDecoder"
  static func requiredRatio(_ size: Size) -> Double? { 4 }

  let isSmall: Bool
  let bytes: [UInt8]
  let data: Data

  init(size: Size) throws {
    let messages = Sample.messages(size)
    isSmall = size == .small
    let foundation = Foundation.PropertyListEncoder()
    foundation.outputFormat = .binary
    bytes = try isSmall ? BinaryEncoder().encode(messages[0]) : BinaryEncoder().encode(messages)
    data = try isSmall ? foundation.encode(messages[0]) : foundation.encode(messages)
    if !isSmall {
      let read = try BinaryDecoder().decode([Message].self, from: Array(data))
      try Sample.check(read == messages, Self.name)
    }
  }

  func ours() throws {
    if isSmall {
      _ = try BinaryDecoder().decode(Message.self, from: bytes)
    } else {
      _ = try BinaryDecoder().decode([Message].self, from: bytes)
    }
  }

  func baseline() throws {
    if isSmall {
      _ = try Foundation.PropertyListDecoder().decode(Message.self, from: data)
    } else {
      _ = try Foundation.PropertyListDecoder().decode([Message].self, from: data)
    }
  }
}
