/// Property lists in any of the forms, for files that people provide.
package enum PropertyListForm: String, Sendable, CaseIterable {
  case binary, xml, json

  /// Detects the form from the beginning of the bytes; nil if no form matches.
  package init?(of bytes: [UInt8]) {
    if BinaryPropertyList.isPlausible(bytes) {
      self = .binary
      return
    }
    let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    let text = bytes.starts(with: mark) ? bytes.dropFirst(mark.count) : bytes[...]
    guard let first = text.first(where: { !TextCursor.isSpace($0) }) else { return nil }
    self = first == UInt8(ascii: "<") ? .xml : .json
  }
}

extension PropertyListValue {
  /// Reads a property list in any form.
  package init(
    reading bytes: [UInt8], limits: PropertyListLimits = .default
  ) throws(PropertyListError) {
    self =
      switch PropertyListForm(of: bytes) {
      case .binary: try BinaryPropertyList.decode(bytes, limits: limits)
      case .xml: try XMLPropertyList.decode(bytes, limits: limits)
      case .json: try JSONPropertyList.decode(bytes, limits: limits)
      case nil: throw PropertyListError(.notPropertyList, "the input is empty", at: 0)
      }
  }

  /// Returns the property list in any form; as text, for people.
  package func written(
    as form: PropertyListForm, limits: PropertyListLimits = .default
  ) throws(PropertyListError) -> [UInt8] {
    switch form {
    case .binary: try BinaryPropertyList.encode(self, limits: limits)
    case .xml: Array(try XMLPropertyList.encode(self, limits: limits).utf8)
    case .json: Array(try JSONPropertyList.encode(self, pretty: true, limits: limits).utf8)
    }
  }
}
