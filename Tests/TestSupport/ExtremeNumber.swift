internal import FoundationEssentials
package import WormholePropertyLists

/// A number as great, as small or as odd as its type can hold, in place of a sound one.
package enum ExtremeNumber {
  /// A property list in which a single number is extreme.
  package struct Variant: Sendable, CustomStringConvertible {
    /// The place of the number in the list.
    package let place: String
    package let number: PropertyListValue
    package let list: PropertyListValue

    package var description: String {
      switch number {
      case .integer(let number): "\(place) = \(number)"
      case .unsigned(let number): "\(place) = \(number)"
      case .real(let number): "\(place) = real \(number)"
      case .date(let date): "\(place) = date \(date.timeIntervalSinceReferenceDate)"
      default: place
      }
    }
  }

  private static let integers: [PropertyListValue] = [
    .integer(.min), .integer(-1), .integer(0), .integer(.max), .unsigned(.max), .real(1e308),
  ]
  private static let reals: [PropertyListValue] = [
    .real(1e308), .real(-1e308), .real(.nan), .real(.infinity), .integer(.min),
  ]
  private static let dates: [PropertyListValue] = [1e308, -1e308, .nan, .infinity, -1].map {
    .date(Date(timeIntervalSinceReferenceDate: $0))
  }

  private static func extremes(for value: PropertyListValue) -> [PropertyListValue] {
    switch value {
    case .integer, .unsigned: integers
    case .real: reals
    case .date: dates
    default: []
    }
  }

  /// Returns the variants of a list, at every depth.
  package static func variants(
    of list: PropertyListValue, at place: String = ""
  ) -> [Variant] {
    switch list {
    case .dictionary(let values):
      values.sorted { $0.key < $1.key }.flatMap { key, value in
        variants(of: value, at: "\(place).\(key)").map { one in
          Variant(
            place: one.place, number: one.number,
            list: .dictionary(values.merging([key: one.list]) { $1 }))
        }
      }
    case .array(let values):
      values.enumerated().flatMap { index, value in
        variants(of: value, at: "\(place)[\(index)]").map { one in
          var changed = values
          changed[index] = one.list
          return Variant(place: one.place, number: one.number, list: .array(changed))
        }
      }
    default:
      extremes(for: list).filter { $0 != list }.map {
        Variant(place: place, number: $0, list: $0)
      }
    }
  }

  /// Returns the names that differ from a file's name in a single number.
  ///
  /// A number is a part of the name that consists of hexadecimal digits.
  package static func names(of name: String) -> [String] {
    let ends = name.indices.filter { ",.~".contains(name[$0]) } + [name.endIndex]
    var (start, names) = (name.startIndex, [String]())
    for end in ends {
      let part = name[start..<end]
      if !part.isEmpty, part.allSatisfy(\.isHexDigit) {
        let count = part.count
        let others = [
          String(repeating: "f", count: count), String(repeating: "0", count: count),
          "7" + String(repeating: "f", count: count - 1), "9223372036854775807", "-1",
        ]
        for other in others where other != part {
          names.append(name[..<start] + other + name[end...])
        }
      }
      start = end < name.endIndex ? name.index(after: end) : end
    }
    return names
  }

  /// The times of files, in seconds since 1970, as `touch` reads them.
  package static let times = ["@-9223372036854775807", "@-1", "@9223372036854775807"]
}
