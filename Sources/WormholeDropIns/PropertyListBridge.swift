internal import Foundation
package import WormholePropertyLists

/// An object that cannot be stored in a property list: its path and its type.
package struct NotAPropertyList: Error, CustomStringConvertible {
  /// The path to the object, as in `tickets[2].seat`; empty for the whole value.
  package let place: String
  /// The name of the object's type.
  package let type: String

  package init(place: String, type: String) {
    self.place = place
    self.type = type
  }

  /// Whether the object is a container below more containers than a property list can nest.
  package private(set) var isTooDeep = false

  static func tooDeep(_ any: Any, at place: String) -> NotAPropertyList {
    var error = NotAPropertyList(place: "\(place.prefix(100))…", type: "\(Swift.type(of: any))")
    error.isTooDeep = true
    return error
  }

  package var description: String {
    guard !isTooDeep else {
      return "'\(place)' contains more than \(PropertyListLimits.default.depth) containers in each "
        + "other, and no property list can"
    }
    return "\(place.isEmpty ? "the value" : "'\(place)'") has the type \(type), which no property "
      + "list can contain"
  }
}

/// Conversions between property lists and the types that Foundation's callers use.
extension PropertyListValue {
  /// Converts a value of Foundation's or of Swift's own types.
  ///
  /// Accepts texts, numbers, booleans, data, dates, arrays, and dictionaries with texts as keys; an
  /// optional counts as its content. Refuses `NSNull`, `URL`, an empty optional and all other
  /// types.
  package init(any: Any) throws(NotAPropertyList) { self = try Self.take(any, at: "", 0) }

  /// Converts a dictionary.
  package static func dictionary(
    any: [String: Any]
  ) throws(NotAPropertyList) -> [String: PropertyListValue] {
    try take(any, at: "", 0)
  }

  /// - Parameter depth: how many containers the object is in.
  private static func take(
    _ any: Any, at place: String, _ depth: Int
  ) throws(NotAPropertyList) -> PropertyListValue {
    // The order matters: a number can be cast to several types, and a text to no other type.
    switch any {
    case let value as PropertyListValue: return value
    case let text as String: return .string(text)
    case let number as NSNumber: return PropertyListValue(number)
    case let data as Data: return .data(data)
    case let date as Date: return .date(date)
    case let values as [Any]:
      guard depth < PropertyListLimits.default.depth else { throw .tooDeep(any, at: place) }
      var taken: [PropertyListValue] = []
      taken.reserveCapacity(values.count)
      for (index, value) in values.enumerated() {
        taken.append(try take(value, at: "\(place)[\(index)]", depth + 1))
      }
      return .array(taken)
    case let values as [String: Any]: return .dictionary(try take(values, at: place, depth))
    default: throw NotAPropertyList(place: place, type: "\(type(of: any))")
    }
  }

  private static func take(
    _ values: [String: Any], at place: String, _ depth: Int
  ) throws(NotAPropertyList) -> [String: PropertyListValue] {
    guard depth < PropertyListLimits.default.depth else { throw .tooDeep(values, at: place) }
    var taken: [String: PropertyListValue] = [:]
    taken.reserveCapacity(values.count)
    for (key, value) in values {
      taken[key] = try take(value, at: place.isEmpty ? key : "\(place).\(key)", depth + 1)
    }
    return taken
  }

  /// The class of the two objects that are booleans.
  private static let booleanClass: NSNumber.Type = type(of: NSNumber(value: true))

  private init(_ number: NSNumber) {
    // The letters are the codes of C's types. A boolean and an `Int8` have the same code, and
    // differ by the classes of their objects.
    switch UInt8(truncatingIfNeeded: number.objCType.pointee) {
    case UInt8(ascii: "c") where type(of: number) == Self.booleanClass:
      self = .boolean(number.boolValue)
    case UInt8(ascii: "B"): self = .boolean(number.boolValue)
    case UInt8(ascii: "f"), UInt8(ascii: "d"): self = .real(number.doubleValue)
    case UInt8(ascii: "Q"): self = PropertyListValue(number.uint64Value) ?? .real(.nan)
    default: self = .integer(number.int64Value)
    }
  }

  /// The value as devices return it: numbers and booleans are `NSNumber`, so that callers can cast
  /// them to any type of number, alone and in arrays.
  package var foundation: Any {
    switch self {
    case .dictionary(let values): values.mapValues(\.foundation)
    case .array(let values): values.map(\.foundation)
    case .string(let text): text
    case .data(let data): data
    case .integer(let number): NSNumber(value: number)
    case .unsigned(let number): NSNumber(value: number)
    case .real(let number): NSNumber(value: number)
    case .boolean(let isTrue): NSNumber(value: isTrue)
    case .date(let date): date
    }
  }

  /// The entries of a dictionary, as devices return them; nil if the value is not a dictionary.
  package var foundationDictionary: [String: Any]? { dictionaryValue?.mapValues(\.foundation) }
}
