internal import WormholeSyscalls

/// Makes a directory's names durable, once for all concurrent callers.
///
/// A sync covers every rename that happened before the sync started. A caller during a sync
/// therefore waits for the next one, and all callers of the interval share the next sync.
final class DirectorySync: Sendable {
  private struct State {
    var begun = 0
    var ended = 0
    var isRunning = false
    /// The errors of the latest syncs, by number, as long as a caller may still need them.
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
      let failure = Errno.of { () throws(Errno) in try directory.sync() }
      monitor.signal { state in
        state.ended = state.begun
        state.failures[state.ended] = failure
        state.isRunning = false
      }
      if let failure { throw failure }
    }
  }
}
