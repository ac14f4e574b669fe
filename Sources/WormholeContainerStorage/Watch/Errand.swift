internal import WormholeSyscalls

/// A task for background threads, run on request: one run at a time, and a further run if requested
/// during a run.
///
/// Handlers of the watcher use errands for long tasks: they request a run, and do not wait.
package final class Errand: Sendable {
  private let state = Monitor((isRunning: false, isAsked: false))
  private let body: @Sendable () -> Void

  package init(_ body: @escaping @Sendable () -> Void) { self.body = body }

  package func ask() {
    let begins = state.withLock { state in
      state.isAsked = true
      guard !state.isRunning else { return false }
      state.isRunning = true
      return true
    }
    if begins { Watcher.shared.soon { self.run() } }
  }

  private func run() {
    while state.withLock({ state in
      state.isRunning = state.isAsked
      state.isAsked = false
      return state.isRunning
    }) { body() }
  }
}

extension Watcher {
  /// Runs a task on a free thread, without waiting for it.
  func soon(_ work: @escaping @Sendable () -> Void) {
    if afterwards(work) { return }
    do throws(Errno) {
      try Thread("wormhole-watch", work).detach()
    } catch {
      // Out of threads: a delay of all listeners is better than no run.
      work()
    }
  }
}
