import WormholeLibC
internal import WormholeCLinux

/// The effect of a rename if the new name is taken.
package enum RenameRule: Sendable {
  /// The rename replaces the file that had the name, atomically.
  case replacing
  /// The rename fails with EEXIST.
  case notReplacing
  /// Both names must exist and are swapped atomically. EINVAL if the file system cannot swap names.
  case exchanging

  fileprivate var flags: UInt32 {
    switch self {
    case .replacing: 0
    case .notReplacing: linux_rename_noreplace
    case .exchanging: linux_rename_exchange
    }
  }
}

/// The calls that change the names in a directory. Each call acts on a name in this directory.
extension Descriptor {
  package func rename(
    _ old: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ new: UnsafePointer<CChar>, _ rule: RenameRule = .replacing
  ) throws(Errno) {
    let (from, to) = (try number, try directory.number)
    #if FAULT_POINTS
      turnstile_also(from, old)
    #endif
    guard rule != .replacing else {
      _ = try perform(.rename, on: to, new) { WormholeLibC.renameat(from, old, to, new) }
      return
    }
    do throws(Errno) {
      _ = try perform(.rename, on: to, new) { linux_renameat2(from, old, to, new, rule.flags) }
    } catch {
      guard Self.isRefused(rule, error) else { throw error }
      throw .notImplemented
    }
  }

  /// Whether a sandbox refuses the call itself, whatever the files: then it is as if the kernel did
  /// not know the call.
  ///
  /// The kernel fails this call for a name that is empty, before it looks at any permission; so a
  /// file that this user may not touch is still told as that, and nothing is tried in its place.
  private static func isRefused(_ rule: RenameRule, _ error: Errno) -> Bool {
    guard error == .notPermitted || error == .accessDenied else { return false }
    guard linux_renameat2(-1, "", -1, "", rule.flags) == -1 else { return false }
    return Errno.current == .notPermitted || Errno.current == .accessDenied
  }

  /// Gives the file an additional name; EEXIST if the name is taken.
  package func link(
    _ old: UnsafePointer<CChar>, to directory: borrowing Descriptor,
    _ new: UnsafePointer<CChar>
  ) throws(Errno) {
    let (from, to) = (try number, try directory.number)
    #if FAULT_POINTS
      turnstile_also(from, old)
    #endif
    _ = try perform(.link, on: to, new) { WormholeLibC.linkat(from, old, to, new, 0) }
  }

  /// Gives this open file a name, even if the name under which it was opened now has another file.
  package func linkOpen(
    to directory: borrowing Descriptor, _ new: UnsafePointer<CChar>
  ) throws(Errno) {
    let (own, to) = ("/proc/self/fd/\(try number)", try directory.number)
    #if FAULT_POINTS
      turnstile_also(try number, nil)
    #endif
    _ = try perform(.link, on: to, new) {
      WormholeLibC.linkat(AT_FDCWD, own, to, new, CInt(AT_SYMLINK_FOLLOW))
    }
  }

  package func unlink(_ name: UnsafePointer<CChar>) throws(Errno) {
    let directory = try number
    _ = try perform(.unlink, on: directory, name) { WormholeLibC.unlinkat(directory, name, 0) }
  }

  /// Creates a directory with all bits of this mode.
  ///
  /// - Parameter keepsUmask: whether the umask removes bits, as for a directory of the user's own.
  package func makeDirectory(
    _ name: UnsafePointer<CChar>, mode: FileMode, keepsUmask: Bool = false
  ) throws(Errno) {
    let directory = try number
    _ = try perform(.mkdir, on: directory, name) {
      keepsUmask
        ? WormholeLibC.mkdirat(directory, name, mode) : Self.makeWhole(name, in: directory, mode)
    }
  }

  /// Adds the bits that the umask has removed: a program that protects its files by a umask of 0177
  /// would otherwise create directories that no process can enter.
  private static func makeWhole(
    _ name: UnsafePointer<CChar>, in directory: CInt, _ mode: FileMode
  ) -> CInt {
    guard WormholeLibC.mkdirat(directory, name, mode) == 0 else { return -1 }
    var status = stat()
    guard fstatat(directory, name, &status, AT_SYMLINK_NOFOLLOW) == 0,
      status.st_mode & mode != mode
    else { return 0 }
    let flags = OpenFlags.directory.union(.always).rawValue
    let made = WormholeLibC.openat(directory, name, flags)
    guard made >= 0 else { return 0 }
    _ = WormholeLibC.fchmod(made, status.st_mode & 0o7777 | mode)
    _ = WormholeLibC.close(made)
    return 0
  }

  package func removeDirectory(_ name: UnsafePointer<CChar>) throws(Errno) {
    let directory = try number
    _ = try perform(.rmdir, on: directory, name) {
      WormholeLibC.unlinkat(directory, name, CInt(AT_REMOVEDIR))
    }
  }

  /// Creates a directory at a user's path, with all bits of this mode.
  ///
  /// - Parameter keepsUmask: whether the umask removes bits, as for a directory of the user's own.
  package static func makeDirectory(
    path: UnsafePointer<CChar>, mode: FileMode, keepsUmask: Bool = false
  ) throws(Errno) {
    _ = try perform(.mkdir, path) {
      keepsUmask ? WormholeLibC.mkdirat(AT_FDCWD, path, mode) : makeWhole(path, in: AT_FDCWD, mode)
    }
  }

  /// Removes an empty directory at a user's path.
  package static func removeDirectory(path: UnsafePointer<CChar>) throws(Errno) {
    _ = try perform(.rmdir, path) { WormholeLibC.unlinkat(AT_FDCWD, path, CInt(AT_REMOVEDIR)) }
  }
}
