import WormholeLibC
internal import WormholeCLinux

/// The status of a file as the kernel reports it.
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
  /// The permission bits, including the set-id and sticky bits.
  package let mode: FileMode
  /// Nanoseconds since 1970; a time before that year, or after 2255, is clamped.
  package let modified: Int64
  /// The time of the last change of content, names or status, in the same unit; no process can set
  /// it.
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
    #if FAULT_POINTS
      if turnstile_plays() != 0 {
        modified = turnstile_modified(kind == .directory ? 1 : 0)
        changed = modified
        return
      }
    #endif
    modified = Self.nanoseconds(status.st_mtim)
    changed = Self.nanoseconds(status.st_ctim)
  }

  private static func nanoseconds(_ time: timespec) -> Int64 {
    // An owner may set any time on a file, and a file system may hold later times than this field.
    let seconds = min(max(Int64(time.tv_sec), 0), latestSecond)
    return seconds * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// Returns whether both statuses describe the same file.
  package func isSameFile(as other: FileStatus) -> Bool {
    inode == other.inode && device == other.device
  }
}

extension Descriptor {
  package func status() throws(Errno) -> FileStatus {
    let descriptor = try number
    var status = stat()
    _ = try perform(.fstat, on: descriptor) { WormholeLibC.fstat(descriptor, &status) }
    return FileStatus(status)
  }

  /// Returns the status of the file that a user's path leads to, through links too; if
  /// `isFollowing` is false and the path is a link, the link's own status.
  package static func status(
    ofPath path: UnsafePointer<CChar>, following isFollowing: Bool = true
  ) throws(Errno) -> FileStatus {
    var status = stat()
    let flags = isFollowing ? 0 : AT_SYMLINK_NOFOLLOW
    _ = try perform(.fstatat, path) { WormholeLibC.fstatat(AT_FDCWD, path, &status, flags) }
    return FileStatus(status)
  }

  /// Returns the status of a name in this directory; for a symbolic link, the link's own status.
  package func status(of name: UnsafePointer<CChar>) throws(Errno) -> FileStatus {
    let directory = try number
    var status = stat()
    _ = try perform(.fstatat, on: directory, name) {
      WormholeLibC.fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW)
    }
    return FileStatus(status)
  }

  package func setMode(_ mode: FileMode) throws(Errno) {
    let descriptor = try number
    _ = try perform(.fchmod, on: descriptor) { WormholeLibC.fchmod(descriptor, mode) }
  }

  /// Sets both times to now, as a notice for other processes.
  package func touch() throws(Errno) {
    let descriptor = try number
    _ = try perform(.utimensat, on: descriptor) { WormholeLibC.futimens(descriptor, nil) }
  }
}

extension Descriptor {
  /// Sets the time of the last change of an entry's content, in nanoseconds since 1970.
  ///
  /// Only the owner of the entry may set another time than the present.
  package func setModified(
    of name: UnsafePointer<CChar>, to nanoseconds: Int64
  ) throws(Errno) {
    let descriptor = try number
    _ = try perform(.utimensat, on: descriptor, name) {
      linux_set_modified(descriptor, name, nanoseconds)
    }
  }

  /// Sets the time of the last change of the content, in nanoseconds since 1970.
  package func setModified(to nanoseconds: Int64) throws(Errno) {
    let descriptor = try number
    _ = try perform(.utimensat, on: descriptor) {
      linux_set_modified(descriptor, nil, nanoseconds)
    }
  }
}

/// The status of the file system that contains a descriptor's file.
package struct FileSystemStatus: Sendable {
  /// The magic number of statfs(2).
  package let type: UInt32
  package let freeBytes: UInt64
  /// Nil if the file system does not count files, as on btrfs: one more file always fits.
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
