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
    let directory = rawValue
    _ = try perform(.symlink, on: directory, name) { Glibc.symlinkat(target, directory, name) }
  }

  /// What a symbolic link says, at most 4096 bytes of it.
  package func readSymbolicLink(_ name: UnsafePointer<CChar>) throws(Errno) -> [UInt8] {
    let directory = rawValue
    var buffer = [UInt8](repeating: 0, count: 4096)
    let count = try perform(.readlink, on: directory, name) {
      buffer.withUnsafeMutableBytes {
        Glibc.readlinkat(directory, name, $0.baseAddress!.assumingMemoryBound(to: CChar.self), 4096)
      }
    }
    return Array(buffer[..<count])
  }

  /// Makes a FIFO, which holds up whoever opens it without ``OpenFlags/nonBlocking``.
  package func makeFIFO(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = rawValue
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFIFO | mode, 0)
    }
  }

  /// Makes the name of a socket that nobody listens on.
  package func makeSocket(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = rawValue
    _ = try perform(.mknod, on: directory, name) {
      Glibc.mknodat(directory, name, S_IFSOCK | mode, 0)
    }
  }

  /// Gives the file to another group; its owner stays.
  package func setGroup(_ group: UInt32) throws(Errno) {
    let descriptor = rawValue
    _ = try perform(.fchown, on: descriptor) { Glibc.fchown(descriptor, UInt32.max, group) }
  }

  /// Stops the whole file system that the file lies on, as a power cut would: nothing that is not
  /// on disk gets there any more, and every later call on it fails.
  ///
  /// For root, and for tests that have mounted one to lose it.
  package func cutFileSystem() throws(Errno) {
    let descriptor = rawValue
    _ = try perform(.shutdown, on: descriptor) { linux_shutdown_file_system(descriptor) }
  }
}
