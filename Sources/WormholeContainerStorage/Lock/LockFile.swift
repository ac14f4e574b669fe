internal import WormholeSyscalls

/// One generation's lock file, open, and the thread that waits for the lock.
///
/// A wait for a flock cannot be ended from outside, so the caller's thread does not block in the
/// kernel: a thread of the lock file blocks, at most one for each file, and the caller waits for
/// the thread with a deadline. After a timeout, the thread remains in the kernel's queue; if the
/// lock is granted after the last caller's timeout, the thread unlocks at once.
final class LockFile: Sendable {
  let number: Int
  let file: Descriptor

  private struct State {
    var isWanted = false
    /// The thread is in the kernel's queue, or about to be.
    var isQueued = false
    var isGranted = false
    var failure: Errno?
    var hasThread = false
    /// No caller will wait for the lock any more.
    var isRetired = false
  }

  private let monitor = Monitor(State())

  /// How long the thread stays after its last wait: creating a thread often costs more than a wait.
  private static let rest = Duration.milliseconds(200)

  init(number: Int, file: consuming Descriptor) {
    self.number = number
    self.file = file
  }

  /// Takes the lock if it is free.
  ///
  /// While this file's thread is in the queue, the call returns false without trying: both would
  /// lock the same open file description.
  func tryLock() throws(Errno) -> Bool {
    guard !monitor.withLock({ $0.isQueued }) else { return false }
    return try file.tryLock(.exclusive)
  }

  func unlock() throws(Errno) { try file.unlock() }

  /// Lets the thread wait for the lock, unless it already does.
  func request() throws(Errno) {
    try monitor.withLock { state throws(Errno) in
      state.isWanted = true
      state.failure = nil
      guard !state.isQueued else { return }
      if !state.hasThread {
        try Thread("wormhole-lock") { self.run() }.detach()
        state.hasThread = true
      }
      state.isQueued = true
      monitor.broadcast()
    }
  }

  /// Waits for the lock until the deadline; true when this process has the lock.
  func wait(until deadline: Instant) throws(Errno) -> Bool {
    let failure = monitor.wait(until: deadline) { state -> Errno?? in
      if state.isGranted {
        state.isGranted = false
        state.isWanted = false
        return .some(nil)
      }
      if let failure = state.failure {
        state.failure = nil
        state.isWanted = false
        return failure
      }
      return nil
    }
    guard let failure else { return false }
    if let error = failure { throw error }
    return true
  }

  /// Withdraws the caller's request.
  func giveUp() {
    monitor.withLock { state in
      state.isWanted = false
      guard state.isGranted else { return }
      state.isGranted = false
      try? file.unlock()
    }
  }

  /// Marks the file as unused: its thread need not stay for the next wait.
  ///
  /// Otherwise, a program that makes a channel for each change would have as many threads as it has
  /// waits during the rest time of a thread.
  func retire() {
    monitor.signal { $0.isRetired = true }
  }

  private func run() {
    while true {
      let isDue =
        monitor.wait(until: .now + Self.rest) { $0.isQueued ? true : $0.isRetired ? false : nil }
        ?? false
      let ends = monitor.withLock { state in
        if !isDue, !state.isQueued { state.hasThread = false }
        return !state.hasThread
      }
      if ends { return }
      var failure: Errno?
      repeat {
        failure = Errno.of { () throws(Errno) in try file.lock(.exclusive) }
      } while failure == .interrupted
      monitor.signal { state in
        state.isQueued = false
        if let failure {
          state.failure = failure
        } else if state.isWanted {
          state.isGranted = true
        } else {
          try? file.unlock()
        }
      }
    }
  }
}
