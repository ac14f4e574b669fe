import FoundationEssentials

/// An encoder that turns any `Encodable` straight into a binary property list.
///
/// The file has the meaning that Foundation's `PropertyListEncoder` would give it: nil is the
/// string `$null`, a value that encodes nothing is an empty dictionary, a superclass is under the
/// key `super`. Any value may be at the top, even a mere number.
package struct BinaryEncoder: Sendable {
  package var limits: PropertyListLimits
  package var userInfo = [CodingUserInfoKey: any Sendable]()

  package init(limits: PropertyListLimits = .default) { self.limits = limits }

  /// Returns the file, its checksum included.
  ///
  /// Failures are `PropertyListError`; errors that the value's own code throws pass unchanged.
  package func encode<T: Encodable>(_ value: T) throws -> [UInt8] {
    try write { writer in
      try writer.encode(value, at: BinaryWriter.top)
      if writer.links[0].value == BinaryWriter.ElementLink.none {
        throw PropertyListError(.missingValue, "the value encodes nothing")
      }
    }
  }

  /// Writes a dictionary of leaves, without the cost of `Codable`, followed by one value.
  package func encode<T: Encodable>(
    _ value: T, forKey key: StaticString, _ leaves: (BinaryLeaves) throws -> Void
  ) throws -> [UInt8] {
    try write { writer in
      let beside = BinaryLeaves(writer)
      try leaves(beside)
      try writer.encode(value, at: beside.addLink(for: key))
    }
  }

  /// Writes a dictionary of leaves, followed by an array of values.
  package func encode<T: Encodable>(
    elements: ArraySlice<T>, forKey key: StaticString, _ leaves: (BinaryLeaves) throws -> Void
  ) throws -> [UInt8] {
    try write { writer in
      let beside = BinaryLeaves(writer)
      try leaves(beside)
      let array = writer.container(isDictionary: false, at: beside.addLink(for: key))
      // `T` has been compared with `Data`, so `unsafeBitCast` is correct.
      if T.self == Data.self {
        return try writer.add(unsafeBitCast(elements, to: ArraySlice<Data>.self), to: array)
      }
      for element in elements { try writer.encode(element, at: writer.addLink(to: array)) }
    }
  }

  /// Writes a dictionary of leaves alone.
  package func encode(_ leaves: (BinaryLeaves) throws -> Void) throws -> [UInt8] {
    try write { try leaves(BinaryLeaves($0)) }
  }

  private func write(_ body: (BinaryWriter) throws -> Void) throws -> [UInt8] {
    let writer = BinaryWriter(limits: limits)
    writer.userInfo = userInfo
    do {
      try body(writer)
      try writer.check()
      return try writer.finish()
    } catch var error as PropertyListError {
      error.isWriting = true
      throw error
    } catch {
      throw PropertyListError.translating(error)
    }
  }
}

extension BinaryWriter {
  /// The text that represents nil in a format without nil, as Foundation writes it.
  static let null = "$null"

  /// Encodes a value into a link; if the value fails, the link is removed.
  func encode<T: Encodable>(_ value: T, at link: UInt32) throws {
    do {
      try encode(single: value, at: link)
    } catch {
      remove(link)
      throw error
    }
  }

  /// Encodes the single value of a place; if the value fails, the place stays as it was.
  ///
  /// The link belongs to the container around the place, which alone may remove the link: the value
  /// that has failed may be one of several attempts.
  func encode<T: Encodable>(single value: T, at link: UInt32) throws {
    let before = links[Int(link)].value
    do {
      // Checked before going down, or a value without end would use up the stack.
      if let failure { throw failure }
      if let object = addDirectly(value) {
        links[Int(link)].value = object
      } else if T.self == PropertyListValue.self {
        try add(unsafeBitCast(value, to: PropertyListValue.self), to: link)
      } else if T.self == [String: PropertyListValue].self {
        try add(unsafeBitCast(value, to: [String: PropertyListValue].self), to: link)
      } else {
        try value.encode(to: PlaceEncoder(writer: self, link: link))
      }
      try check()
    } catch {
      let failed = (error as? PropertyListError).map { wrapped($0, value, at: link) } ?? error
      links[Int(link)].value = before
      throw failed
    }
  }

  /// Stores a leaf in a link.
  @inline(__always)
  func put<T>(_ object: UInt32, of value: T, at link: UInt32) throws {
    links[Int(link)].value = object
    do { try check() } catch { throw wrapped(error, value, at: link) }
  }

