package import FoundationEssentials

/// Reads the fields of a record from the dictionary of a file.
///
/// A field that has the usual type is read without `Codable`; any other, right or wrong, is left to
/// the decoder, which describes a missing field or a wrong type.
package struct FieldReader: FieldVisitor {
  private let document: BinaryDocument
  private let decoder: BinaryDecoder
  /// Nil for a dictionary of many entries, which only the decoder reads.
  private let fields: BinaryDocument.Fields?
  /// The position of the next field, if the writer was of this version.
  private var place = 0
  /// The number of entries that were not found yet: once there are none, no other field is looked
  /// for.
  private var left: Int

  package init(_ document: BinaryDocument, _ decoder: BinaryDecoder, others: Int) throws {
    self.document = document
    self.decoder = decoder
    fields = document.fields
    left = (fields?.count ?? .max) - others
    if fields == nil, !document.isDictionary {
      _ = try decoder.decode([String: PropertyListValue].self, from: document)
    }
  }

  package mutating func field(_ name: StaticString, _ value: inout String) throws {
    if case .string(let text) = find(name) { value = text } else { value = try decode(name) }
  }

  package mutating func field(_ name: StaticString, _ value: inout String?) throws {
    guard has(name) else { return }
    // The decoder knows whether this text stands for nil.
    if case .string(let text)? = fields?.field(name, near: place - 1), text != BinaryWriter.null {
      value = text
    } else {
      value = try decode(name) as String?
    }
  }

  package mutating func field(_ name: StaticString, _ value: inout Bool) throws {
    _ = has(name)
    value = try decode(name)
  }

  package mutating func field(_ name: StaticString, _ value: inout Int) throws {
    if case .integer(let number) = find(name) {
      value = Int(number)
    } else {
      value = try decode(name)
    }
  }

  package mutating func field(_ name: StaticString, _ value: inout Int64) throws {
    if case .integer(let number) = find(name) { value = number } else { value = try decode(name) }
  }

  package mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number
  ) throws {
    if case .integer(let found) = find(name), let number = Number(exactly: found) {
      value = number
    } else {
      value = try decode(name)
    }
  }

  package mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number?
  ) throws {
    guard has(name) else { return }
    if case .integer(let found)? = fields?.field(name, near: place - 1),
      let number = Number(exactly: found)
    {
      value = number
    } else {
      value = try decode(name) as Number?
    }
  }

  package mutating func field(_ name: StaticString, _ value: inout Date) throws {
    if case .date(let seconds) = find(name) {
      value = Date(timeIntervalSinceReferenceDate: seconds)
    } else {
      value = try decode(name)
    }
  }

  package mutating func field(_ name: StaticString, _ value: inout Date?) throws {
    guard has(name) else { return }
    if case .date(let seconds)? = fields?.field(name, near: place - 1) {
      value = Date(timeIntervalSinceReferenceDate: seconds)
    } else {
      value = try decode(name) as Date?
    }
  }

  package mutating func field(_ name: StaticString, _ value: inout [String: String]?) throws {
    guard has(name) else { return }
    value = try decode(name) as [String: String]?
  }

  package mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value) throws {
    _ = has(name)
    value = try decode(name)
  }

  package mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value?) throws {
    if has(name) { try decodeOptional(name, &value) }
  }

  /// Apart from its caller, which would look up the type of the optional although most files lack
  /// the field.
  @inline(never)
  private func decodeOptional<Value: Codable>(_ name: StaticString, _ value: inout Value?) throws {
    value = try decode(name) as Value?
  }

  package func check(
    _ name: StaticString, _ isValid: Bool, _ reason: @autoclosure () -> String
  ) throws {
    if !isValid {
      throw PropertyListError(
        .invalidValue, reason(), path: [PathKey(stringValue: "\(name)")])
    }
  }

  private mutating func find(_ name: StaticString) -> BinaryDocument.Field? {
    guard let field = fields?.field(name, near: place) else { return nil }
    note()
    return field
  }

  private mutating func has(_ name: StaticString) -> Bool {
    guard let fields else { return decoder.has("\(name)", in: document) }
    guard left > 0, fields.has(name, near: place) else { return false }
    note()
    return true
  }

  private mutating func note() {
    place += 1
    left -= 1
  }

  private func decode<Value: Decodable>(_ name: StaticString) throws -> Value {
    try decoder.decode(Value.self, requiredKey: "\(name)", from: document)
  }
}
