import FoundationEssentials

extension BinaryWriter {
  func add(_ value: Bool) -> UInt32 {
    let object = begin()
    bytes.append(value ? 0x09 : 0x08)
    return object
  }

  /// Writes an integer: below zero in eight bytes, otherwise in as few as hold it without a sign.
  func add(_ value: Int64) -> UInt32 {
    switch value {
    case 0...0xFF: add(0x10, UInt8(value))
    case 0...0xFFFF: add(0x11, UInt16(value))
    case 0...0xFFFF_FFFF: add(0x12, UInt32(value))
    default: add(0x13, value)
    }
  }

  /// Writes the first byte of an object, and a number.
  @inline(__always)
  private func add(
    _ marker: UInt8, _ number: some FixedWidthInteger & BitwiseCopyable
  ) -> UInt32 {
    let object = begin()
    bytes.append(marker)
    bytes.append(number: number)
    return object
  }

  /// Writes an integer beyond `Int64` in sixteen bytes, because eight would be read as negative.
  func add(_ value: UInt64) -> UInt32 {
    if let small = Int64(exactly: value) { return add(small) }
    let object = add(0x14, UInt64(0))
    bytes.append(number: value)
    return object
  }

  /// Writes an integer of any type; fails if the value has more than 64 bits.
  @inline(__always)
  func add<T: FixedWidthInteger>(integer value: T) throws(PropertyListError) -> UInt32 {
    if let signed = Int64(exactly: value) { return add(signed) }
    guard let unsigned = UInt64(exactly: value) else {
      throw PropertyListError(.invalidValue, "an integer of more than 64 bits")
    }
    return add(unsigned)
  }

  func add(_ value: Double) -> UInt32 { add(0x23, value.bitPattern) }

  func add(_ value: Float) -> UInt32 { add(0x22, value.bitPattern) }

  func add(_ value: Date) -> UInt32 { add(0x33, value.timeIntervalSinceReferenceDate.bitPattern) }

  func add(_ value: Data) -> UInt32 {
    let object = begin()
    let data = value.bytes
    appendHead(.data, count: data.byteCount)
    bytes.append(contentsOf: data)
    return object
  }

  /// Adds data elements to an array, one after the other, for the values of most messages: with
  /// memory reserved for all elements at once, and no copy of each.
  func add(_ elements: ArraySlice<Data>, to array: UInt32) throws {
    try elements.withUnsafeBufferPointer { elements in
      var size = 512
      // The head of an element, its offset and the reference to it.
      for index in elements.indices { size += elements[index].count + 12 }
      bytes.reserve(min(size, limits.bytes))
      offsets.reserve(elements.count + 8)
      links.reserve(elements.count + 8)
      for index in elements.indices {
        let link = addLink(to: array)
        let object = add(elements[index])
        links[Int(link)].value = object
        do throws(PropertyListError) {
          try check()
        } catch {
          throw wrapped(error, elements[index], at: link)
        }
      }
    }
  }

  func add(_ value: String) -> UInt32 {
    let object = begin()
    let utf8 = value.utf8.span.bytes
    if utf8.isASCII, !Self.isNull(utf8) {
      appendHead(.ascii, count: utf8.byteCount)
      bytes.append(contentsOf: utf8)
    } else {
      appendUTF16(value)
    }
    return object
  }

  /// Writes the text that represents nil.
  ///
  /// An ordinary text with the same letters is written as UTF-16, which is the same text to every
  /// reader, and is not nil to this package's reader.
  func addNull() -> UInt32 {
    let object = begin()
    appendHead(.ascii, count: Self.null.utf8.count)
    for byte in Self.null.utf8 { bytes.append(byte) }
    return object
  }

  private static func isNull(_ utf8: RawSpan) -> Bool {
    utf8.byteCount == 5 && utf8[0] == UInt8(ascii: "$") && utf8.isSame(as: null.utf8.span.bytes)
  }

  private func appendUTF16(_ value: String) {
    appendHead(.utf16, count: value.utf16.count)
    for unit in value.utf16 {
      bytes.append(UInt8(unit >> 8))
      bytes.append(UInt8(unit & 0xFF))
    }
  }

  /// Writes a string that is a key, or finds the object that already is this key.
  func addKey(_ key: String) -> UInt32 {
    let utf8 = key.utf8.span.bytes
    if utf8.isASCII { return addKey(ascii: utf8) }
    // The number of the object for this key, if the key is new.
    let next = UInt32(truncatingIfNeeded: offsets.count)
    let known =
      if let ascii = KeyTable.ascii(key) {
        keys.find(hash: KeyTable.hash(ascii.span.bytes), orInsert: next) {
          isKey($0, ascii.span.bytes)
        }
      } else {
        keys.find(key, orInsert: next)
      }
    guard let same = known else { return add(key) }
    repeatedBytes &+= size(of: same)
    return same
  }

  /// Does the same for a key of ASCII characters.
  func addKey(ascii key: RawSpan) -> UInt32 {
    let next = UInt32(truncatingIfNeeded: offsets.count)
    let known = keys.find(hash: KeyTable.hash(key), orInsert: next) { isKey($0, key) }
    if let known {
      repeatedBytes &+= size(of: known)
      return known
    }
    let object = begin()
    appendHead(.ascii, count: key.byteCount)
    bytes.append(contentsOf: key)
    return object
  }

  /// Returns the size of a leaf in bytes, including its head.
  ///
  /// The leaves follow each other directly.
  func size(of leaf: UInt32) -> Int {
    let next = Int(leaf) + 1
    return (next < offsets.count ? offsets[next] : bytes.count) - offsets[Int(leaf)]
  }

  private func isKey(_ object: UInt32, _ text: RawSpan) -> Bool {
    let start = offsets[Int(object)]
    let raw = bytes.raw
    let bytes = raw.bytes
    guard bytes[start] >> 4 == ObjectKind.ascii.rawValue else { return key(object) == text.string }
    let low = Int(bytes[start] & 0xF)
    let payload: Int
    if low < 0xF {
      guard low == text.byteCount else { return false }
      payload = start + 1
    } else {
      let width = 1 << Int(bytes[start + 1] & 0xF)
      guard bytes.bigEndian(at: start + 2, width: width) == UInt64(text.byteCount) else {
        return false
      }
      payload = start + 2 + width
    }
    return bytes.extracting(payload..<payload + text.byteCount).isSame(as: text)
  }

  func appendHead(_ kind: ObjectKind, count: Int) {
    if count < 0xF {
      bytes.append(kind.rawValue << 4 | UInt8(count))
      return
    }
    bytes.append(kind.rawValue << 4 | 0xF)
    switch count {
    case 0...0xFF:
      bytes.append(0x10)
      bytes.append(UInt8(count))
    case 0...0xFFFF:
      bytes.append(0x11)
      bytes.append(number: UInt16(count))
    case 0...0xFFFF_FFFF:
      bytes.append(0x12)
      bytes.append(number: UInt32(count))
    default:
      bytes.append(0x13)
      bytes.append(number: UInt64(count))
    }
  }
}
