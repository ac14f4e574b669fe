public import FoundationEssentials

/// A value whose shape is known only when the program runs: any value of a property list.
///
/// Two values are equal if they would be written as the same property list. So integers are equal
/// by value, whichever case holds them, an integer never equals a real, and a real that is not a
/// number equals itself. Texts are equal if their bytes are, unlike Swift's strings: to the kernel
/// two spellings of one letter are two names. Keys of dictionaries are compared like Swift's
/// strings.
public enum PropertyListValue: Sendable {
  /// Named values, in no particular order.
  case dictionary([String: PropertyListValue])

  /// Values in order.
  case array([PropertyListValue])

  /// A text.
  case string(String)

  /// Bytes without meaning to the property list.
  case data(Data)

  /// A whole number.
  case integer(Int64)

  /// A whole number above `Int64.max`; readers use `integer` for every smaller number.
  case unsigned(UInt64)

  /// A number with a fraction, an infinity, or not a number.
  case real(Double)

  /// True or false.
  case boolean(Bool)

  /// A moment, with the fraction of its second.
  case date(Date)
}

extension PropertyListValue: Hashable {
  /// Returns whether both values would be the same property list.
  public static func == (left: PropertyListValue, right: PropertyListValue) -> Bool {
    switch (left, right) {
    case (.dictionary(let left), .dictionary(let right)): left == right
    case (.array(let left), .array(let right)): left == right
    case (.string(let left), .string(let right)): left.utf8.elementsEqual(right.utf8)
    case (.data(let left), .data(let right)): left == right
    case (.integer(let left), .integer(let right)): left == right
    case (.unsigned(let left), .unsigned(let right)): left == right
    case (.integer(let left), .unsigned(let right)): Int64(exactly: right) == left
    case (.unsigned(let left), .integer(let right)): Int64(exactly: left) == right
    case (.real(let left), .real(let right)): same(left, right)
    case (.boolean(let left), .boolean(let right)): left == right
    case (.date(let left), .date(let right)):
      same(left.timeIntervalSinceReferenceDate, right.timeIntervalSinceReferenceDate)
    default: false
    }
  }

  /// Feeds the value into a hasher; equal values give equal hashes.
  public func hash(into hasher: inout Hasher) {
    switch self {
    case .dictionary(let value): hasher.combine(value)
    case .array(let value): hasher.combine(value)
    case .string(let value): hasher.combine(value)
    case .data(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .unsigned(let value):
      if let small = Int64(exactly: value) { hasher.combine(small) } else { hasher.combine(value) }
    case .real(let value): Self.hash(value, into: &hasher)
    case .boolean(let value): hasher.combine(value)
    case .date(let value): Self.hash(value.timeIntervalSinceReferenceDate, into: &hasher)
    }
  }

  /// Equality must be reflexive, or a value that contains a NaN could not be found in a set; and
  /// zero and negative zero are different.
  private static func same(_ left: Double, _ right: Double) -> Bool {
    left.bitPattern == right.bitPattern || (left.isNaN && right.isNaN)
  }

  private static func hash(_ value: Double, into hasher: inout Hasher) {
    hasher.combine(value.isNaN ? Double.nan : value)
  }
}

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