  func wrapped<T>(_ error: PropertyListError, _ value: T, at link: UInt32) -> EncodingError {
    EncodingError.invalidValue(
      value,
      EncodingError.Context(
        codingPath: path(of: link), debugDescription: error.reason, underlyingError: error))
  }

  /// Returns the path from the top to a link.
  func path(of link: UInt32) -> [any CodingKey] {
    var path: [any CodingKey] = []
    var link = links[Int(link)]
    while link.owner != ElementLink.none {
      let owner = containers[Int(link.owner)]
      if owner.isDictionary {
        path.append(PathKey(stringValue: key(link.key)))
      } else {
        path.append(PathKey(intValue: position(of: link, in: owner)))
      }
      link = links[Int(owner.link)]
    }
    return path.reversed()
  }

  private func position(of link: ElementLink, in owner: ElementContainer) -> Int {
    var position = 0
    var next = owner.first
    while next != ElementLink.none, links[Int(next)].next != link.next {
      if links[Int(next)].value != ElementLink.removed { position += 1 }
      next = links[Int(next)].next
    }
    return position
  }

  func key(_ object: UInt32) -> String {
    let layout = BinaryLayout(offsetSize: 8, referenceSize: 1, count: 0, top: 0, table: 0)
    // The file has no trailer yet, but readers of numbers depend on a trailer's length behind them.
    // Only the key is copied: the path of each element of a large value contains keys.
    let start = offsets[Int(object)]
    let key = bytes.raw[start..<start + size(of: object)]
    let file = Array(key) + [UInt8](repeating: 0, count: BinaryFormat.trailerLength)
    return file.withUnsafeBytes { file in
      let objects = BinaryObjects(bytes: file, layout: layout)
      return objects.string(objects.head(at: 0))
    }
  }
}

/// The encoder that a value receives: a link in a file.
struct PlaceEncoder: Encoder {
  let writer: BinaryWriter
  let link: UInt32

  var codingPath: [any CodingKey] { writer.path(of: link) }
  var userInfo: [CodingUserInfoKey: Any] { writer.userInfo }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    KeyedEncodingContainer(
      KeyedPlaces(writer: writer, container: writer.container(isDictionary: true, at: link)))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    UnkeyedPlaces(writer: writer, container: writer.container(isDictionary: false, at: link))
  }

  func singleValueContainer() -> any SingleValueEncodingContainer {
    SinglePlace(writer: writer, link: link)
  }
}

extension BinaryWriter {
  /// Returns the container in a link; a class and its superclass may request the same container.
  func container(isDictionary: Bool, at link: UInt32) -> UInt32 {
    let value = links[Int(link)].value
    guard value < ElementLink.removed else {
      return addContainer(isDictionary: isDictionary, at: link)
    }
    if value & ElementLink.container != 0 {
      let index = value & ~ElementLink.container
      if containers[Int(index)].isDictionary == isDictionary { return index }
    }
    if failure == nil {
      failure = PropertyListError(.invalidValue, "two values of different kinds in the same place")
    }
    return addContainer(isDictionary: isDictionary, at: link)
  }

  /// Returns the link of a key, which may already exist.
  ///
  /// Of several links of the key the last counts, so a nested container continues the last one.
  func nestedLink(in container: UInt32, key: String) -> UInt32 {
    let key = addKey(key)
    var found = ElementLink.none
    var link = containers[Int(container)].first
    while link != ElementLink.none {
      if links[Int(link)].key == key, links[Int(link)].value != ElementLink.removed { found = link }
      link = links[Int(link)].next
    }
    return found == ElementLink.none ? addLink(to: container, key: key) : found
  }
}

extension BinaryWriter {
  /// Writes a leaf without calling its `encode(to:)`; returns nil for every other type.
  ///
  /// `T` has been compared with the type of each cast, so `unsafeBitCast` is correct; a dynamic
  /// cast of every element would cost more than writing the element.
  @inline(__always)
  func addDirectly<T>(_ value: T) -> UInt32? {
    if T.self == String.self { return add(unsafeBitCast(value, to: String.self)) }
    if T.self == Int.self { return add(Int64(unsafeBitCast(value, to: Int.self))) }
    if T.self == Double.self { return add(unsafeBitCast(value, to: Double.self)) }
    if T.self == Date.self { return add(unsafeBitCast(value, to: Date.self)) }
    if T.self == Data.self { return add(unsafeBitCast(value, to: Data.self)) }
    if T.self == Bool.self { return add(unsafeBitCast(value, to: Bool.self)) }
    return nil
  }
}
