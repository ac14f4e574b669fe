import WormholeLibC
internal import WormholeCLinux

/// The flags with which a file is opened.
///
/// Close-on-exec and no-controlling-terminal are always added; no-follow is added unless the name
/// of a function states otherwise.
package struct OpenFlags: OptionSet, Sendable {
  package let rawValue: CInt
  package init(rawValue: CInt) { self.rawValue = rawValue }

  /// Same as the protocol's own initializer, which other modules would have to look up at run time.
  package init(arrayLiteral flags: OpenFlags...) {
    rawValue = flags.reduce(0) { $0 | $1.rawValue }
  }

  package static let readOnly = OpenFlags([])
  package static let writeOnly = OpenFlags(rawValue: O_WRONLY)
  package static let readWrite = OpenFlags(rawValue: O_RDWR)
  package static let create = OpenFlags(rawValue: O_CREAT)
  package static let exclusive = OpenFlags(rawValue: O_EXCL)
  package static let truncate = OpenFlags(rawValue: O_TRUNC)
  package static let append = OpenFlags(rawValue: O_APPEND)
  /// Opening a planted FIFO or device does not block.
  package static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
  package static var directory: OpenFlags { OpenFlags(rawValue: linux_open_directory) }
  /// A handle on the name alone: for fstat, not for reading.
  package static var path: OpenFlags { OpenFlags(rawValue: linux_open_path) }

  // Named, because a literal of several flags allocates memory. The ones with a flag of CLinux are
  // computed: such a flag is known at run time only, and each use of a stored constant would check
  // first whether the constant was set.

  /// For reading a file of unknown kind.
  package static let readOnlyNonBlocking = OpenFlags(rawValue: O_RDONLY | O_NONBLOCK)
  /// The same for the owner of the file, whose reading leaves the access time as it is; EPERM for
  /// any other user.
  package static var readOnlyKeepingTime: OpenFlags {
    OpenFlags(rawValue: O_RDONLY | O_NONBLOCK | linux_open_noatime)
  }
  /// For listing a directory, and for finding names in it.
  package static var readOnlyDirectory: OpenFlags {
    OpenFlags(rawValue: O_RDONLY | linux_open_directory)
  }
  /// For creating a file that must not exist yet.
  package static let writeOnlyNew = OpenFlags(rawValue: O_WRONLY | O_CREAT | O_EXCL)
  package static let readWriteNew = OpenFlags(rawValue: O_RDWR | O_CREAT | O_EXCL)

  static var always: OpenFlags {
    OpenFlags(rawValue: O_CLOEXEC | O_NOCTTY | linux_open_nofollow)
  }
  fileprivate static let alwaysFollowing = OpenFlags(rawValue: O_CLOEXEC | O_NOCTTY)
}

/// Permission bits.
package typealias FileMode = UInt32

extension Descriptor {
  /// Opens a user's path; the user is responsible for links in the leading directories.
  ///
  /// The last component is never followed.
  package static func open(
    path: UnsafePointer<CChar>, _ flags: OpenFlags, mode: FileMode = 0
  ) throws(Errno) -> Descriptor {
    let all = flags.union(.always).rawValue
    return Descriptor(
      adopting: try perform(.open, path) { WormholeLibC.openat(AT_FDCWD, path, all, mode) })
  }

  /// Opens a user's path as ``open(path:_:mode:)`` does, but follows a link in the last component:
  /// for a file that the user has named for reading, wherever the file is.
  package static func open(
    following path: UnsafePointer<CChar>, _ flags: OpenFlags
  ) throws(Errno) -> Descriptor {
    let all = flags.union(.alwaysFollowing).rawValue
    return Descriptor(
      adopting: try perform(.open, path) { WormholeLibC.openat(AT_FDCWD, path, all, 0) })
  }

  /// Opens a handle, as ``OpenFlags/path`` does, on the file at a path of which no component, not
  /// even the last, is a symbolic link.
  ///
  /// Kernels before 5.6 do not know this call, and a sandbox may refuse it.
  package static func open(straight path: UnsafePointer<CChar>) throws(Errno) -> Descriptor {
    // Unlike openat, openat2 refuses flags that have no meaning beside `O_PATH`.
    let flags = UInt64(linux_open_path | O_CLOEXEC)
    return Descriptor(
      adopting: try perform(.open, path) { linux_openat2(AT_FDCWD, path, flags, 0, 0) })
  }

