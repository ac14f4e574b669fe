internal import WormholeContainerStorage
internal import WormholePropertyLists

/// The file sent with a message.
public struct SentFile: Hashable, Sendable {
  /// The name of the sender's file.
  public let name: String
  /// The size of the file in bytes.
  public let size: Int

  /// Makes a description of a file, for tests of a program's handlers.
  public init(name: String, size: Int) {
    self.name = name
    self.size = size
  }
}

/// The sent content, read from its file: the same file from the inbox to the receipt, where the
/// sender's next incarnation reads the messages of the previous one.
struct SentContent: Hashable, Sendable {
  let kind: String
  let to: String
  let file: SentFile?
  let headers: [String: String]
  private let bytes: [UInt8]
  private let limits: PropertyListLimits

  /// Throws an error with the fault of the file.
  init(_ bytes: [UInt8], _ limits: PropertyListLimits) throws(WormholeError) {
    let header = try WormholeError.reading("read message", "that was sent", of: .message) {
      try MessageFile.Header(bytes, BinaryDecoder(limits: limits))
    }
    kind = header.kind
    to = header.to
    file = header.file.map { SentFile(name: $0.name, size: $0.size) }
    headers = header.headers?.fields ?? [:]
    self.bytes = bytes
    self.limits = limits
  }

  /// Returns the values in the order of sending; none if a file was sent without a value.
  func values<Value: Decodable>(
    as type: Value.Type, of id: String
  ) throws(WormholeError) -> [Value] {
    let (bytes, limits) = (bytes, limits)
    return try WormholeError.reading("read message", id, of: .message, as: Value.self) {
      let decoder = BinaryDecoder(limits: limits)
      let list = try decoder.open(bytes, isSealChecked: true)
      if list.fields?.has("values", near: 3) == true {
        return try decoder.decode(MessageFile.OpenedBatch<Value>.self, from: list).values
          .map { try $0.get() }
      }
      guard decoder.has(MessageFile.ValueKey.value.rawValue, in: list) else { return [] }
      return [try decoder.value(as: type, in: list)]
    }
  }

  /// Returns the only value.
  func value<Value: Decodable>(
    as type: Value.Type, of id: String
  ) throws(WormholeError) -> Value {
    let values = try values(as: type, of: id)
    guard values.count == 1 else {
      throw WormholeError(
        values.isEmpty ? .notFound : .typeMismatch, "read message", id,
        because: values.isEmpty
          ? "the message has a file, but no value" : "the batch contains \(values.count) messages",
        hint: values.isEmpty ? nil : "read the messages with 'values'")
    }
    return values[0]
  }
}
