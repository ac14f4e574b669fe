internal import Synchronization
internal import Syscalls

extension Slot {
  /// Calls the handler whenever the value may have changed, and once at the beginning.
  ///
  /// The handler looks for itself: what it sees then is at least as new as what the call was for.
  /// It runs on the watcher's thread and must not wait. A directory removed by hand is made anew,
  /// so that the watch goes on.
  package func watch(_ handler: @escaping @Sendable () -> Void) throws(WormholeError) -> SlotWatch {
    let watch = SlotWatch(self, handler)
    do throws(Errno) {
      try watch.begin()
    } catch {
      throw WormholeError(error, "watch \(title)", name)
    }
    handler()
    return watch
  }
}

/// The watch on one slot's value.
package final class SlotWatch: Sendable {
  private let slot: Slot
  private let handler: @Sendable () -> Void
  private let watch = Mutex<(watch: Watch?, isStopped: Bool)>((nil, false))

  fileprivate init(_ slot: Slot, _ handler: @escaping @Sendable () -> Void) {
    self.slot = slot
    self.handler = handler
  }

  fileprivate func begin() throws(Errno) {
    let directory = try slot.openDirectory(making: true)
    let environment = slot.container.options.environment
    // An exchange tells of both names it touches; the other one's directory is not watched.
    let fresh = try Watcher.shared.watch(
      directory.descriptor, .movedTo, mutants: environment.mutants, log: environment.log
    ) { [weak self] signal in self?.hear(signal) }
    let isLate = watch.withLock { state in
      if !state.isStopped { state.watch = fresh }
      return state.isStopped
    }
    if isLate { fresh.stop() }
  }

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(Slot.valueName) { handler() }
    case .lookAgain:
      slot.container.count { $0.rescans += 1 }
      handler()
    case .gone:
      slot.forgetDirectory()
      if let failure = Errno.of({ () throws(Errno) in try begin() }) {
        slot.container.log(.error, "the watch on '\(slot.name)' has ended: \(failure)")
      }
      handler()
    }
  }

  /// Whether it looks again and again, because inotify cannot serve it.
  package var isPolling: Bool { watch.withLock { $0.watch?.isPolling ?? false } }

  /// Ends it; once this has returned, the handler is not called again.
  package func stop() {
    let ended = watch.withLock { state in
      state.isStopped = true
      return state.watch.take()
    }
    ended?.stop()
  }

  deinit { stop() }
}
