import WormholeContainerStorage

/// The root of all groups of this test program, so that no test touches the account's own groups.
///
/// One root for the whole program, as a process has only one root of groups; each test uses groups
/// with names of its own.
package enum GroupsRoot {
  private static let folder = Result { try TemporaryDirectory() }

  /// Puts this program's groups into a directory of its own; returns its path.
  @discardableResult
  package static func use() throws -> String {
    let path = try folder.get().path
    ContainerLocation.givenRoot = path
    return path
  }

  /// The setting with which another program uses the same root.
  package static var setting: String {
    get throws { "WORMHOLE_ROOT=\(try use())" }
  }
}
