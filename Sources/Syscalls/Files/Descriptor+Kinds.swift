internal import CLinux
import Glibc

/// Files of other kinds than regular ones and directories, and what else a file can be given.
extension Descriptor {
  /// Makes a symbolic link.
  ///
  /// Nobody in this package follows one; it is made to see that.
  package func makeSymbolicLink(
    _ name: UnsafePointer<CChar>, to target: UnsafePointer<CChar>
  ) throws(Errno) {
    let directory = try number
    _ = try perform(.symlink, on: directory, name) { Glibc.symlinkat(target, directory, name) }
  }

  /// What a symbolic link says, at most 4096 bytes of it.
  package func readSymbolicLink(_ name: UnsafePointer<CChar>) throws(Errno) -> [UInt8] {
    try Self.readLink(of: number, name)
  }

  /// What a symbolic link at a path of the user's says, at most 4096 bytes of it.
  package static func readSymbolicLink(path: UnsafePointer<CChar>) throws(Errno) -> [UInt8] {
    try readLink(of: AT_FDCWD, path)
  }

  private static func readLink(
    of directory: CInt, _ name: UnsafePointer<CChar>
  ) throws(Errno) -> [UInt8] {
    try withUnsafeTemporaryAllocation(of: CChar.self, capacity: 4096) { buffer throws(Errno) in
      let count = try perform(.readlink, on: directory, name) {
        Glibc.readlinkat(directory, name, buffer.baseAddress!, buffer.count)
      }
      return Array(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: buffer[..<count])))
    }
  }

  /// Makes an empty file, and does not open it.
  package func makeFile(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFREG | mode, 0)
    }
  }

  /// Makes a FIFO, which holds up whoever opens it without ``OpenFlags/nonBlocking``.
  package func makeFIFO(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFIFO | mode, 0)
    }
  }

  /// Makes the name of a socket that nobody listens on.
  package func makeSocket(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFSOCK | mode, 0)
    }
  }

  /// Gives the file to another group; its owner stays.
  package func setGroup(_ group: UInt32) throws(Errno) {
    let descriptor = try number
    _ = try perform(.fchown, on: descriptor) { Glibc.fchown(descriptor, UInt32.max, group) }
  }

  /// Stops the whole file system that the file lies on, as a power cut would: nothing that is not
  /// on disk gets there any more, and every later call on it fails.
  ///
  /// For root, and for tests that have mounted one to lose it.
  package func cutFileSystem() throws(Errno) {
    let descriptor = try number
    _ = try perform(.shutdown, on: descriptor) { linux_shutdown_file_system(descriptor) }
  }
}
