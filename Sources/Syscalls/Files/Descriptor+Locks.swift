internal import CLinux
import Glibc

/// The two kinds of lock: flock(2) for mutual exclusion, and open-file-description locks for
/// presence, because those can be asked about without being taken.
extension Descriptor {
  package enum LockKind: Sendable { case shared, exclusive }

  /// Takes the flock, waiting in the kernel's queue.
  ///
  /// A signal ends the wait with EINTR, so that the
  /// caller can look whether it still wants it.
  package func lock(_ kind: LockKind) throws(Errno) {
    try changeLock(kind == .shared ? LOCK_SH : LOCK_EX)
  }

  /// Takes the flock if nobody has it in the way.
  package func tryLock(_ kind: LockKind) throws(Errno) -> Bool {
    do {
      try changeLock((kind == .shared ? LOCK_SH : LOCK_EX) | LOCK_NB)
      return true
    } catch {
      if error == .wouldBlock { return false }
      throw error
    }
  }

  /// Gives the flock back.
  ///
  /// Closing alone would not, while a child being spawned holds a copy.
  package func unlock() throws(Errno) { try changeLock(LOCK_UN) }

  private func changeLock(_ operation: CInt) throws(Errno) {
    let descriptor = try number
    // Only a wait may be given up; neither a try nor giving back is one.
    let waits = operation & (LOCK_NB | LOCK_UN) == 0
    _ = try perform(.flock, on: descriptor, retrying: !waits) {
      flock(descriptor, operation)
    }
  }

  /// Takes the exclusive description lock; false if another description has one.
  package func tryPresenceLock() throws(Errno) -> Bool {
    let descriptor = try number
    do {
      _ = try perform(.ofdlock, on: descriptor) { linux_ofd_lock(descriptor, 2) }
      return true
    } catch {
      if error == .wouldBlock || error == .accessDenied { return false }
      throw error
    }
  }

  /// Takes the shared description lock; false if another description has the exclusive one.
  package func trySharedPresenceLock() throws(Errno) -> Bool {
    let descriptor = try number
    do {
      _ = try perform(.ofdlock, on: descriptor) { linux_ofd_lock(descriptor, 1) }
      return true
    } catch {
      if error == .wouldBlock || error == .accessDenied { return false }
      throw error
    }
  }

  package func releasePresenceLock() throws(Errno) {
    let descriptor = try number
    _ = try perform(.ofdlock, on: descriptor) { linux_ofd_lock(descriptor, 0) }
  }

  /// Whether another description holds the presence lock, shared or exclusive.
  ///
  /// Asking takes no lock.
  package func isPresenceLocked() throws(Errno) -> Bool {
    let descriptor = try number
    return try perform(.ofdquery, on: descriptor) { linux_ofd_query(descriptor) } == 1
  }
}
