#if FAULT_POINTS
  internal import WormholeCLinux

  /// Processes with one running thread at a time, in the order of a schedule.
  ///
  /// The header `Turnstile.h` is the manual. `WormholeStress` makes the schedules.
  package enum Turnstile {
    /// The effect of a call on the file at the path.
    package enum CallEffect: Int, Sendable {
      /// Of a step that begins, ends, or waits for a thread of the same process.
      case nothing
      case other
      case readsName, readsFile, readsListing
      case writesName, writesFile
      /// Only of a call: a step contains another access instead.
      case readsStatus
      case watches
      case readsNotices
      /// Changes only what a power cut leaves.
      case syncs
    }

    /// Waits at a fault point until the schedule lets this thread continue.
    ///
    /// - Returns: an error to report instead of making the call.
    @inline(__always)
    static func pass(
      _ call: Call, _ descriptor: CInt, _ name: UnsafePointer<CChar>?
    ) -> Errno? {
      guard turnstile_plays() != 0 else { return nil }
      let error = turnstile_at(
        Int32(unsafeBitCast(call, to: UInt8.self)), call.changes ? 1 : 0, call.isLocal ? 1 : 0,
        Int32(call.access.rawValue), descriptor, name)
      return error == 0 ? nil : Errno(rawValue: error)
    }
  }

  extension Call {
    /// Whether the call can end a wait of another thread.
    fileprivate var changes: Bool {
      switch self {
      case .read, .pread, .fstat, .fstatat, .getdents, .fstatfs, .readlink, .ofdquery, .lseek,
        .epollWait, .poll, .inotifyInit, .eventfd, .epoll, .pipe, .waitpid, .duplicate, .fsync:
        false
      default: true
      }
    }

    /// Whether the call has no effect on other processes, and other processes none on the result.
    fileprivate var isLocal: Bool {
      switch self {
      case .inotifyInit, .eventfd, .epoll, .epollControl, .pipe, .fstatfs, .lseek, .duplicate,
        .inotifyRemove, .fsync:
        true
      default: false
      }
    }

    /// The effect of the call on the file at the path, without the flags of the call.
    fileprivate var access: Turnstile.CallEffect {
      switch self {
      case .fstatat, .readlink: .readsName
      // Of an inotify instance: notices.
      case .pread, .read: .readsFile
      case .getdents: .readsListing
      case .fstat: .readsStatus
      case .open, .rename, .link, .unlink, .mkdir, .rmdir, .symlink, .mknod: .writesName
      // Closing releases locks.
      case .write, .pwrite, .fchmod, .ftruncate, .utimensat, .fallocate, .clone, .flock, .ofdlock,
        .close, .connect, .accept, .send, .receive:
        .writesFile
      case .inotifyAdd: .watches
      case .epollWait, .poll: .readsNotices
      case .fsync: .syncs
      default: .other
      }
    }
  }
#endif
