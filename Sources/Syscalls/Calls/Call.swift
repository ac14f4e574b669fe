import Glibc

/// The system calls this room makes, by the names the kernel gives them.
///
/// Fault rules and traces speak of them by these names.
package enum Call: String, CaseIterable, Sendable {
  case open, close, read, pread, write, pwrite, fsync, fdatasync, rename, link, unlink, mkdir
  case rmdir, fstat, fstatat, fchmod, fchown, ftruncate, utimensat, flock, ofdlock, ofdquery
  case inotifyInit, inotifyAdd, inotifyRemove, poll, epoll, epollControl, epollWait, eventfd
  case pipe, getdents, fstatfs, symlink, mknod, readlink, clone, copyRange, fallocate, duplicate
  case lseek, spawn, waitpid
  case shutdown
}

/// How often one call is begun again after EINTR before the caller is told.
///
/// No real signal storm comes near; the bound keeps a broken kernel from holding a thread for ever.
private let interruptionLimit = 1000

/// Makes one system call: counts it, begins it again after EINTR, throws what errno says.
///
/// The descriptor and the name that the call concerns are there for fault rules and traces.
@inline(__always)
func perform<Result: FixedWidthInteger>(
  _ call: Call, on descriptor: CInt = -1, _ name: UnsafePointer<CChar>? = nil,
  retrying: Bool = true, _ body: () -> Result
) throws(Errno) -> Result {
  var interruptions = 0
  while true {
    let error: Errno
    #if FAULT_POINTS
      if let injected = FaultPoints.before(call, descriptor, name) {
        // Whatever close reports, the number is free afterwards, and the locks with it.
        if call == .close { _ = body() }
        error = injected
      } else {
        CallCounters.count()
        let result = body()
        if result != -1 {
          FaultPoints.after(call, descriptor, name)
          return result
        }
        error = Errno.current
      }
    #else
      CallCounters.count()
      let result = body()
      if result != -1 { return result }
      error = Errno.current
    #endif
    guard retrying, error == .interrupted, interruptions < interruptionLimit else { throw error }
    interruptions += 1
  }
}
