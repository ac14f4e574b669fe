internal import CLinux
import Glibc

/// Files that are neither regular files nor directories, and further attributes of files.
extension Descriptor {
  /// Makes a symbolic link.
  ///
  /// This package never follows a link; tests make links to check that.
  package func makeSymbolicLink(
    _ name: UnsafePointer<CChar>, to target: UnsafePointer<CChar>
  ) throws(Errno) {
    let directory = try number
    _ = try perform(.symlink, on: directory, name) { Glibc.symlinkat(target, directory, name) }
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
        Glibc.readlinkat(directory, name, buffer.baseAddress!, buffer.count)
      }
      return Array(UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: buffer[..<count])))
    }
  }

  /// Creates an empty file without opening it.
  package func makeFile(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFREG | mode, 0)
    }
  }

  /// Creates a FIFO; a process that opens a FIFO without ``OpenFlags/nonBlocking`` is blocked.
  package func makeFIFO(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFIFO | mode, 0)
    }
  }

  /// Creates the name of a socket on which no process listens.
  package func makeSocket(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFSOCK | mode, 0)
    }
  }

  /// Changes the file's group; the owner stays.
  package func setGroup(_ group: UInt32) throws(Errno) {
    let descriptor = try number
    _ = try perform(.fchown, on: descriptor) { Glibc.fchown(descriptor, UInt32.max, group) }
  }

  /// Stops the whole file system of this file, as a power cut would: data that is not on disk is
  /// lost, and every later call on the file system fails.
  ///
  /// For root, and for tests that have mounted a file system in order to lose it.
  package func cutFileSystem() throws(Errno) {
    let descriptor = try number
    _ = try perform(.shutdown, on: descriptor) { linux_shutdown_file_system(descriptor) }
  }
}
