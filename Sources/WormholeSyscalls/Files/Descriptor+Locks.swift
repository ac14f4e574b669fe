import WormholeLibC
internal import WormholeCLinux

/// The two kinds of lock: flock(2) for mutual exclusion, and open-file-description locks for
/// presence, because a process can query the second kind without taking the lock.
extension Descriptor {
  package enum LockKind: Sendable { case shared, exclusive }

  /// Takes the flock, waiting in the kernel's queue.
  ///
  /// A signal ends the wait with EINTR, so that the caller can check whether it still wants the
  /// lock.
  package func lock(_ kind: LockKind) throws(Errno) {
    try changeLock(kind == .shared ? LOCK_SH : LOCK_EX)
  }

  /// Takes the flock unless a conflicting lock is held.
  package func tryLock(_ kind: LockKind) throws(Errno) -> Bool {
    try ignoring(.wouldBlock, changeLock((kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB)) != nil
  }

  /// Releases the flock.
  ///
  /// Closing the file alone would not release the lock while a child being spawned holds a copy.
  package func unlock() throws(Errno) { try changeLock(LOCK_UN) }

  private func changeLock(_ operation: CInt) throws(Errno) {
    let descriptor = try number
    // Only a wait may be interrupted; neither an attempt nor a release is a wait.
    let waits = operation & (LOCK_NB | LOCK_UN) == 0
    _ = try perform(.flock, on: descriptor, retrying: !waits) {
      #if FAULT_POINTS
        if waits, turnstile_plays() != 0 { return turnstile_flock(descriptor, operation) }
      #endif
      return flock(descriptor, operation)
    }
  }

  /// Takes the exclusive description lock; returns false if another description has a lock.
  package func tryPresenceLock() throws(Errno) -> Bool { try tryPresenceLock(2) }

  /// Takes the shared description lock; returns false if another description has the exclusive
  /// lock.
  package func trySharedPresenceLock() throws(Errno) -> Bool { try tryPresenceLock(1) }

  private func tryPresenceLock(_ kind: CInt) throws(Errno) -> Bool {
    let descriptor = try number
    let result = try ignoring([.wouldBlock, .accessDenied]) { () throws(Errno) in
      try perform(.ofdlock, on: descriptor) { linux_ofd_lock(descriptor, kind) }
    }
    return result != nil
  }

  package func releasePresenceLock() throws(Errno) {
    let descriptor = try number
    _ = try perform(.ofdlock, on: descriptor) { linux_ofd_lock(descriptor, 0) }
  }

  /// Whether another description holds the presence lock exclusively.
  ///
  /// Asking takes no lock. A shared lock does not count: every process that may read the file can
  /// have one.
  package func isPresenceLocked() throws(Errno) -> Bool { try wouldRefuse(1) }

  /// Whether another description holds the presence lock, shared or exclusive.
  ///
  /// Asking takes no lock.
  package func isPresenceLockedOrShared() throws(Errno) -> Bool { try wouldRefuse(2) }

  private func wouldRefuse(_ kind: CInt) throws(Errno) -> Bool {
    let descriptor = try number
    return try perform(.ofdquery, on: descriptor) { linux_ofd_query(descriptor, kind) } == 1
  }
}
