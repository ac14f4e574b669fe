internal import Foundation
internal import WormholeDropIns

extension NotAPropertyList {
  /// Checks that all parts of an object can be archived: Foundation's archiver ends the process at
  /// a value without `NSCoding`.
  static func check(archiving object: any NSCoding) throws(NotAPropertyList) {
    try check(object, at: "")
  }

  private static func check(_ any: Any, at place: String) throws(NotAPropertyList) {
    switch any {
    case let values as [Any]:
      for (index, value) in values.enumerated() { try check(value, at: "\(place)[\(index)]") }
    case let values as Set<AnyHashable>:
      for value in values { try check(value.base, at: place) }
    case let values as [AnyHashable: Any]:
      for (key, value) in values {
        let place = place.isEmpty ? "\(key)" : "\(place).\(key)"
        // A dictionary's archive contains the keys as objects too.
        try check(key.base, at: place)
        try check(value, at: place)
      }
    default:
      guard any as AnyObject is any NSCoding else {
        throw NotAPropertyList(place: place, type: "\(Swift.type(of: any))")
      }
    }
  }
}
