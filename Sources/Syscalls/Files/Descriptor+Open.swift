internal import CLinux
import Glibc
import Synchronization

/// How a file is opened.
///
/// Close-on-exec and no-controlling-terminal are always added; no-follow is, unless the name of a
/// call says otherwise.
package struct OpenFlags: OptionSet, Sendable {
  package let rawValue: CInt
  package init(rawValue: CInt) { self.rawValue = rawValue }

  /// As the protocol's own, which other modules would have to look up at run time.
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
  /// A planted FIFO or device does not hold up the opening.
  package static let nonBlocking = OpenFlags(rawValue: O_NONBLOCK)
  package static let directory = OpenFlags(rawValue: linux_open_directory)
  /// A handle on the name alone: for fstat, not for reading.
  package static let path = OpenFlags(rawValue: linux_open_path)

  /// To read what may be anything; given whole, as putting flags together takes an allocation.
  package static let readOnlyNonBlocking = OpenFlags(rawValue: O_RDONLY | O_NONBLOCK)
  /// To make what must not be there yet.
  package static let writeOnlyNew = OpenFlags(rawValue: O_WRONLY | O_CREAT | O_EXCL)

  static let always =
    OpenFlags(rawValue: O_CLOEXEC | O_NOCTTY | linux_open_nofollow)
  fileprivate static let alwaysFollowing = OpenFlags(rawValue: O_CLOEXEC | O_NOCTTY)
}

/// Permission bits.
package typealias FileMode = UInt32

extension Descriptor {
  /// Opens a path of the user's, where links in the leading directories are the user's own affair.
  ///
  /// The last component is never followed.
  package static func open(
    path: UnsafePointer<CChar>, _ flags: OpenFlags, mode: FileMode = 0
  ) throws(Errno) -> Descriptor {
    let all = flags.union(.always).rawValue
    return Descriptor(
      adopting: try perform(.open, path) { Glibc.openat(AT_FDCWD, path, all, mode) })
  }

  /// Opens a path of the user's as ``open(path:_:mode:)`` does, but follows a last component that
  /// is a link: for what the user has named to be read, wherever it lies.
  package static func open(
    following path: UnsafePointer<CChar>, _ flags: OpenFlags
  ) throws(Errno) -> Descriptor {
    let all = flags.union(.alwaysFollowing).rawValue
    return Descriptor(
      adopting: try perform(.open, path) { Glibc.openat(AT_FDCWD, path, all, 0) })
  }

  /// Opens a handle, as ``OpenFlags/path`` does, on what lies at a path on which no component is a
  /// symbolic link, nor the last one.
  ///
  /// Kernels before 5.6 do not know this, and a sandbox may refuse it.
  package static func open(straight path: UnsafePointer<CChar>) throws(Errno) -> Descriptor {
    // Unlike openat, this refuses flags that mean nothing beside that one.
    let flags = UInt64(linux_open_path | O_CLOEXEC)
    return Descriptor(
      adopting: try perform(.open, path) { linux_openat2(AT_FDCWD, path, flags, 0, 0) })
  }

  /// Opens a name in this directory, beneath it and through no symbolic link.
  ///
  /// - Parameter isGuarded: whether a forked copy of this process gets a harmless file under the
  ///   number: for files whose locks are to end with this process. Programs that are started by
  ///   exec lose the file anyway, as any descriptor here; a copy that was made past the C library's
  ///   `fork`, by a bare clone(2), is not reached.
  package func open(
    _ name: UnsafePointer<CChar>, _ flags: OpenFlags, mode: FileMode = 0, isGuarded: Bool = false
  ) throws(Errno) -> Descriptor {
    let directory = try number
    var flags = flags
    return try Self.adopt(isGuarded: isGuarded) { () throws(Errno) in
      let opened = try Self.open(name, in: directory, flags, mode)
      // Should it have to be opened anew, it has been made.
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
      return try perform(.open, on: directory, name) { Glibc.openat(directory, name, all, mode) }
    }
    do throws(Errno) {
      return try perform(.open, on: directory, name) {
        linux_openat2(directory, name, UInt64(all), UInt64(mode), 1)
      }
    } catch {
      // Kernels before 5.6 do not know it, and a sandbox may refuse what it does not know.
      guard error == .notImplemented || error == .notPermitted else { throw error }
      return try open(stepwise: name, in: directory, all, mode)
    }
  }

  /// Opens one component after the other, each in the one before it and through no link.
  private static func open(
    stepwise path: UnsafePointer<CChar>, in directory: CInt, _ flags: CInt, _ mode: FileMode
  ) throws(Errno) -> CInt {
    let slash = UInt8(ascii: "/")
    let path = String(cString: path).utf8
    let parts = path.split(separator: slash).map { String(decoding: $0, as: UTF8.self) }
    // As openat2, it does not even start to leave the directory.
    guard path.first != slash, !parts.contains("..") else { throw .crossDevice }
    var folder: Descriptor?
    for part in parts.dropLast() {
      let above = try folder?.number ?? directory
      do throws(Errno) {
        let step = OpenFlags([.path, .directory]).union(.always).rawValue
        let found = try perform(.open, on: above, part) { Glibc.openat(above, part, step) }
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
    let opened = try perform(.open, on: above, last) { Glibc.openat(above, last, flags, mode) }
    // Its number was in use until here.
    _ = consume folder
    return opened
  }
}

/// Whether the name is one of this very directory, so that opening it needs no openat2.
private func isSingleComponent(_ name: UnsafePointer<CChar>) -> Bool {
  strchr(name, CInt(UInt8(ascii: "/"))) == nil && strcmp(name, "..") != 0
}
