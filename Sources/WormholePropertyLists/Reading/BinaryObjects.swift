import FoundationEssentials

/// The objects of a validated file, in the form of its bytes.
///
/// A view for the duration of a closure: the bytes belong to a `BinaryDocument`. Every offset,
/// count and reference in the bytes has been validated, so this type checks none of them again.
struct BinaryObjects {
  let bytes: UnsafeRawBufferPointer
  let layout: BinaryLayout

  @inline(__always)
  func offset(of object: Int) -> Int {
    Int(
      truncatingIfNeeded: bytes.number(
        at: layout.table + object * layout.offsetSize, width: layout.offsetSize))
  }

  @inline(__always)
  func head(of object: Int) -> ObjectHead { head(at: offset(of: object)) }

  @inline(__always)
  func head(at offset: Int) -> ObjectHead {
    var start = offset
    let marker = bytes[start]
    start += 1
    let low = Int(marker & 0xF)
    // Only validated files get here, and validation refuses every other kind.
    let kind = ObjectKind(marker: marker).unsafelyUnwrapped
    switch kind {
    case .boolean:
      return ObjectHead(kind: kind, start: start, count: low & 1)
    case .integer, .real, .date:
      return ObjectHead(kind: kind, start: start, count: 1 << low)
    case .data, .ascii, .utf16, .array, .dictionary:
      if low < 0xF { return ObjectHead(kind: kind, start: start, count: low) }
      let width = 1 << Int(bytes[start] & 0xF)
      let count = Int(truncatingIfNeeded: bytes.number(at: start + 1, width: width))
      return ObjectHead(kind: kind, start: start + 1 + width, count: count)
    }
  }

  @inline(__always)
  func kind(of object: Int) -> ObjectKind {
    ObjectKind(marker: bytes[offset(of: object)]).unsafelyUnwrapped
  }

  /// Returns the `index`th reference of a container; a dictionary has first all keys, then all
  /// values.
  @inline(__always)
  func reference(_ index: Int, of head: ObjectHead) -> Int {
    Int(
      truncatingIfNeeded: bytes.number(
        at: head.start + index * layout.referenceSize, width: layout.referenceSize))
  }

  func payload(of head: ObjectHead) -> UnsafeRawBufferPointer {
    let end = head.start + head.length(referenceSize: layout.referenceSize)
    return UnsafeRawBufferPointer(rebasing: bytes[head.start..<end])
  }

  func string(_ head: ObjectHead) -> String {
    let payload = payload(of: head)
    if head.kind == .ascii {
      return String(unsafeUninitializedCapacity: payload.count) {
        UnsafeMutableRawBufferPointer($0).copyMemory(from: payload)
        return payload.count
      }
    }
    return String(unsafeUninitializedCapacity: 3 * head.count) { text in
      var count = 0
      _ = transcode(
        UTF16Units(bytes: payload).makeIterator(), from: UTF16.self, to: UTF8.self,
        stoppingOnError: true
      ) {
        text[count] = $0
        count += 1
      }
      return count
    }
  }

  func integer(_ head: ObjectHead) -> PropertyListValue {
    switch head.count {
    case 8:
      return .integer(Int64(bitPattern: bytes.number(at: head.start, width: 8)))
    case 16:
      let high = bytes.number(at: head.start, width: 8)
      let low = bytes.number(at: head.start + 8, width: 8)
      let small = Int64(bitPattern: low)
      return high != 0 || small >= 0 ? .integer(small) : .unsigned(low)
    default:
      return .integer(Int64(bytes.number(at: head.start, width: head.count)))
    }
  }

  @inline(__always)
  func real(_ head: ObjectHead) -> Double {
    let bits = bytes.number(at: head.start, width: head.count)
    return head.count == 4
      ? Double(Float(bitPattern: UInt32(bits))) : Double(bitPattern: bits)
  }

  func date(_ head: ObjectHead) -> Date { Date(timeIntervalSinceReferenceDate: real(head)) }

  func data(_ head: ObjectHead) -> Data {
    let payload = payload(of: head)
    guard let start = payload.baseAddress else { return Data() }
    return Data(bytes: start, count: payload.count)
  }

  /// Returns whether a string object has the given text.
  @inline(__always)
  func isString(_ object: Int, _ text: RawSpan) -> Bool {
    let head = head(of: object)
    if head.kind == .ascii {
      guard head.count == text.byteCount else { return false }
      for index in 0..<head.count where bytes[head.start + index] != text[index] { return false }
      return true
    }
    return head.kind == .utf16 && string(head) == text.string
  }
}

/// The units of a big-endian UTF-16 text.
struct UTF16Units: Sequence {
  let bytes: UnsafeRawBufferPointer

  func makeIterator() -> Iterator { Iterator(bytes: bytes) }

  struct Iterator: IteratorProtocol {
    let bytes: UnsafeRawBufferPointer
    var index = 0

    mutating func next() -> UInt16? {
      guard index + 1 < bytes.count else { return nil }
      defer { index += 2 }
      return UInt16(bytes[index]) << 8 | UInt16(bytes[index + 1])
    }
  }
}
