public import Foundation

/// On devices `CGFloat` is a number for every API that takes an object: `Any` casts to `NSNumber`
/// and back, and dictionaries with such values can be archived and stored.
///
/// Foundation on Linux lacks this conformance, and its archiver and its `UserDefaults` end the
/// process at a `CGFloat`.
extension CGFloat: @retroactive _ObjectiveCBridgeable {
  /// The class of the object.
  public typealias _ObjectiveCType = NSNumber

  /// Returns the number as an object.
  public func _bridgeToObjectiveC() -> NSNumber { NSNumber(value: Double(self)) }

  /// Takes a number of any type.
  public static func _forceBridgeFromObjectiveC(_ source: NSNumber, result: inout CGFloat?) {
    result = CGFloat(source.doubleValue)
  }

  /// Takes a number of any type that a `Double` represents exactly, as for `Double`.
  public static func _conditionallyBridgeFromObjectiveC(
    _ source: NSNumber, result: inout CGFloat?
  ) -> Bool {
    guard let number = source as Any as? Double else { return false }
    result = CGFloat(number)
    return true
  }

  /// Takes a number; zero for nil.
  public static func _unconditionallyBridgeFromObjectiveC(_ source: NSNumber?) -> CGFloat {
    CGFloat(source?.doubleValue ?? 0)
  }
}
