import WormholeLibC

/// Files that are neither regular files nor directories, and further attributes of files.
extension Descriptor {
  /// Makes a symbolic link.
  ///
  /// This package never follows a link; tests make links to check that.
  package func makeSymbolicLink(
    _ name: UnsafePointer<CChar>, to target: UnsafePointer<CChar>
  ) throws(Errno) {
    let directory = try number
    _ = try perform(.symlink, on: directory, name) {
      WormholeLibC.symlinkat(target, directory, name)
    }
  }

  /// Returns the target of a symbolic link, at most 4096 bytes.
  package func readSymbolicLink(_ name: UnsafePointer<CChar>) throws(Errno) -> [UInt8] {
    try Self.readLink(of: number, name)
  }

  /// Returns the target of a symbolic link at a user's path, at most 4096 bytes.
  package static func readSymbolicLink(path: UnsafePointer<CChar>) throws(Errno) -> [UInt8] {
    try readLink(of: AT_FDCWD, path)
  }

  private static func readLink(
    of directory: CInt, _ name: UnsafePointer<CChar>
  ) throws(Errno) -> [UInt8] {
    try withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer throws(Errno) in
      let count = try perform(.readlink, on: directory, name) {
        WormholeLibC.readlinkat(directory, name, buffer.baseAddress!, buffer.count)
      }
      return Array(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: buffer[..<count])))
    }
  }

  /// Creates an empty file without opening it; tests make files of other types.
  package func makeFile(
    _ name: UnsafePointer<CChar>, mode: FileMode, type: FileMode = S_IFREG
  ) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      WormholeLibC.mknodat(directory, name, type | mode, 0)
    }
  }
}
