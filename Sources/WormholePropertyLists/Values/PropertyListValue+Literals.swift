extension PropertyListValue: ExpressibleByStringLiteral, ExpressibleByIntegerLiteral,
  ExpressibleByFloatLiteral, ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral,
  ExpressibleByDictionaryLiteral
{
  /// Makes a string.
  public init(stringLiteral value: String) { self = .string(value) }

  /// Makes an integer.
  public init(integerLiteral value: Int64) { self = .integer(value) }

  /// Makes a real.
  public init(floatLiteral value: Double) { self = .real(value) }

  /// Makes a boolean.
  public init(booleanLiteral value: Bool) { self = .boolean(value) }

  /// Makes an array.
  public init(arrayLiteral elements: PropertyListValue...) { self = .array(elements) }

  /// Makes a dictionary; if a key is named twice, the last value counts.
  public init(dictionaryLiteral elements: (String, PropertyListValue)...) {
    self = .dictionary(Dictionary(elements) { _, last in last })
  }
}
