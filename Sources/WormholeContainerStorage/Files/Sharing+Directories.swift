internal import WormholeSyscalls

/// Directories of a container that a group shares.
///
/// Each member of the group may rename directories in the container and in the group's directory,
/// including those of other users: a user's private directory can get the name of a directory that
/// the container expects. An existing directory therefore keeps its mode and owner, and is used
/// only if it already has all the mode bits. A new directory gets its mode before its name;
/// otherwise it would shut the other members out while its maker is suspended, and forever if its
/// maker dies.
extension Sharing {
  /// Whether each member can use a directory, and only members can write to it.
  ///
  /// False also with the sticky bit, which keeps members from removing each other's files.
  static func isForMembers(_ status: FileStatus) -> Bool {
    status.mode & 0o3772 == FileMode(0o2770)
  }

  /// Opens a directory of the container; makes a missing one.
  ///
  /// - Parameter make: makes the directory with its mode; may fail if another process was faster.
  func openDirectory(
    _ name: String, in parent: borrowing Descriptor, make: () throws(Errno) -> Void
  ) throws(Errno) -> Descriptor {
    var tries = 0
    while true {
      do throws(Errno) {
        return try openExisting(name, in: parent)
      } catch {
        tries += 1
        guard error == .noSuchFile, tries < 1000 else { throw error }
      }
      try Self.tolerating(make)
    }
  }

  static func tolerating(_ make: () throws(Errno) -> Void) throws(Errno) {
    try ignoring([.fileExists, .directoryNotEmpty], make)
  }

  /// Opens an existing directory of the container.
  ///
  /// In a group's container EPERM if the directory does not have the mode of the container's own;
  /// ``denial(of:in:at:)`` returns the remedy.
  func openExisting(
    _ name: String, in parent: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    let directory = try parent.open(name, .readOnlyDirectory)
    guard self == .group else { return directory }
    let status = try directory.status()
    if Self.isForMembers(status) { return directory }
    guard Mutants.has(.mendFound), status.owner == Processes.effectiveUser,
      status.mode & foreignWriters == 0
    else { throw .notPermitted }
    try directory.setMode(status.mode | directoryMode)
    return directory
  }

  /// Makes a directory without the user's own folder in `staging/`, which may not exist yet; EEXIST
  /// or ENOTEMPTY if the name is taken.
  ///
  /// The directory is made, and gets its mode, inside a hidden directory that no other user can
  /// enter: any member may rename the hidden directory, but not its content. If this process is
  /// killed in the meantime, the hidden directory stays. Without proof of the maker, no program
  /// removes it.
  func makeBeside(
    _ name: String, in parent: borrowing Descriptor, mode: FileMode? = nil,
    _ environment: Environment
  ) throws(Errno) {
    guard self == .group else { return try parent.makeDirectory(name, mode: 0o700) }
    let hidden = Self.hiddenName(environment)
    try parent.makeDirectory(hidden, mode: 0o700)
    // Removal by name is safe: members could remove any empty directory in its place themselves.
    defer { try? parent.removeDirectory(hidden) }
    let outer = try parent.open(hidden, .readOnlyDirectory)
    let status = try outer.status()
    guard status.owner == Processes.effectiveUser, status.mode & 0o077 == 0 else {
      throw .notPermitted
    }
    let inner = environment.randomName()
    try outer.makeDirectory(inner, mode: 0o700)
    do throws(Errno) {
      try outer.open(inner, .readOnlyDirectory).setMode(mode ?? directoryMode)
      try outer.publishAsItIs(inner, to: parent, name)
    } catch {
      try? outer.removeDirectory(inner)
      throw error
    }
  }

  /// Opens a directory; makes a missing one as ``makeBeside(_:in:mode:_:)`` does.
  func ensureBeside(
    _ name: String, in parent: borrowing Descriptor, _ environment: Environment
  ) throws(Errno) -> Descriptor {
    try openDirectory(name, in: parent) { () throws(Errno) in
      try makeBeside(name, in: parent, environment)
    }
  }

  /// Returns a name for a temporary directory in the parent of the new one.
  static func hiddenName(_ environment: Environment) -> String {
    hiddenPrefix + environment.randomName()
  }
  static let hiddenPrefix = ".wormhole-"

  /// Returns a hidden name that is always the same for a given name.
  static func hiddenName(of name: String) -> String {
    hiddenPrefix + FowlerHash.hash(name.utf8).digits
  }
}
