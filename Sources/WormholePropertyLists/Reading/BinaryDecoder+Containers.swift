/// The objects of a dictionary, by key.
struct KeyedObjects<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let session: DecodingSession
  let object: Int
  let head: ObjectHead

  var codingPath: [any CodingKey] { session.path(of: object) }

  var allKeys: [Key] {
    session.keys(of: head).compactMap { Key(stringValue: $0) }
  }

  func contains(_ key: Key) -> Bool {
    session.position(of: key.stringValue, in: object, head) != nil
  }

  @inline(__always)
  private func find(_ key: Key) throws -> Int {
    if let child = session.child(key.stringValue, of: object, head) { return child }
    throw DecodingError.keyNotFound(
      key, DecodingError.Context(codingPath: codingPath, debugDescription: "no such key"))
  }

  func decodeNil(forKey key: Key) throws -> Bool { session.isNull(try find(key)) }
  func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try session.bool(find(key)) }
  func decode(_ type: String.Type, forKey key: Key) throws -> String {
    try session.string(find(key))
  }
  func decode(_ type: Double.Type, forKey key: Key) throws -> Double {
    try session.double(find(key))
  }
  func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try session.float(find(key)) }
  func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try session.integer(find(key)) }
  func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try session.integer(find(key)) }
  func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 {
    try session.integer(find(key))
  }
  func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 {
    try session.integer(find(key))
  }
  func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 {
    try session.integer(find(key))
  }
  func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try session.integer(find(key)) }
  func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 {
    try session.integer(find(key))
  }
  func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 {
    try session.integer(find(key))
  }
  func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 {
    try session.integer(find(key))
  }
  func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 {
    try session.integer(find(key))
  }
  func decode<T: Decodable>(_ type: T.Type, forKey key: Key) throws -> T {
    try session.decode(type, find(key))
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try ObjectDecoder(session: session, object: find(key)).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try ObjectDecoder(session: session, object: find(key)).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder {
    guard let child = session.child(PathKey.super.stringValue, of: object, head) else {
      throw DecodingError.keyNotFound(
        PathKey.super,
        DecodingError.Context(codingPath: codingPath, debugDescription: "no such key"))
    }
    return ObjectDecoder(session: session, object: child)
  }

  func superDecoder(forKey key: Key) throws -> any Decoder {
    ObjectDecoder(session: session, object: try find(key))
  }
}

/// The objects of an array, one after the other.
struct UnkeyedObjects: UnkeyedDecodingContainer {
  let session: DecodingSession
  let object: Int
  let head: ObjectHead
  private(set) var currentIndex = 0

  var codingPath: [any CodingKey] { session.path(of: object) }
  var count: Int? { head.count }
  var isAtEnd: Bool { currentIndex >= head.count }

  /// Decodes the next element, and moves on only if the decoding succeeds.
  @inline(__always)
  private mutating func next<T>(_ decode: (DecodingSession, Int) throws -> T) throws -> T {
    guard currentIndex < head.count else {
      throw DecodingError.valueNotFound(
        T.self,
        DecodingError.Context(
          codingPath: codingPath + [PathKey(intValue: currentIndex)],
          debugDescription: "the array ends here"))
    }
    let index = currentIndex
    let value = try decode(session, session.child(index, of: object, head))
    currentIndex = index + 1
    return value
  }

  mutating func decodeNil() throws -> Bool {
    let isNull = try next { $0.isNull($1) }
    if !isNull { currentIndex -= 1 }
    return isNull
  }

  mutating func decode(_ type: Bool.Type) throws -> Bool { try next { try $0.bool($1) } }
  mutating func decode(_ type: String.Type) throws -> String {
    try next { try $0.string($1) }
  }
  mutating func decode(_ type: Double.Type) throws -> Double {
    try next { try $0.double($1) }
  }
  mutating func decode(_ type: Float.Type) throws -> Float { try next { try $0.float($1) } }
  mutating func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type) throws -> T {
    try next { try $0.integer($1) }
  }

  mutating func decode<T: Decodable>(_ type: T.Type) throws -> T {
    try next { try $0.decode(type, $1) }
  }

  mutating func nestedContainer<NestedKey: CodingKey>(
    keyedBy type: NestedKey.Type
  ) throws -> KeyedDecodingContainer<NestedKey> {
    try next { try ObjectDecoder(session: $0, object: $1).container(keyedBy: type) }
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try next { try ObjectDecoder(session: $0, object: $1).unkeyedContainer() }
  }

  mutating func superDecoder() throws -> any Decoder {
    try next { ObjectDecoder(session: $0, object: $1) }
  }
}

/// One object.
struct SingleObject: SingleValueDecodingContainer {
  let session: DecodingSession
  let object: Int

  var codingPath: [any CodingKey] { session.path(of: object) }

  func decodeNil() -> Bool { session.isNull(object) }
  func decode(_ type: Bool.Type) throws -> Bool { try session.bool(object) }
  func decode(_ type: String.Type) throws -> String { try session.string(object) }
  func decode(_ type: Double.Type) throws -> Double { try session.double(object) }
  func decode(_ type: Float.Type) throws -> Float { try session.float(object) }
  func decode<T: FixedWidthInteger & Decodable>(_ type: T.Type) throws -> T {
    try session.integer(object)
  }
  func decode<T: Decodable>(_ type: T.Type) throws -> T { try session.decode(type, object) }
}

extension DecodingSession {
  /// Returns the value of a key, and notes that the reader goes there.
  @inline(__always)
  func child(_ key: String, of object: Int, _ head: ObjectHead) -> Int? {
    guard let position = position(of: key, in: object, head) else { return nil }
    let child = document.read { $0.reference(head.count + position, of: head) }
    descend(to: child, from: object, index: position)
    return child
  }

  /// Returns the element at a valid index, and notes that the reader goes there.
  @inline(__always)
  func child(_ index: Int, of object: Int, _ head: ObjectHead) -> Int {
    let child = document.read { $0.reference(index, of: head) }
    descend(to: child, from: object, index: index)
    return child
  }

  func keys(of head: ObjectHead) -> [String] {
    document.read { objects in
      (0..<head.count).map { index in
        objects.string(objects.head(of: objects.reference(index, of: head)))
      }
    }
  }
}
