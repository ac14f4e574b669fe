import FoundationEssentials

/// Turns any `Encodable` straight into a binary property list.
///
/// The file is what Foundation's `PropertyListEncoder` would mean by it: nil is the string `$null`,
/// a value that encodes nothing is an empty dictionary, a superclass is under the key `super`. Any
/// value may be at the top, also a mere number.
package struct BinaryEncoder: Sendable {
  package var limits: PropertyListLimits
  package var userInfo: [CodingUserInfoKey: any Sendable] = [:]

  package init(limits: PropertyListLimits = .default) { self.limits = limits }

  /// The file, its checksum included.
  ///
  /// Failures are `PropertyListError`; errors that the value's own code throws pass unchanged.
  package func encode<T: Encodable>(_ value: T) throws -> [UInt8] {
    try write { writer in
      try writer.encode(value, at: BinaryWriter.top)
      if writer.links[0].value == BinaryWriter.Link.none {
        throw PropertyListError(.missingValue, "the value encodes nothing")
      }
    }
  }

  /// A dictionary of leaves, written without the ways of `Codable`, and of a value behind them.
  package func encode<T: Encodable>(
    _ value: T, forKey key: StaticString, _ leaves: (BinaryLeaves) -> Void
  ) throws -> [UInt8] {
    try write { writer in
      let beside = BinaryLeaves(writer)
      leaves(beside)
      try writer.encode(value, at: beside.place(for: key))
    }
  }

  /// The same with an array of values.
  package func encode<T: Encodable>(
    elements: ArraySlice<T>, forKey key: StaticString, _ leaves: (BinaryLeaves) -> Void
  ) throws -> [UInt8] {
    try write { writer in
      let beside = BinaryLeaves(writer)
      leaves(beside)
      let array = writer.container(isDictionary: false, at: beside.place(for: key))
      // `T` is the type that it was compared with, which is what makes `unsafeBitCast` right.
      if T.self == Data.self {
        return try writer.add(unsafeBitCast(elements, to: ArraySlice<Data>.self), to: array)
      }
      for element in elements { try writer.encode(element, at: writer.addLink(to: array)) }
    }
  }

  /// The leaves alone.
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
  /// What stands for nil in a format that has none, as Foundation writes it.
  static let null = "$null"

  /// Encodes a value into a place; a place whose value fails is given up.
  func encode<T: Encodable>(_ value: T, at link: UInt32) throws {
    do {
      // Before going down, or a value without end would use up the stack.
      if let failure { throw failure }
      if let object = addDirectly(value) {
        links[Int(link)].value = object
      } else if T.self == PropertyListValue.self {
        try add(unsafeBitCast(value, to: PropertyListValue.self), to: link)
      } else {
        try value.encode(to: PlaceEncoder(writer: self, link: link))
      }
      try check()
    } catch let error as PropertyListError {
      let failed = wrapped(error, value, at: link)
      remove(link)
      throw failed
    } catch {
      remove(link)
      throw error
    }
  }

  /// Puts a leaf in a place.
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

  /// The way from the top to a place.
  func path(of link: UInt32) -> [any CodingKey] {
    var path: [any CodingKey] = []
    var link = links[Int(link)]
    while link.owner != Link.none {
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

  private func position(of link: Link, in owner: Container) -> Int {
    var position = 0
    var next = owner.first
    while next != Link.none, links[Int(next)].next != link.next {
      position += 1
      next = links[Int(next)].next
    }
    return position
  }

  private func key(_ object: UInt32) -> String {
    let layout = BinaryLayout(offsetSize: 8, referenceSize: 1, count: 0, top: 0, table: 0)
    // There is no trailer yet, which whoever reads numbers counts on.
    let file = Array(bytes.raw) + [UInt8](repeating: 0, count: BinaryFormat.trailerLength)
    return file.withUnsafeBytes { file in
      let objects = BinaryObjects(bytes: file, layout: layout)
      return objects.string(objects.head(at: offsets[Int(object)]))
    }
  }
}

/// The encoder that a value gets: a place in a file.
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
  /// The container in a place; a class and its superclass may ask for the same one.
  func container(isDictionary: Bool, at link: UInt32) -> UInt32 {
    let value = links[Int(link)].value
    guard value < Link.removed else { return addContainer(isDictionary: isDictionary, at: link) }
    if value & Link.container != 0 {
      let index = value & ~Link.container
      if containers[Int(index)].isDictionary == isDictionary { return index }
    }
    if failure == nil {
      failure = PropertyListError(.invalidValue, "two values of different kinds in one place")
    }
    return addContainer(isDictionary: isDictionary, at: link)
  }

  /// The place for a key of which there may be one already.
  func nestedLink(in container: UInt32, key: String) -> UInt32 {
    let key = addKey(key)
    var link = containers[Int(container)].first
    while link != Link.none {
      if links[Int(link)].key == key, links[Int(link)].value != Link.removed { return link }
      link = links[Int(link)].next
    }
    return addLink(to: container, key: key)
  }
}
