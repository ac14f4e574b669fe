package import WormholeSyscalls

/// The users who may use a container.
@nonexhaustive
public enum Sharing: Hashable, Sendable {
  /// The user who owns the container: files 0600, directories 0700.
  case owner
  /// All members of the directory's group: files 0660, directories 2770.
  case group

  /// The value in `container.plist`.
  var name: String { self == .owner ? "owner" : "group" }

  init?(name: String) {
    guard let sharing = [Self.owner, .group].first(where: { $0.name == name }) else { return nil }
    self = sharing
  }

  package var fileMode: FileMode { self == .owner ? 0o600 : 0o660 }
  package var directoryMode: FileMode { self == .owner ? 0o700 : 0o2770 }
  /// The permission bits of users who must not write to the container.
  var foreignWriters: FileMode { self == .owner ? 0o022 : 0o002 }
  /// The argument of `chmod` that withdraws the permission of ``foreignWriters``.
  var withoutForeignWriters: String { self == .owner ? "go-w" : "o-w" }
}
