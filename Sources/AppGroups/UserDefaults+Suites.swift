public import Foundation

/// The protocol that makes `UserDefaults(suiteName:)` serve groups.
///
/// Foundation's class has an initialiser of the same name, and a class of ours beside it would be
/// ambiguous in every file that imports both. For arguments of type `String`, the compiler prefers
/// an initialiser of a protocol to which the class conforms. Such an initialiser may return an
/// object of a subclass.
public protocol SuiteOfDefaults {}

extension UserDefaults: SuiteOfDefaults {}

extension SuiteOfDefaults where Self: UserDefaults {
  /// The settings of a suite.
  ///
  /// The settings of a group, `group.…`, are shared by all programs of the user, and stored in the
  /// group's container. All other suites are Foundation's, as before. An argument of type `String?`
  /// still reaches Foundation's own initialiser: unwrap it.
  public init?(suiteName: String) {
    if suiteName.utf8.starts(with: "group.".utf8) {
      guard let suite = GroupDefaults(group: suiteName) as? Self else { return nil }
      self = suite
    } else {
      guard let suite = UserDefaults(suiteName: Optional(suiteName)) as? Self else { return nil }
      self = suite
    }
  }
}

/// Key-value coding, as far as settings need it: Foundation on Linux has none.
extension UserDefaults {
  /// Does the same as `set(_:forKey:)`; nil removes the value.
  public func setValue(_ value: Any?, forKey key: String) { set(value, forKey: key) }

  /// Does the same as `object(forKey:)`.
  public func value(forKey key: String) -> Any? { object(forKey: key) }
}
