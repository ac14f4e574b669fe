extension BinaryValidator {
  /// Reads the head of an object, checks that the whole object precedes the offset table, and
  /// returns the end of the object too.
  @inline(__always)
  func checkedHead(at offset: Int) throws(PropertyListError) -> (ObjectHead, end: Int) {
    let marker = bytes[offset]
    let low = Int(marker & 0xF)
    guard let kind = ObjectKind(marker: marker) else {
      throw Self.unknown(marker, at: offset)
    }
    var head = ObjectHead(kind: kind, start: offset + 1, count: low)
    /// The number of payload bytes for each unit of the count.
    var unit = 1
    switch kind {
    case .boolean:
      guard low == 8 || low == 9 else { throw Self.unknown(marker, at: offset) }
      head.count = low & 1
      unit = 0
    case .integer:
      guard low <= 4 else { throw Self.unknown(marker, at: offset) }
      head.count = 1 << low
    case .real:
      guard low == 2 || low == 3 else { throw Self.unknown(marker, at: offset) }
      head.count = 1 << low
    case .date:
      guard low == 3 else { throw Self.unknown(marker, at: offset) }
      head.count = 8
    case .data, .ascii: break
    case .utf16: unit = 2
    case .array: unit = layout.referenceSize
    case .dictionary: unit = 2 * layout.referenceSize
    }
    if low == 0xF { try readCount(of: &head, at: offset) }
    // Does not overflow: no count is larger than the file.
    let end = head.start + head.count * unit
    guard end <= layout.table else { throw Self.overrun(at: offset) }
    return (head, end)
  }

  private static func overrun(at offset: Int) -> PropertyListError {
    PropertyListError(.malformed, "an object extends into the offset table", at: offset)
  }

  @inline(__always)
  private func readCount(of head: inout ObjectHead, at offset: Int) throws(PropertyListError) {
    let marker = bytes[head.start]  // At worst the first byte of the offset table.
    let width = 1 << Int(marker & 0xF)
    guard marker >> 4 == ObjectKind.integer.rawValue, width <= 8,
      head.start + 1 + width <= layout.table
    else {
      throw PropertyListError(.malformed, "an object without its count", at: offset)
    }
    let count = bytes.number(at: head.start + 1, width: width)
    head.start += 1 + width
    guard count <= UInt64(layout.table - head.start) else { throw Self.overrun(at: offset) }
    head.count = Int(count)
  }

  private static func unknown(_ marker: UInt8, at offset: Int) -> PropertyListError {
    let name: String? =
      switch marker >> 4 {
      case 0 where marker == 0: "a null"
      case 0x8: "a UID of a keyed archive"
      case 0xB, 0xC: "a set"
      default: nil
      }
    guard let name else {
      return PropertyListError(.malformed, "an object of unknown kind", at: offset)
    }
    return PropertyListError(.unsupported, "the list contains \(name)", at: offset)
  }

  /// Checks the content of an object, as far as possible without reading other objects.
  @inline(__always)
  func checkPayload(_ head: ObjectHead, at offset: Int) throws(PropertyListError) {
    switch head.kind {
    case .boolean, .real, .date, .data: break
    default: try checkParts(head, at: offset)
    }
  }

  private func checkParts(_ head: ObjectHead, at offset: Int) throws(PropertyListError) {
    switch head.kind {
    case .boolean, .real, .date, .data: break
    case .integer: try checkInteger(head, at: offset)
    case .ascii:
      guard bytes.isASCII(at: head.start, count: head.count) else {
        throw PropertyListError(.malformed, "a non-ASCII character in an ASCII string", at: offset)
      }
    case .utf16: try checkUTF16(head, at: offset)
    case .array, .dictionary:
      let references = head.kind == .array ? head.count : 2 * head.count
      for index in 0..<references {
        let width = layout.referenceSize
        let reference = bytes.number(at: head.start + index * width, width: width)
        guard reference < UInt64(layout.count) else {
          throw PropertyListError(
            .malformed, "a reference to a missing object", at: offset)
        }
      }
    }
  }

  private func checkInteger(_ head: ObjectHead, at offset: Int) throws(PropertyListError) {
    guard head.count == 16 else { return }
    let high = bytes.number(at: head.start, width: 8)
    let low = bytes.number(at: head.start + 8, width: 8)
    guard high == 0 || (high == .max && low >> 63 == 1) else {
      throw PropertyListError(.unsupported, "an integer of more than 64 bits", at: offset)
    }
  }

  private func checkUTF16(_ head: ObjectHead, at offset: Int) throws(PropertyListError) {
    var expectsLow = false
    for unit in UTF16Units(bytes: objects.payload(of: head)) {
      guard UTF16.isTrailSurrogate(unit) == expectsLow else {
        throw PropertyListError(.malformed, "a string with an unpaired surrogate", at: offset)
      }
      expectsLow = UTF16.isLeadSurrogate(unit)
    }
    guard !expectsLow else {
      throw PropertyListError(.malformed, "a string with an unpaired surrogate", at: offset)
    }
  }
}
