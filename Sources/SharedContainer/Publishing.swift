package import Syscalls

/// Giving a finished file its visible name, on file systems of every kind.
extension Descriptor {
  /// Moves a file of this directory to a name that must be free; EEXIST if it is not.
  func publish(
    _ name: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ visible: UnsafePointer<CChar>
  ) throws(Errno) {
    do throws(Errno) {
      try rename(name, to: directory, visible, .notReplacing)
    } catch {
      guard error.meansUnsupportedRename else { throw error }
      try link(name, to: directory, visible)
      try unlink(name)
    }
  }

  /// Makes the name of a directory durable in the directory above it.
  static func syncParent(of path: String) throws(Errno) {
    let trimmed = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
    guard let slash = trimmed.lastIndex(of: "/") else {
      return try open(path: ".", [.readOnly, .directory]).sync()
    }
    let parent = slash == trimmed.startIndex ? "/" : String(trimmed[..<slash])
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
