internal import Syscalls

/// One generation's lock file, open, and the thread that waits for it.
///
/// A wait for a flock cannot be ended from outside, so it is not the caller's thread that blocks:
/// a thread of this file does, one at most, and the caller waits for the thread with a deadline.
/// A wait that was given up leaves the thread in the kernel's queue; when its turn comes and nobody
/// here wants the lock any more, it gives it back at once.
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
    /// Nobody will wait for it any more.
    var isRetired = false
  }

  private let monitor = Monitor(State())

  /// How long the thread stays after its last wait: creating one costs more than a wait often does.
  private static let rest = Duration.milliseconds(200)

  init(number: Int, file: consuming Descriptor) {
    self.number = number
    self.file = file
  }

  /// Takes the lock if it is free.
  ///
  /// While a thread of ours is in the queue it is not asked: both
  /// would ask for one and the same description.
  func tryLock() throws(Errno) -> Bool {
    guard !monitor.withLock({ $0.isQueued }) else { return false }
    return try file.tryLock(.exclusive)
  }

  func unlock() throws(Errno) { try file.unlock() }

  /// Gets in line, unless the thread stands there already.
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

  /// Waits for the lock until the deadline; true when this process has it.
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

  /// Wants it no longer.
  func giveUp() {
    monitor.withLock { state in
      state.isWanted = false
      guard state.isGranted else { return }
      state.isGranted = false
      try? file.unlock()
    }
  }

  /// Nobody waits for it any more: its thread need not stay for the next wait.
  ///
  /// Whoever makes a channel for each change would have as many threads as there are waits in the
  /// time for which one stays.
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
        failure = nil
        do throws(Errno) { try file.lock(.exclusive) } catch { failure = error }
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
