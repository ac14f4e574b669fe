internal import CLinux
import Glibc

/// What a rename does when the new name is taken.
package enum RenameRule: Sendable {
  /// The file that had the name is gone, in one step.
  case replacing
  /// EEXIST.
  case notReplacing
  /// Both names must exist and change places, in one step. EINVAL where the file system cannot.
  case exchanging

  fileprivate var flags: UInt32 {
    switch self {
    case .replacing: 0
    case .notReplacing: linux_rename_noreplace
    case .exchanging: linux_rename_exchange
    }
  }
}

/// The calls that change what a directory holds. Each acts on a name in this directory.
extension Descriptor {
  package func rename(
    _ old: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ new: UnsafePointer<CChar>, _ rule: RenameRule = .replacing
  ) throws(Errno) {
    let (from, to) = (try number, try directory.number)
    _ = try perform(.rename, on: to, new) { linux_renameat2(from, old, to, new, rule.flags) }
  }

  /// Gives the file another name as well; EEXIST if that is taken.
  package func link(
    _ old: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ new: UnsafePointer<CChar>
  ) throws(Errno) {
    let (from, to) = (try number, try directory.number)
    _ = try perform(.link, on: to, new) { Glibc.linkat(from, old, to, new, 0) }
  }

  /// Gives this open file a name, whatever has the one that it was opened by now.
  package func linkOpen(
    to directory: borrowing Descriptor, _ new: UnsafePointer<CChar>
  ) throws(Errno) {
    let (own, to) = ("/proc/self/fd/\(try number)", try directory.number)
    _ = try perform(.link, on: to, new) {
      Glibc.linkat(AT_FDCWD, own, to, new, CInt(AT_SYMLINK_FOLLOW))
    }
  }

  package func unlink(_ name: UnsafePointer<CChar>) throws(Errno) {
    let directory = try number
    _ = try perform(.unlink, on: directory, name) { Glibc.unlinkat(directory, name, 0) }
  }

  /// Makes a directory, with all of this mode.
  package func makeDirectory(_ name: UnsafePointer<CChar>, mode: FileMode) throws(Errno) {
    let directory = try number
    _ = try perform(.mkdir, on: directory, name) { Self.makeWhole(name, in: directory, mode) }
  }

  /// Programs that keep their files to themselves by a umask of 0177 would make directories that
  /// nobody can enter.
  private static func makeWhole(
    _ name: UnsafePointer<CChar>, in directory: CInt, _ mode: FileMode
  ) -> CInt {
    guard Glibc.mkdirat(directory, name, mode) == 0 else { return -1 }
    var status = stat()
    guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
      status.st_mode & mode != mode
    else { return 0 }
    let flags = OpenFlags.directory.union(.always).rawValue
    let made = Glibc.openat(directory, name, flags)
    guard made >= 0 else { return 0 }
    _ = Glibc.fchmod(made, status.st_mode & 0o7777 | mode)
    _ = Glibc.close(made)
    return 0
  }

  package func removeDirectory(_ name: UnsafePointer<CChar>) throws(Errno) {
    let directory = try number
    _ = try perform(.rmdir, on: directory, name) {
      Glibc.unlinkat(directory, name, CInt(AT_REMOVEDIR))
    }
  }

  /// Makes a directory at a path of the user's, with all of this mode.
  package static func makeDirectory(
    path: UnsafePointer<CChar>, mode: FileMode
  ) throws(Errno) {
    _ = try perform(.mkdir, path) { makeWhole(path, in: AT_FDCWD, mode) }
  }

  /// Removes an empty directory at a path of the user's.
  package static func removeDirectory(path: UnsafePointer<CChar>) throws(Errno) {
    _ = try perform(.rmdir, path) { Glibc.unlinkat(AT_FDCWD, path, CInt(AT_REMOVEDIR)) }
  }
}
