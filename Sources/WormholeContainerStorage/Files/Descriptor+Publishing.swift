package import WormholeSyscalls

/// Giving a finished file its visible name, on file systems of every kind.
extension Descriptor {
  /// Moves a file of this directory to a free name; EEXIST if the name is taken.
  func publish(
    _ name: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ visible: UnsafePointer<CChar>
  ) throws(Errno) {
    if try moved(name, toFree: visible, in: directory) { return }
    try link(name, to: directory, visible)
    try unlink(name)
  }

  /// Moves an entry that only a rename can move; EEXIST or ENOTEMPTY if the name is taken.
  ///
  /// Such an entry is a directory, or a file that stays locked: through FUSE the kernel treats a
  /// link as another file. If every rename of the file system replaces, no other process may use
  /// the name.
  func publishAsItIs(
    _ name: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ visible: UnsafePointer<CChar>
  ) throws(Errno) {
    if try moved(name, toFree: visible, in: directory) { return }
    // The rename would replace an empty directory that another process has open.
    if (try? directory.status(of: visible)) != nil { throw .fileExists }
    try rename(name, to: directory, visible)
  }

  /// False if the file system has no rename that refuses to replace.
  private func moved(
    _ name: UnsafePointer<CChar>, toFree visible: UnsafePointer<CChar>,
    in directory: borrowing Descriptor
  ) throws(Errno) -> Bool {
    do throws(Errno) {
      try rename(name, to: directory, visible, .notReplacing)
      return true
    } catch {
      guard error.meansUnsupportedRename else { throw error }
      return false
    }
  }

  /// Makes the name of a directory durable in its parent directory.
  static func syncParent(of path: String) throws(Errno) {
    let parent = UserPath(UserPath.withoutSlashes(path)).directory
    // A parent that is searchable but not readable, or is a link, need not be synced here. Some
    // file systems sync no directory.
    try ignoring([.accessDenied, .tooManyLinks, .notADirectory, .invalidArgument]) {
      () throws(Errno) in
      try open(path: parent, .readOnlyDirectory).sync()
    }
  }
}

extension Errno {
  /// Whether the error is a reply to an unknown flag of renameat2.
  var meansUnsupportedRename: Bool {
    self == .invalidArgument || self == .notImplemented || self == .notSupported
  }

  /// Whether the file system has no hard links, or the file may have none.
  var meansNoLinks: Bool {
    self == .notPermitted || self == .notImplemented || self == .notSupported
  }

  /// Returns the error of a body that makes system calls; nil if there is none.
  package static func of(_ body: () throws(Errno) -> Void) -> Errno? {
    do throws(Errno) {
      try body()
      return nil
    } catch {
      return error
    }
  }
}
