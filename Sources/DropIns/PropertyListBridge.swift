internal import Foundation
package import PropertyLists

/// What cannot go into a property list: where it stands, and what it is.
package struct NotAPropertyList: Error, CustomStringConvertible {
  /// The way to it, as in `tickets[2].seat`; empty for the whole.
  package let place: String
  /// The name of its type.
  package let type: String

  package init(place: String, type: String) {
    self.place = place
    self.type = type
  }

  package var description: String {
    "\(place.isEmpty ? "it" : "'\(place)'") is a value of \(type), which no property list can hold"
  }
}

/// Between property lists and what Foundation's callers hold in their hands.
extension PropertyListValue {
  /// Takes a value of Foundation's or of Swift's own types.
  ///
  /// Texts, numbers, truths, data, dates, arrays, and dictionaries with texts as keys; an optional
  /// counts as what is in it. `NSNull`, `URL`, an empty optional and everything else are refused.
  package init(any: Any) throws(NotAPropertyList) { self = try Self.take(any, at: "") }

  /// Takes a dictionary.
  package static func dictionary(
    any: [String: Any]
  ) throws(NotAPropertyList) -> [String: PropertyListValue] {
    try take(any, at: "")
  }

  private static func take(
    _ any: Any, at place: String
  ) throws(NotAPropertyList) -> PropertyListValue {
    // In this order: a number answers to more than one type, and a text to no other.
    switch any {
    case let value as PropertyListValue: return value
    case let text as String: return .string(text)
    case let number as NSNumber: return PropertyListValue(number)
    case let data as Data: return .data(data)
    case let date as Date: return .date(date)
    case let values as [Any]:
      var taken: [PropertyListValue] = []
      taken.reserveCapacity(values.count)
      for (index, value) in values.enumerated() {
        taken.append(try take(value, at: "\(place)[\(index)]"))
      }
      return .array(taken)
    case let values as [String: Any]: return .dictionary(try take(values, at: place))
    default: throw NotAPropertyList(place: place, type: "\(type(of: any))")
    }
  }

  private static func take(
    _ values: [String: Any], at place: String
  ) throws(NotAPropertyList) -> [String: PropertyListValue] {
    var taken: [String: PropertyListValue] = [:]
    taken.reserveCapacity(values.count)
    for (key, value) in values {
      taken[key] = try take(value, at: place.isEmpty ? key : "\(place).\(key)")
    }
    return taken
  }

  private init(_ number: NSNumber) {
    // The letters are those of C's types; a truth is told from a small number by its own.
    switch UInt8(truncatingIfNeeded: number.objCType.pointee) {
    case UInt8(ascii: "c"), UInt8(ascii: "B"): self = .boolean(number.boolValue)
    case UInt8(ascii: "f"), UInt8(ascii: "d"): self = .real(number.doubleValue)
    case UInt8(ascii: "Q"): self = PropertyListValue(number.uint64Value) ?? .real(.nan)
    default: self = .integer(number.int64Value)
    }
  }

  /// As devices hand it out: numbers and truths are `NSNumber`, so that they can be had as any
  /// type of number, alone and in arrays.
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

  /// The entries of a dictionary, as devices hand them out; nil if this is none.
  package var foundationDictionary: [String: Any]? { dictionaryValue?.mapValues(\.foundation) }
}