  /// Opens a name in this directory, beneath it and through no symbolic link.
  ///
  /// - Parameter isGuarded: whether a forked child of this process gets a harmless file under the
  ///   number: for files whose locks must end with this process. Programs started by exec lose the
  ///   file anyway, like every descriptor here. A child that was not made by the C library's
  ///   `fork`, but by a bare clone(2), is not covered.
  package func open(
    _ name: UnsafePointer<CChar>, _ flags: OpenFlags, mode: FileMode = 0, isGuarded: Bool = false
  ) throws(Errno) -> Descriptor {
    let directory = try number
    var flags = flags
    return try Self.adopt(isGuarded: isGuarded) { () throws(Errno) in
      let opened = try Self.open(name, in: directory, flags, mode)
      // If the file has to be opened again, the first attempt has created it.
      if isGuarded { flags.subtract([.create, .exclusive]) }
      return opened
    }
  }

  private static func open(
    _ name: UnsafePointer<CChar>, in directory: CInt, _ flags: OpenFlags, _ mode: FileMode
  ) throws(Errno) -> CInt {
    let all = flags.union(.always).rawValue
    // A single component cannot lead elsewhere, and openat is the cheaper call.
    if isSingleComponent(name) {
      #if FAULT_POINTS
        if flags.isDisjoint(with: [.create, .truncate]) { turnstile_only_reads() }
      #endif
      return try perform(.open, on: directory, name) {
        WormholeLibC.openat(directory, name, all, mode)
      }
    }
    do throws(Errno) {
      // Unlike openat, openat2 refuses flags that have no meaning beside `O_PATH`.
      let strict = flags.contains(.path) ? all & ~O_NOCTTY : all
      return try perform(.open, on: directory, name) {
        linux_openat2(directory, name, UInt64(strict), UInt64(mode), 1)
      }
    } catch {
      // Kernels before 5.6 do not know it, and a sandbox may refuse what it does not know. Where
      // the file itself is what is refused, the plain calls say so once more.
      guard [.notImplemented, .notPermitted, .accessDenied].contains(error) else { throw error }
      return try open(stepwise: name, in: directory, all, mode)
    }
  }

  /// Opens one component after the other, each in the previous directory and through no link.
  private static func open(
    stepwise path: UnsafePointer<CChar>, in directory: CInt, _ flags: CInt, _ mode: FileMode
  ) throws(Errno) -> CInt {
    let slash = UInt8(ascii: "/")
    let path = String(cString: path).utf8
    let parts = path.split(separator: slash).map { String(decoding: $0, as: UTF8.self) }
    // As openat2 does, refuses a path out of the directory before opening any component.
    guard path.first != slash, !parts.contains("..") else { throw .crossDevice }
    var folder: Descriptor?
    for part in parts.dropLast() {
      let above = try folder?.number ?? directory
      do throws(Errno) {
        let step = OpenFlags([.path, .directory]).union(.always).rawValue
        let found = try perform(.open, on: above, part) { WormholeLibC.openat(above, part, step) }
        folder = Descriptor(adopting: found)
      } catch {
        var status = stat()
        let isLink =
          error == .notADirectory && fstatat(above, part, &status, AT_SYMLINK_NOFOLLOW) == 0
          && status.st_mode & S_IFMT == S_IFLNK
        throw isLink ? .tooManyLinks : error
      }
    }
    let (above, last) = (try folder?.number ?? directory, parts.last ?? ".")
    let opened = try perform(.open, on: above, last) {
      WormholeLibC.openat(above, last, flags, mode)
    }
    // The number of `folder` was in use until here.
    _ = consume folder
    return opened
  }
}

/// Returns whether openat suffices without openat2, because the name is in this very directory.
private func isSingleComponent(_ name: UnsafePointer<CChar>) -> Bool {
  strchr(name, CInt(UInt8(ascii: "/"))) == nil && strcmp(name, "..") != 0
}
