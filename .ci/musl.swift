// What Swift's own part of the module adds to the headers, and adds alike for each C library.
@_exported public import CMusl

public var errno: CInt {
  get { __errno_location().pointee }
  set { __errno_location().pointee = newValue }
}

public func open(_ path: UnsafePointer<CChar>, _ flags: CInt) -> CInt { -1 }
public func open(_ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t) -> CInt { -1 }
public func openat(_ at: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt) -> CInt { -1 }
public func openat(
  _ at: CInt, _ path: UnsafePointer<CChar>, _ flags: CInt, _ mode: mode_t
) -> CInt { -1 }
public func fcntl(_ descriptor: CInt, _ command: CInt) -> CInt { -1 }
public func fcntl(_ descriptor: CInt, _ command: CInt, _ value: CInt) -> CInt { -1 }
public func fcntl(
  _ descriptor: CInt, _ command: CInt, _ value: UnsafeMutableRawPointer
) -> CInt { -1 }
public func ioctl(_ descriptor: CInt, _ request: UInt, _ value: CInt) -> CInt { -1 }
public func ioctl(
  _ descriptor: CInt, _ request: UInt, _ value: UnsafeMutableRawPointer
) -> CInt { -1 }

public var S_IFMT: mode_t { 0o170000 }
public var S_IFIFO: mode_t { 0o010000 }
public var S_IFCHR: mode_t { 0o020000 }
public var S_IFDIR: mode_t { 0o040000 }
public var S_IFBLK: mode_t { 0o060000 }
public var S_IFREG: mode_t { 0o100000 }
public var S_IFLNK: mode_t { 0o120000 }
public var S_IFSOCK: mode_t { 0o140000 }
