public import FoundationEssentials

extension PropertyListValue {
  /// Creates an integer of any width, in the case that its size requires.
  ///
  /// The result is nil if neither `Int64` nor `UInt64` can hold the integer.
  public init?(_ integer: some BinaryInteger) {
    if let value = Int64(exactly: integer) {
      self = .integer(value)
    } else if let value = UInt64(exactly: integer) {
      self = .unsigned(value)
    } else {
      return nil
    }
  }

  /// The value of a key: nil if the key is missing, or if this value is not a dictionary.
  ///
  /// Setting a key of anything but a dictionary does nothing.
  public subscript(key: String) -> PropertyListValue? {
    get {
      guard case .dictionary(let values) = self else { return nil }
      return values[key]
    }
    set {
      guard case .dictionary(var values) = self else { return }
      self = .boolean(false)  // Releases the storage, so that the change copies nothing.
      values[key] = newValue
      self = .dictionary(values)
    }
  }

  /// The value at a position: nil if the position is missing, or if this value is not an array.
  public subscript(index: Int) -> PropertyListValue? {
    guard case .array(let values) = self, values.indices.contains(index) else { return nil }
    return values[index]
  }

  /// The dictionary, if this value is a dictionary.
  public var dictionaryValue: [String: PropertyListValue]? {
    if case .dictionary(let value) = self { value } else { nil }
  }

  /// The array, if this value is an array.
  public var arrayValue: [PropertyListValue]? {
    if case .array(let value) = self { value } else { nil }
  }

  /// The string, if this value is a string.
  public var stringValue: String? {
    if case .string(let value) = self { value } else { nil }
  }

  /// The bytes, if this value is data.
  public var dataValue: Data? {
    if case .data(let value) = self { value } else { nil }
  }

  /// The whole number, if this value is an integer in the range of `Int`.
  public var intValue: Int? {
    switch self {
    case .integer(let value): Int(exactly: value)
    case .unsigned(let value): Int(exactly: value)
    default: nil
    }
  }

  /// The number, if this value is a real, or an integer that `Double` represents exactly.
  public var doubleValue: Double? {
    switch self {
    case .real(let value): value
    case .integer(let value): Double(exactly: value)
    case .unsigned(let value): Double(exactly: value)
    default: nil
    }
  }

  /// The truth value, if this value is a boolean.
  public var boolValue: Bool? {
    if case .boolean(let value) = self { value } else { nil }
  }

  /// The date, if this value is a date.
  public var dateValue: Date? {
    if case .date(let value) = self { value } else { nil }
  }

  /// The kind of value, as error messages call it.
  var kindName: String {
    switch self {
    case .dictionary: "a dictionary"
    case .array: "an array"
    case .string: "a string"
    case .data: "data"
    case .integer, .unsigned: "an integer"
    case .real: "a real"
    case .boolean: "a boolean"
    case .date: "a date"
    }
  }
}
