/// Binary property lists, the form of every file in a container.
package enum BinaryPropertyList {
  /// Reads a whole file; refuses a file that is not exactly a binary property list.
  package static func decode(
    _ bytes: [UInt8], limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> PropertyListValue {
    let document = try BinaryDocument(bytes, limits: limits)
    return document.read { objects in
      var builder = TreeBuilder(objectCount: objects.layout.count)
      return builder.value(of: objects.layout.top, in: objects)
    }
  }

  /// Writes a whole file, its checksum included.
  package static func encode(
    _ value: PropertyListValue, limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> [UInt8] {
    let writer = BinaryWriter(limits: limits)
    do {
      try writer.add(value, to: BinaryWriter.top)
      return try writer.finish()
    } catch {
      var error = error
      error.isWriting = true
      throw error
    }
  }

  /// Checks that bytes are a binary property list, without making a value of them.
  package static func validate(
    _ bytes: [UInt8], limits: PropertyListLimits = .default
  ) throws(PropertyListError) {
    _ = try BinaryDocument(bytes, limits: limits)
  }

  /// Returns the state of a file's checksum; nil if the bytes are not a binary property list at
  /// all.
  ///
  /// The function checks nothing but the checksum.
  package static func seal(of bytes: [UInt8]) -> Seal? {
    guard isPlausible(bytes), bytes.count >= BinaryFormat.shortest else { return nil }
    return Seal.of(bytes.span.bytes)
  }

  /// Returns whether the bytes begin like a binary property list.
  package static func isPlausible(_ bytes: [UInt8]) -> Bool {
    BinaryFormat.starts(bytes.span.bytes)
  }

  /// Notes in a sealed file that the file is synced before it is moved into place.
  package static func markSynced(_ bytes: inout [UInt8]) {
    let start = bytes.count - BinaryFormat.trailerLength
    guard start >= 0, mark(of: bytes) == Seal.mark else { return }
    bytes[start + 1] = UInt8(Seal.syncedMark & 0xFF)
  }

  /// Returns whether a file is marked as synced before it was moved into place.
  package static func isMarkedSynced(_ bytes: [UInt8]) -> Bool {
    mark(of: bytes) == Seal.syncedMark
  }

  private static func mark(of bytes: [UInt8]) -> UInt64? {
    let start = bytes.count - BinaryFormat.trailerLength
    return start < 0 ? nil : UInt64(bytes[start]) << 8 | UInt64(bytes[start + 1])
  }
}
