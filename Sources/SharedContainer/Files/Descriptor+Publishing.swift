package import Syscalls

/// Giving a finished file its visible name, on file systems of every kind.
extension Descriptor {
  /// Moves a file of this directory to a name that must be free; EEXIST if it is not.
  func publish(
    _ name: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ visible: UnsafePointer<CChar>
  ) throws(Errno) {
    if try moved(name, toFree: visible, in: directory) { return }
    try link(name, to: directory, visible)
    try unlink(name)
  }

  /// The same for what only a rename can move; EEXIST or ENOTEMPTY if the name is not free.
  ///
  /// That is a directory, or a file that stays locked: through FUSE a link is another file to the
  /// kernel. Where every rename replaces, nobody else may want the name.
  func publishAsItIs(
    _ name: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ visible: UnsafePointer<CChar>
  ) throws(Errno) {
    if try moved(name, toFree: visible, in: directory) { return }
    // An empty directory would be replaced, under whoever has it open.
    if (try? directory.status(of: visible)) != nil { throw .fileExists }
    try rename(name, to: directory, visible)
  }

  /// False where the file system knows no rename that does not replace.
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

  /// Makes the name of a directory durable in the directory above it.
  static func syncParent(of path: String) throws(Errno) {
    let parent = UserPath(UserPath.withoutSlashes(path)).directory
    do throws(Errno) {
      try open(path: parent, [.readOnly, .directory]).sync()
    } catch {
      // A parent that may be passed through but not read, or is a link, is not ours to sync.
      guard error == .accessDenied || error == .tooManyLinks || error == .notADirectory else {
        throw error
      }
    }
  }
}

extension Errno {
  /// What kernels and file systems say of a renameat2 flag that they do not know.
  var meansUnsupportedRename: Bool {
    self == .invalidArgument || self == .notImplemented || self == .notSupported
  }

  /// What a body that makes system calls failed with; nil if it did not.
  package static func of(_ body: () throws(Errno) -> Void) -> Errno? {
    do throws(Errno) {
      try body()
      return nil
    } catch {
      return error
    }
  }
}
