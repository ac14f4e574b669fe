internal import CLinux
import Glibc

/// What the kernel knows of a file.
package struct FileStatus: Sendable {
  package enum Kind: Sendable, Equatable {
    case regular, directory, symbolicLink, fifo, socket, device
  }

  package let kind: Kind
  package let device: UInt64
  package let inode: UInt64
  package let size: Int
  package let links: Int
  package let owner: UInt32
  package let group: UInt32
  /// The permission bits, set-id and sticky bits among them.
  package let mode: FileMode
  /// Nanoseconds since 1970; what lies before that year, or after 2255, is told as its edge.
  package let modified: Int64
  /// The same of its last change, its names or its status; nobody can set that.
  package let changed: Int64

  private static let latestSecond: Int64 = 9_000_000_000

  fileprivate init(_ status: stat) {
    kind =
      switch status.st_mode & S_IFMT {
      case S_IFREG: .regular
      case S_IFDIR: .directory
      case S_IFLNK: .symbolicLink
      case S_IFIFO: .fifo
      case S_IFSOCK: .socket
      default: .device
      }
    device = UInt64(status.st_dev)
    inode = UInt64(status.st_ino)
    size = Int(status.st_size)
    links = Int(status.st_nlink)
    owner = status.st_uid
    group = status.st_gid
    mode = status.st_mode & 0o7777
    modified = Self.nanoseconds(status.st_mtim)
    changed = Self.nanoseconds(status.st_ctim)
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    // Anybody may give a file of theirs any time, and a file system may hold more than this does.
    let seconds = min(max(Int64(time.tv_sec), 0), latestSecond)
    return seconds * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Whether both speak of one and the same file.
  package func isSameFile(as other: FileStatus) -> Bool {
    inode == other.inode && device == other.device
  }
}

extension Descriptor {
  package func status() throws(Errno) -> FileStatus {
    let descriptor = try number
    var status = stat()
    _ = try perform(.fstat, on: descriptor) { Glibc.fstat(descriptor, &status) }
    return FileStatus(status)
  }

  /// The status of what a path of the user's leads to, through links too; or, of one that is a link
  /// itself, the link's own.
  package static func status(
    ofPath path: UnsafePointer<CChar>, following isFollowing: Bool = true
  ) throws(Errno) -> FileStatus {
    var status = stat()
    let flags = isFollowing ? 0 : AT_SYMLINK_NOFOLLOW
    _ = try perform(.fstatat, path) { Glibc.fstatat(AT_FDCWD, path, &status, flags) }
    return FileStatus(status)
  }

  /// The status of a name in this directory; of a symbolic link, the link's own.
  package func status(of name: UnsafePointer<CChar>) throws(Errno) -> FileStatus {
    let directory = try number
    var status = stat()
    _ = try perform(.fstatat, on: directory, name) {
      Glibc.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)
    }
    return FileStatus(status)
  }

  package func setMode(_ mode: FileMode) throws(Errno) {
    let descriptor = try number
    _ = try perform(.fchmod, on: descriptor) { Glibc.fchmod(descriptor, mode) }
  }

  /// Sets both times to now: for other processes to notice.
  package func touch() throws(Errno) {
    let descriptor = try number
    _ = try perform(.utimensat, on: descriptor) { Glibc.futimens(descriptor, nil) }
  }
}

/// What the kernel knows of the file system a descriptor lies on.
package struct FileSystemStatus: Sendable {
  /// The magic number of statfs(2).
  package let type: UInt32
  package let freeBytes: UInt64
  /// Nil where files are not counted, as on btrfs: there is always room for one more.
  package let freeFiles: UInt64?
  package let isReadOnly: Bool
}

extension Descriptor {
  package func fileSystem() throws(Errno) -> FileSystemStatus {
    let descriptor = try number
    var status = linux_file_system()
    _ = try perform(.fstatfs, on: descriptor) { linux_fstatfs(descriptor, &status) }
    return FileSystemStatus(
      type: UInt32(truncatingIfNeeded: status.type),
      freeBytes: status.block_size.multipliedReportingOverflow(by: status.free_blocks).partialValue,
      freeFiles: status.inodes == 0 ? nil : status.free_inodes,
      isReadOnly: status.read_only != 0)
  }
}
