/// A binary property list whose bytes have been validated, ready to be read in any order.
package struct BinaryDocument: Sendable {
  let bytes: [UInt8]
  let layout: BinaryLayout

  init(_ bytes: [UInt8], limits: PropertyListLimits) throws(PropertyListError) {
    // `withUnsafeBytes` would forget the error's type.
    let layout = bytes.withUnsafeBytes { raw in
      Result<BinaryLayout, PropertyListError> { () throws(PropertyListError) in
        try BinaryValidator(raw, limits: limits).layout
      }
    }
    self.bytes = bytes
    self.layout = try layout.get()
  }

  @inline(__always)
  func read<Result>(_ body: (BinaryObjects) -> Result) -> Result {
    bytes.withUnsafeBytes { body(BinaryObjects(bytes: $0, layout: layout)) }
  }
}

extension BinaryDocument {
  /// A leaf of the usual kinds, or something else.
  package enum Field: Equatable, Sendable {
    case integer(Int64)
    case date(Double)
    case string(String)
    case other
  }

  /// The fields of a dictionary of few, without the ways of `Codable`; nil if the file holds
  /// anything else.
  package var fields: Fields? {
    let head = read { $0.head(of: layout.top) }
    return head.kind == .dictionary && head.count <= 16 ? Fields(document: self, head: head) : nil
  }

  package struct Fields {
    fileprivate let document: BinaryDocument
    fileprivate let head: ObjectHead

    /// The field of that name; nil if there is none.
    package subscript(_ name: StaticString) -> Field? { find(name) { $0.field($1) } }

    /// How many elements the array of that name has; nil if there is none.
    package func count(ofArray name: StaticString) -> Int? {
      find(name) { _, head in head.kind == .array ? head.count : nil } ?? nil
    }

    private func find<Result>(
      _ name: StaticString, _ body: (BinaryObjects, ObjectHead) -> Result
    ) -> Result? {
      let text = UnsafeRawBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount)
      return document.read { objects in
        for index in 0..<head.count where objects.isString(objects.reference(index, of: head), text)
        {
          return body(objects, objects.head(of: objects.reference(head.count + index, of: head)))
        }
        return nil
      }
    }
  }
}

extension BinaryObjects {
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
