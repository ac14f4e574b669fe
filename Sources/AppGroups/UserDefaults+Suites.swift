public import Foundation

/// What gives `UserDefaults(suiteName:)` to the groups.
///
/// Foundation's class has an initialiser of that name, and a class of ours beside it would be
/// ambiguous in every file that imports both. An initialiser of a protocol that the class conforms
/// to is preferred for arguments that are a `String`, and may answer an object of a subclass.
public protocol SuiteOfDefaults {}

extension UserDefaults: SuiteOfDefaults {}

extension SuiteOfDefaults where Self: UserDefaults {
  /// The settings that go by a name.
  ///
  /// Those of a group, `group.…`, are shared by all programs of the user, and kept in the group's
  /// container. All others are Foundation's, as before. An argument that is a `String?` still
  /// reaches Foundation's own initialiser: unwrap it.
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
