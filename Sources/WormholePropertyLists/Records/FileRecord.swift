package import FoundationEssentials

/// The form of a dictionary in a file: each field is described once, for the reader, the writer and
/// the tests that compare the articles with the forms.
package protocol FileRecord {
  /// A record whose fields a reader fills in.
  init()

  /// Visits the fields in the order in which they are written.
  mutating func visit(_ fields: inout some FieldVisitor) throws
}

/// What happens with each field of a ``FileRecord``: it is read, written, or named.
///
/// A field whose value is an optional is left out if its value is nil. The commonest types have
/// methods of their own, which are several times as fast as `Codable`.
package protocol FieldVisitor {
  mutating func field(_ name: StaticString, _ value: inout String) throws
  mutating func field(_ name: StaticString, _ value: inout String?) throws
  mutating func field(_ name: StaticString, _ value: inout Bool) throws
  mutating func field(_ name: StaticString, _ value: inout Int) throws
  mutating func field(_ name: StaticString, _ value: inout Int64) throws
  mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number) throws
  mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number?) throws
  mutating func field(_ name: StaticString, _ value: inout Date) throws
  mutating func field(_ name: StaticString, _ value: inout Date?) throws
  mutating func field(_ name: StaticString, _ value: inout [String: String]?) throws
  mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value) throws
  mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value?) throws

  /// Whether a field whose value is nil is visited at all.
  var visitsMissing: Bool { get }

  /// Refuses a field that was read and has the right type.
  func check(_ name: StaticString, _ isValid: Bool, _ reason: @autoclosure () -> String) throws
}

extension FieldVisitor {
  package var visitsMissing: Bool { true }

  package func check(
    _ name: StaticString, _ isValid: Bool, _ reason: @autoclosure () -> String
  ) throws {}

  /// Visits a field that most files lack.
  ///
  /// Inlined where the type of the value is known: a generic function looks up the type of the
  /// optional at run time, which takes as long as writing three fields.
  @inlinable @inline(__always)
  package mutating func optional<Value: Codable>(
    _ name: StaticString, _ value: inout Value?
  ) throws {
    if value != nil || visitsMissing { try field(name, &value) }
  }

  /// Visits a field that is left out of the file if it has the usual value.
  @inlinable @inline(__always)
  package mutating func field<Value: Codable & Equatable>(
    _ name: StaticString, _ value: inout Value, unless usual: Value
  ) throws {
    var other: Value? = value == usual ? nil : value
    try optional(name, &other)
    value = other ?? usual
  }
}

extension FileRecord {
  /// Reads the record from the dictionary of a file.
  ///
  /// - Parameter others: the number of other fields that the caller has found in the file.
  @inlinable package init(
    _ document: BinaryDocument, _ decoder: BinaryDecoder, others: Int = 0
  ) throws {
    self.init()
    var reader = try FieldReader(document, decoder, others: others)
    try visit(&reader)
  }

  package init(_ bytes: [UInt8], _ decoder: BinaryDecoder = BinaryDecoder()) throws {
    try self.init(decoder.open(bytes), decoder)
  }

  /// Writes the record, and other fields beside it.
  @inlinable package func add(to leaves: BinaryLeaves) throws {
    var record = self
    var writer = FieldWriter(leaves)
    try record.visit(&writer)
  }

  /// Returns the file that contains the record and nothing else.
  package func encoded() throws -> [UInt8] { try BinaryEncoder().encode(add(to:)) }

  /// Returns the fields as the entries of a dictionary, for a file that is written in the order of
  /// its keys.
  package func entries() throws -> [String: PropertyListValue] {
    var record = self
    var visitor = FieldEntries()
    try record.visit(&visitor)
    return visitor.entries
  }

  /// The names of all fields, in the order in which they are written.
  package static var fieldNames: [String] {
    var record = Self()
    var names = FieldNames()
    try? record.visit(&names)
    return names.names
  }
}

/// Lists the names of the fields of a record.
struct FieldNames: FieldVisitor {
  private(set) var names: [String] = []

  mutating func field(_ name: StaticString, _ value: inout String) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout String?) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout Bool) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout Int) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout Int64) { add(name) }
  mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number
  ) { add(name) }
  mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number?
  ) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout Date) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout Date?) { add(name) }
  mutating func field(_ name: StaticString, _ value: inout [String: String]?) { add(name) }
  mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value) { add(name) }
  mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value?) { add(name) }

  private mutating func add(_ name: StaticString) { names.append("\(name)") }
}
