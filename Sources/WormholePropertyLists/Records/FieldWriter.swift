package import FoundationEssentials

/// Writes the fields of a record into the dictionary at the top of a file.
package struct FieldWriter: FieldVisitor {
  private let leaves: BinaryLeaves

  package init(_ leaves: BinaryLeaves) { self.leaves = leaves }

  package var visitsMissing: Bool { false }

  package func field(_ name: StaticString, _ value: inout String) { leaves.add(name, value) }
  package func field(_ name: StaticString, _ value: inout Bool) { leaves.add(name, value) }
  package func field(_ name: StaticString, _ value: inout Int) { leaves.add(name, value) }
  package func field(_ name: StaticString, _ value: inout Int64) { leaves.add(name, Int(value)) }
  package func field(_ name: StaticString, _ value: inout Date) { leaves.add(name, value) }

  package func field(_ name: StaticString, _ value: inout String?) {
    if let value { leaves.add(name, value) }
  }

  package func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number
  ) throws {
    try leaves.add(name, integer: value)
  }

  package func field<Number: FixedWidthInteger & Codable>(
    _ name: StaticString, _ value: inout Number?
  ) throws {
    if let value { try leaves.add(name, integer: value) }
  }

  package func field(_ name: StaticString, _ value: inout Date?) {
    if let value { leaves.add(name, value) }
  }

  /// Writes the keys in their order: that of a dictionary is another one in each process.
  package func field(_ name: StaticString, _ value: inout [String: String]?) {
    if let value { leaves.add(name, value) }
  }

  package func field<Value: Codable>(_ name: StaticString, _ value: inout Value) throws {
    try leaves.add(name, value)
  }

  package func field<Value: Codable>(_ name: StaticString, _ value: inout Value?) throws {
    if let value { try leaves.add(name, value) }
  }
}
