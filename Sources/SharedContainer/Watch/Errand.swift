internal import Syscalls

/// Something that is done whenever there may be need of it: once at a time, and again if it was
/// asked for meanwhile.
///
/// For what handlers of the watcher's must not do themselves, because it may take its time: they
/// ask, and do not wait.
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
  /// Does something on whichever thread is free, and does not wait for it.
  func soon(_ work: @escaping @Sendable () -> Void) {
    if afterwards(work) { return }
    do throws(Errno) {
      try Thread("wormhole-watch", work).detach()
    } catch {
      // Out of threads: better late for others than never.
      work()
    }
  }
}
