internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The contents of a file of messages, retained while in use.
final class Contents: Sendable {
  let document: MessageFile.Document
  private let name: MessageName
  private let limits: PropertyListLimits
  /// The values in the type requested last: a batch is decoded once, not once a message.
  private let decoded = Monitor<AnyObject?>(nil)

  init(_ name: MessageName, _ document: MessageFile.Document, _ limits: PropertyListLimits) {
    self.name = name
    self.document = document
    self.limits = limits
  }

  @_specialize(where Value == Data)
  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    if let value = document.leaf(index, as: type) { return value }
    let operation = "read message"
    guard name.count > 1 else {
      let (list, limits) = (document.list, limits)
      return try WormholeError.reading(operation, name.id, of: .message, as: Value.self) {
        try BinaryDecoder(limits: limits).value(as: type, in: list)
      }
    }
    switch try values(as: type).all[index] {
    case .success(let value): return value
    case .failure(let error):
      throw WormholeError(
        error, operation, name.id, of: .message, as: Value.self, otherwise: .typeMismatch)
    }
  }

  /// Returns all values of a batch.
  ///
  /// Two concurrent callers may both decode: a type's own code may do anything, and is not called
  /// under a lock.
  private func values<Value: Decodable & Sendable>(
    as type: Value.Type
  ) throws(WormholeError) -> DecodedValues<Value> {
    if let known = decoded.withLock({ $0 }) as? DecodedValues<Value> { return known }
    let (list, limits) = (document.list, limits)
    let values = try WormholeError.reading(
      "read message", name.id, of: .message, as: Value.self
    ) {
      try DecodedValues(
        BinaryDecoder(limits: limits)
          .decode(MessageFile.OpenedBatch<Value>.self, from: list).values)
    }
    decoded.withLock { $0 = values }
    return values
  }
}

/// The values of a batch as one type.
private final class DecodedValues<Value: Sendable>: Sendable {
  /// As many as the batch's name states; the count was checked at the claim.
  let all: [Result<Value, any Error>]
  init(_ all: [Result<Value, any Error>]) { self.all = all }
}
