/// A decoder that reads any `Decodable` from a binary property list.
///
/// The decoder validates all the bytes, and then reads only the values that the type requests: a
/// key that the type does not request costs no further time.
package struct BinaryDecoder: Sendable {
  package var limits: PropertyListLimits
  // Not a literal, which is a call even if it is empty.
  package var userInfo = [CodingUserInfoKey: any Sendable]()

  package init(limits: PropertyListLimits = .default) { self.limits = limits }

  /// The value in the file.
  ///
  /// Failures are `PropertyListError`; errors that the type's own code throws pass unchanged,
  /// except that a `DecodingError` becomes a `PropertyListError` with the same path.
  package func decode<T: Decodable>(_ type: T.Type, from bytes: [UInt8]) throws -> T {
    try decode(type, from: try open(bytes))
  }

  /// Validates a file, for several readings.
  ///
  /// - Parameter isSealChecked: whether the caller has just verified the checksum.
  package func open(
    _ bytes: [UInt8], isSealChecked: Bool = false
  ) throws(PropertyListError) -> BinaryDocument {
    try BinaryDocument(bytes, limits: limits, isSealChecked: isSealChecked)
  }

  /// Decodes the value of an opened file.
  package func decode<T: Decodable>(_ type: T.Type, from document: BinaryDocument) throws -> T {
    let session = DecodingSession(document, userInfo: userInfo)
    do {
      return try session.decode(type, document.layout.top)
    } catch {
      throw PropertyListError.translating(error)
    }
  }

  /// Decodes one value of the dictionary in a file; nil if the dictionary lacks the key.
  package func decode<T: Decodable>(
    _ type: T.Type, forKey key: String, from document: BinaryDocument
  ) throws -> T? {
    let session = DecodingSession(document, userInfo: userInfo)
    let top = document.layout.top
    let head = session.head(of: top)
    guard head.kind == .dictionary, let value = session.child(key, of: top, head) else {
      return nil
    }
    do {
      return try session.decode(type, value)
    } catch {
      throw PropertyListError.translating(error)
    }
  }
}

extension BinaryDecoder {
  /// Decodes one value of the dictionary in a file, which must have the key.
  package func decode<T: Decodable>(
    _ type: T.Type, requiredKey key: String, from document: BinaryDocument
  ) throws -> T {
    guard let value = try decode(type, forKey: key, from: document) else {
      throw PropertyListError(.missingKey, "no key '\(key)'")
    }
    return value
  }

  /// Whether the dictionary in a file has a key.
  package func has(_ key: String, in document: BinaryDocument) -> Bool {
    let session = DecodingSession(document, userInfo: userInfo)
    let top = document.layout.top
    let head = session.head(of: top)
    return head.kind == .dictionary && session.child(key, of: top, head) != nil
  }
}

extension PropertyListValue {
  /// Creates the value as which an `Encodable` encodes.
  package init(
    encoding value: some Encodable, limits: PropertyListLimits = .default
  ) throws {
    self = try BinaryPropertyList.decode(
      BinaryEncoder(limits: limits).encode(value), limits: limits)
  }

  /// Decodes the value as a type.
  package func decode<T: Decodable>(
    _ type: T.Type, limits: PropertyListLimits = .default
  ) throws -> T {
    try BinaryDecoder(limits: limits)
      .decode(type, from: BinaryPropertyList.encode(self, limits: limits))
  }
}

/// The decoder that a type receives: an object in a file.
struct ObjectDecoder: Decoder {
  let session: DecodingSession
  let object: Int

  var codingPath: [any CodingKey] { session.path(of: object) }
  var userInfo: [CodingUserInfoKey: Any] { session.userInfo }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    let head = session.head(of: object)
    guard head.kind == .dictionary else {
      throw session.mismatch([String: PropertyListValue].self, object)
    }
    return KeyedDecodingContainer(KeyedObjects(session: session, object: object, head: head))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    let head = session.head(of: object)
    guard head.kind == .array else { throw session.mismatch([PropertyListValue].self, object) }
    return UnkeyedObjects(session: session, object: object, head: head)
  }

  func singleValueContainer() throws -> any SingleValueDecodingContainer {
    SingleObject(session: session, object: object)
  }
}
