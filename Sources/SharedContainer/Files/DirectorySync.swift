internal import Syscalls

/// Makes a directory's names durable, once for all who ask at the same time.
///
/// A sync that began after a rename covers it. So whoever comes while one is under way waits for
/// the next, and all who came meanwhile share that.
final class DirectorySync: Sendable {
  private struct State {
    var begun = 0
    var ended = 0
    var isRunning = false
    /// How the latest rounds ended, by number; those that somebody may still ask for.
    var failures: [Int: Errno] = [:]
    var waiting = 0
  }

  private let monitor = Monitor(State())

  func sync(_ directory: borrowing Descriptor) throws(Errno) {
    let round = monitor.withLock { state in
      state.waiting += 1
      return state.begun + 1
    }
    defer {
      monitor.withLock { state in
        state.waiting -= 1
        if state.waiting == 0 { state.failures = [:] }
      }
    }
    enum Part { case lead, follow(Errno?) }
    let part = monitor.wait(until: nil) { state -> Part? in
      if state.ended >= round { return .follow(state.failures[round]) }
      guard !state.isRunning else { return nil }
      state.isRunning = true
      state.begun += 1
      return .lead
    }
    switch part {
    case .follow(let failure):
      if let failure { throw failure }
    case .lead, nil:
      var failure: Errno?
      do throws(Errno) { try directory.sync() } catch { failure = error }
      monitor.signal { state in
        state.ended = state.begun
        state.failures[state.ended] = failure
        state.isRunning = false
      }
      if let failure { throw failure }
    }
  }
}
