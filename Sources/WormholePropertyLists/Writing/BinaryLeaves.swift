package import FoundationEssentials

/// The dictionary at the top of a file, for leaves and arrays that are written one by one.
package struct BinaryLeaves {
  private let writer: BinaryWriter
  private let dictionary: UInt32

  init(_ writer: BinaryWriter) {
    self.writer = writer
    dictionary = writer.container(isDictionary: true, at: BinaryWriter.top)
  }

  package func add(_ key: StaticString, _ value: Int) { put(writer.add(Int64(value)), key) }
  package func add(_ key: StaticString, _ value: Date) { put(writer.add(value), key) }
  package func add(_ key: StaticString, _ value: String) { put(writer.add(value), key) }
  package func add(_ key: StaticString, _ value: Bool) { put(writer.add(value), key) }

  package func add(
    _ key: StaticString, integer value: some FixedWidthInteger
  ) throws(PropertyListError) {
    try put(writer.add(integer: value), key)
  }

  package func add(
    _ key: StaticString, _ value: PropertyListValue
  ) throws(PropertyListError) {
    try writer.add(value, to: addLink(for: key))
  }

  package func add<T: Encodable>(_ key: StaticString, _ value: T) throws {
    try writer.encode(value, at: addLink(for: key))
  }

  /// Adds a dictionary of strings, whose keys must consist of ASCII characters.
  package func add(_ key: StaticString, _ fields: [String: String]) {
    let inner = writer.container(isDictionary: true, at: addLink(for: key))
    for (key, value) in fields.sorted(by: { $0.key < $1.key }) {
      let object = writer.add(value)
      let link = writer.link(in: inner, key: key)
      writer.links[Int(link)].value = object
    }
  }

  private func put(_ object: UInt32, _ key: StaticString) {
    let link = Int(addLink(for: key))  // Adds a link, so not within the next line.
    writer.links[link].value = object
  }

  /// Adds a link for a key, which must be new and consist of ASCII characters.
  func addLink(for key: StaticString) -> UInt32 {
    let text = UnsafeRawBufferPointer(start: key.utf8Start, count: key.utf8CodeUnitCount)
    return writer.addLink(to: dictionary, key: writer.addKey(ascii: text.bytes))
  }
}
