import FoundationEssentials

/// Collects the fields of a record as the entries of a dictionary.
struct FieldEntries: FieldVisitor {
  private(set) var entries: [String: PropertyListValue] = [:]

  var visitsMissing: Bool { false }

  mutating func field(_ name: StaticString, _ value: inout String) { add(name, .string(value)) }
  mutating func field(_ name: StaticString, _ value: inout Bool) { add(name, .boolean(value)) }
  mutating func field(_ name: StaticString, _ value: inout Int64) { add(name, .integer(value)) }
  mutating func field(_ name: StaticString, _ value: inout Date) { add(name, .date(value)) }

  mutating func field(_ name: StaticString, _ value: inout Int) {
    add(name, .integer(Int64(value)))
  }

  mutating func field(_ name: StaticString, _ value: inout String?) {
    if let value { add(name, .string(value)) }
  }

  mutating func field(_ name: StaticString, _ value: inout Date?) {
    if let value { add(name, .date(value)) }
  }

  mutating func field(_ name: StaticString, _ value: inout [String: String]?) {
    if let value { add(name, .dictionary(value.mapValues { .string($0) })) }
  }

  mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number
  ) throws {
    try add(name, PropertyListValue(value) ?? PropertyListValue(encoding: value))
  }

  mutating func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number?
  ) throws {
    if var value { try field(name, &value) }
  }

  mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value) throws {
    add(name, try PropertyListValue(encoding: value))
  }

  mutating func field<Value: Codable>(_ name: StaticString, _ value: inout Value?) throws {
    if let value { add(name, try PropertyListValue(encoding: value)) }
  }

  private mutating func add(_ name: StaticString, _ value: PropertyListValue) {
    entries["\(name)"] = value
  }
}
