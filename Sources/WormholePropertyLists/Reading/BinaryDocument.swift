package import FoundationEssentials

/// A binary property list whose bytes have been validated, ready to be read in any order.
package struct BinaryDocument: Sendable {
  package let bytes: [UInt8]
  let layout: BinaryLayout

  init(
    _ bytes: [UInt8], limits: PropertyListLimits, isSealChecked: Bool = false
  ) throws(PropertyListError) {
    layout = try BinaryValidator.check(
      bytes.span.bytes, limits: limits, isSealChecked: isSealChecked)
    self.bytes = bytes
  }

  /// The number of bytes in the file.
  package var size: Int { bytes.count }

  @inline(__always)
  func read<Result>(_ body: (BinaryObjects) -> Result) -> Result {
    bytes.withUnsafeBytes { body(BinaryObjects(bytes: $0, layout: layout)) }
  }
}

extension BinaryDocument {
  /// A leaf of the usual kinds, or another object.
  package enum Field: Equatable, Sendable {
    case integer(Int64)
    case date(Double)
    case string(String)
    case other
  }

  /// Whether the file contains a dictionary.
  package var isDictionary: Bool { read { $0.head(of: layout.top).kind } == .dictionary }

  /// The fields of a dictionary of at most 16 entries, without the cost of `Codable`; nil if the
  /// file contains anything else.
  package var fields: Fields? {
    let head = read { $0.head(of: layout.top) }
    return head.kind == .dictionary && head.count <= 16 ? Fields(document: self, head: head) : nil
  }

  package struct Fields {
    fileprivate let document: BinaryDocument
    fileprivate let head: ObjectHead
    package var count: Int { head.count }

    /// Returns the field of that name; nil if the dictionary lacks it.
    ///
    /// - Parameter place: the usual position of the field; the search begins there.
    package func field(_ name: StaticString, near place: Int) -> Field? {
      find(name, near: place) { $0.field($1) }
    }

    package func has(_ name: StaticString, near place: Int) -> Bool {
      find(name, near: place) { _, _ in } != nil
    }

    /// Returns the elements of the array of that name; nil if the dictionary lacks it.
    package func elements(of name: StaticString, near place: Int) -> Elements? {
      find(name, near: place) { _, head in head.kind == .array ? Elements(head: head) : nil } ?? nil
    }

    /// Returns that field as the only element; nil if the dictionary lacks it.
    package func element(_ name: StaticString, near place: Int) -> Elements? {
      find(name, near: place) { _, head in Elements(head: head, isArray: false) }
    }

    @inline(__always)
    private func find<Result>(
      _ name: StaticString, near place: Int, _ body: (BinaryObjects, ObjectHead) -> Result
    ) -> Result? {
      let name = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
      let text = name.bytes
      return document.read { objects in
        var index = place < head.count ? place : 0
        for _ in 0..<head.count {
          if objects.isString(objects.reference(index, of: head), text) {
            return body(objects, objects.head(of: objects.reference(head.count + index, of: head)))
          }
          index = index + 1 < head.count ? index + 1 : 0
        }
        return nil
      }
    }
  }
}

extension BinaryDocument {
  /// The elements of an array, or one single value.
  package struct Elements: Sendable {
    fileprivate let head: ObjectHead
    fileprivate var isArray = true
    package var count: Int { isArray ? head.count : 1 }
  }

  /// Returns an element as data; nil if the element has another kind.
  package func data(_ index: Int, of elements: Elements) -> Data? {
    read { objects in
      let head = objects.head(index, of: elements)
      return head.kind == .data ? objects.data(head) : nil
    }
  }

  /// Returns an element as text; nil if the element has another kind.
  package func string(_ index: Int, of elements: Elements) -> String? {
    read { objects in
      let head = objects.head(index, of: elements)
      return head.kind.isString ? objects.string(head) : nil
    }
  }
}

extension BinaryObjects {
  @inline(__always)
  fileprivate func head(_ index: Int, of elements: BinaryDocument.Elements) -> ObjectHead {
    precondition(0 <= index && index < elements.count)
    return elements.isArray ? head(of: reference(index, of: elements.head)) : elements.head
  }

  fileprivate func field(_ head: ObjectHead) -> BinaryDocument.Field {
    switch head.kind {
    case .integer:
      if case .integer(let integer) = integer(head) { .integer(integer) } else { .other }
    case .date: .date(real(head))
    case .ascii, .utf16: .string(string(head))
    case .boolean, .real, .data, .array, .dictionary: .other
    }
  }
}
