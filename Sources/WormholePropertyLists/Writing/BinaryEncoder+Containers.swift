import FoundationEssentials

/// The container for the values of a dictionary.
struct KeyedPlaces<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let writer: BinaryWriter
  let container: UInt32

  var codingPath: [any CodingKey] { writer.path(ofContainer: container) }

  @inline(__always)
  private func link(_ key: Key) -> UInt32 { writer.link(in: container, key: key.stringValue) }

  func encodeNil(forKey key: Key) throws {
    try writer.put(writer.addNull(), of: BinaryWriter.null, at: link(key))
  }
  func encode(_ value: Bool, forKey key: Key) throws {
    try writer.put(writer.add(value), of: value, at: link(key))
  }
  func encode(_ value: String, forKey key: Key) throws {
    try writer.put(writer.add(value), of: value, at: link(key))
  }
  func encode(_ value: Double, forKey key: Key) throws {
    try writer.put(writer.add(value), of: value, at: link(key))
  }
  func encode(_ value: Float, forKey key: Key) throws {
    try writer.put(writer.add(value), of: value, at: link(key))
  }
  func encode(_ value: Int, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: Int8, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: Int16, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: Int32, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: Int64, forKey key: Key) throws { try integer(value, key) }
  func encode(_ value: UInt, forKey key: Key) throws { try unsigned(UInt64(value), key) }
  func encode(_ value: UInt8, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: UInt16, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: UInt32, forKey key: Key) throws { try integer(Int64(value), key) }
  func encode(_ value: UInt64, forKey key: Key) throws { try unsigned(value, key) }

  private func integer(_ value: Int64, _ key: Key) throws {
    try writer.put(writer.add(value), of: value, at: link(key))
  }
  private func unsigned(_ value: UInt64, _ key: Key) throws {
    try writer.put(writer.add(value), of: value, at: link(key))
  }

  func encode<T: Encodable>(_ value: T, forKey key: Key) throws {
    try writer.encode(value, at: link(key))
  }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type, forKey key: Key
  ) -> KeyedEncodingContainer<NestedKey> {
    PlaceEncoder(writer: writer, link: writer.nestedLink(in: container, key: key.stringValue))
      .container(keyedBy: keyType)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    PlaceEncoder(writer: writer, link: writer.nestedLink(in: container, key: key.stringValue))
      .unkeyedContainer()
  }

  func superEncoder() -> any Encoder {
    PlaceEncoder(
      writer: writer, link: writer.link(in: container, key: PathKey.super.stringValue))
  }

  func superEncoder(forKey key: Key) -> any Encoder {
    PlaceEncoder(writer: writer, link: link(key))
  }
}

/// The container for the values of an array.
struct UnkeyedPlaces: UnkeyedEncodingContainer {
  let writer: BinaryWriter
  let container: UInt32

  var codingPath: [any CodingKey] { writer.path(ofContainer: container) }
  var count: Int { writer.containers[Int(container)].count }

  private func link() -> UInt32 { writer.addLink(to: container) }

  func encodeNil() throws {
    try writer.put(writer.addNull(), of: BinaryWriter.null, at: link())
  }
  func encode(_ value: Bool) throws { try writer.put(writer.add(value), of: value, at: link()) }
  func encode(_ value: String) throws { try writer.put(writer.add(value), of: value, at: link()) }
  func encode(_ value: Double) throws { try writer.put(writer.add(value), of: value, at: link()) }
  func encode(_ value: Float) throws { try writer.put(writer.add(value), of: value, at: link()) }
  func encode<T: FixedWidthInteger & Encodable>(_ value: T) throws {
    try writer.put(writer.add(integer: value), of: value, at: link())
  }

  func encode<T: Encodable>(_ value: T) throws { try writer.encode(value, at: link()) }

  func nestedContainer<NestedKey: CodingKey>(
    keyedBy keyType: NestedKey.Type
  ) -> KeyedEncodingContainer<NestedKey> {
    PlaceEncoder(writer: writer, link: link()).container(keyedBy: keyType)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
    PlaceEncoder(writer: writer, link: link()).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { PlaceEncoder(writer: writer, link: link()) }
}

/// The container for one value.
struct SinglePlace: SingleValueEncodingContainer {
  let writer: BinaryWriter
  let link: UInt32

  var codingPath: [any CodingKey] { writer.path(of: link) }

  /// Fails if the place has a value: the second one would replace the first without a trace.
  ///
  /// Foundation's encoder ends the process in this case.
  private func claim() {
    guard writer.links[Int(link)].value < BinaryWriter.ElementLink.removed, writer.failure == nil
    else { return }
    writer.failure = PropertyListError(.invalidValue, "two values in the same place")
  }

  private func put<T>(_ object: UInt32, _ value: T) throws {
    claim()
    try writer.put(object, of: value, at: link)
  }

  func encodeNil() throws { try put(writer.addNull(), BinaryWriter.null) }
  func encode(_ value: Bool) throws { try put(writer.add(value), value) }
  func encode(_ value: String) throws { try put(writer.add(value), value) }
  func encode(_ value: Double) throws { try put(writer.add(value), value) }
  func encode(_ value: Float) throws { try put(writer.add(value), value) }
  func encode<T: FixedWidthInteger & Encodable>(_ value: T) throws {
    try put(writer.add(integer: value), value)
  }
  func encode<T: Encodable>(_ value: T) throws {
    claim()
    try writer.encode(single: value, at: link)
  }
}

extension BinaryWriter {
  @inline(__always)
  func link(in container: UInt32, key: String) -> UInt32 {
    addLink(to: container, key: addKey(key))
  }

  func path(ofContainer container: UInt32) -> [any CodingKey] {
    path(of: containers[Int(container)].link)
  }
}
