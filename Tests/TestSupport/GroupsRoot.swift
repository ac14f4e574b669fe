import SharedContainer

/// Where all groups of this test program lie, so that no test touches the account's own.
///
/// One for the whole program, as a process has one root of groups; each test uses groups with names
/// of its own.
package enum GroupsRoot {
  private static let folder = Result { try TemporaryDirectory() }

  /// Has this program's groups lie in a directory of its own; returns its path.
  @discardableResult
  package static func use() throws -> String {
    let path = try folder.get().path
    ContainerLocation.givenRoot = path
    return path
  }

  /// The setting that has a program meet this one.
  package static var setting: String {
    get throws { "WORMHOLE_ROOT=\(try use())" }
  }
}
