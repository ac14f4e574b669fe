package import WormholeSyscalls

/// Removes one of the package's directories with its content, to a depth that the package never
/// reaches.
///
/// - Parameter sharing: `.group` for places where any member of a group may put files. A directory
///   is then emptied only if every member could do the same: it has the mode of a group's
///   directories, and the same group as its parent directory. Otherwise a member could rename
///   another user's directory to a name that is removed, and make its owner's process delete files
///   that the member cannot delete.
package func removeTree(
  _ name: UnsafePointer<CChar>, in parent: borrowing Descriptor, depth: Int = 4,
  _ sharing: Sharing = .owner
) throws(Errno) {
  do throws(Errno) {
    let directory = try parent.open(name, .readOnlyDirectory)
    try sharing.checkRemovable(directory, in: parent)
    try empty(directory, depth: depth, sharing)
  } catch {
    if error == .noSuchFile { return }
    throw error
  }
  try parent.removeDirectory(name)
}

/// Removes the content of one of the package's directories.
///
/// Links are removed, not followed.
func empty(
  _ directory: borrowing Descriptor, depth: Int = 4, _ sharing: Sharing = .owner
) throws(Errno) {
  guard depth > 0 else { throw .directoryNotEmpty }
  // Processes may still add files, so list again until nothing is left; but not forever, as some
  // file systems keep open files under ever new names.
  var isEmpty = false
  var passes = 0
  while !isEmpty {
    isEmpty = true
    passes += 1
    guard passes <= 10 else { throw .directoryNotEmpty }
    for name in try directory.names(most: .max) {
      isEmpty = false
      do throws(Errno) {
        try directory.unlink(name)
      } catch {
        switch error {
        case .noSuchFile: break
        case .isADirectory, .notPermitted:
          let failure = Errno.of { () throws(Errno) in
            try removeTree(name, in: directory, depth: depth - 1, sharing)
          }
          // Unless it is a directory, the name belongs to a file that this user may not remove.
          if let failure { throw failure == .notADirectory ? error : failure }
        default: throw error
        }
      }
    }
  }
}

extension Sharing {
  /// Throws EPERM unless a directory may be emptied, or removed, by its name.
  func checkRemovable(
    _ directory: borrowing Descriptor, in parent: borrowing Descriptor
  ) throws(Errno) {
    guard self == .group, !Mutants.has(.removePrivate) else { return }
    let status = try directory.status()
    guard Self.isForMembers(status), try parent.status().group == status.group else {
      throw .notPermitted
    }
  }

  /// Removes an empty directory of the container.
  func removeEmpty(
    _ name: UnsafePointer<CChar>, in parent: borrowing Descriptor
  ) throws(Errno) {
    if self == .group {
      try checkRemovable(try parent.open(name, .readOnlyDirectory), in: parent)
    }
    try parent.removeDirectory(name)
  }
}
