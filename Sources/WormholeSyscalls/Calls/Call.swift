import WormholeLibC

/// The system calls of this module, by their kernel names.
///
/// Fault rules and traces use these names.
package enum Call: String, CaseIterable, Sendable {
  case open, close, read, pread, write, pwrite, fsync, rename, link, unlink, mkdir
  case rmdir, fstat, fstatat, fchmod, ftruncate, utimensat, flock, ofdlock, ofdquery
  case inotifyInit, inotifyAdd, inotifyRemove, poll, epoll, epollControl, epollWait, eventfd
  case pipe, getdents, fstatfs, symlink, mknod, readlink, clone, fallocate, duplicate
  case lseek, syncRange, spawn, waitpid, socket, connect, receive, send, listen, accept
}

/// The number of repeated attempts after EINTR before a call fails.
///
/// No real signal storm reaches this limit. The limit keeps a broken kernel from holding a thread
/// forever.
private let interruptionLimit = 1000

/// Makes one system call: counts the call, repeats it after EINTR, and throws the errno.
///
/// Fault rules and traces use the descriptor and the name that the call concerns.
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
        // Whatever close reports, the kernel frees the number and releases the locks. So the call
        // is made even if a fault rule makes it fail.
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
