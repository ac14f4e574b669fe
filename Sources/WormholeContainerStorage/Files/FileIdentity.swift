internal import WormholeSyscalls

/// The identity of a directory or file, whatever its path.
package struct FileIdentity: Hashable, Sendable {
  let device: UInt64
  let inode: UInt64

  init(_ status: FileStatus) {
    device = status.device
    inode = status.inode
  }
}
