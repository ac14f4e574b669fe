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
    watch.call()
    return watch
  }
}

/// The watch on one slot's value.
///
/// Two directories are watched: the slot's own for the value, and the one it lies in for the slot's
/// end. While anybody has a removed directory open, and this process has, the kernel tells nothing
/// of it.
package final class SlotWatch: Sendable {
  private let slot: Slot
  private let handler: @Sendable () -> Void
  private let gate = CallGate()
  private let watches = Monitor(Watches())

  private struct Watches {
    var own: Watch?
    var above: Watch?
    var isStopped = false
  }

  fileprivate init(_ slot: Slot, _ handler: @escaping @Sendable () -> Void) {
    self.slot = slot
    self.handler = handler
  }

  fileprivate func begin() throws(Errno) {
    let environment = slot.container.options.environment
    let above = try slot.container.folder(slot.folder)
    let fresh = try Watcher.shared.watch(
      above.descriptor, [.deleted, .movedFrom], mutants: environment.mutants, log: environment.log
    ) { [weak self] signal in self?.hearFromAbove(signal) }
    keep(fresh, at: \.above)
    do throws(Errno) {
      try beginOwn()
    } catch {
      stop()
      throw error
    }
  }

  private func beginOwn() throws(Errno) {
    let directory = try slot.openDirectory(making: true)
    let environment = slot.container.options.environment
    // An exchange tells of both names it touches; the other one's directory is not watched.
    let fresh = try Watcher.shared.watch(
      directory.descriptor, .movedTo, mutants: environment.mutants, log: environment.log
    ) { [weak self] signal in self?.hear(signal) }
    keep(fresh, at: \.own)
  }

  /// Takes a new watch in the place of the one before it.
  private func keep(_ fresh: Watch, at place: WritableKeyPath<Watches, Watch?>) {
    let old = watches.withLock { watches -> Watch? in
      if watches.isStopped { return fresh }
      let old = watches[keyPath: place]
      watches[keyPath: place] = fresh
      return old
    }
    old?.stop()
  }

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(Slot.valueName) { call() }
    case .lookAgain:
      slot.container.count { $0.rescans += 1 }
      call()
    case .gone:
      beginAnew()
    }
  }

  private func hearFromAbove(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      if names.contains(slot.escaped) { beginAnew() }
    case .lookAgain:
      if slot.hasLostDirectory { beginAnew() }
    case .gone:
      slot.container.log(.error, "the watch on '\(slot.name)' has ended: its folder is gone")
    }
  }

  private func beginAnew() {
    slot.forgetDirectory()
    if let failure = Errno.of({ () throws(Errno) in try beginOwn() }) {
      slot.container.log(.error, "the watch on '\(slot.name)' has ended: \(failure)")
    }
    call()
  }

  fileprivate func call() { gate.call(handler) }

  /// Whether it looks again and again, because inotify cannot serve it.
  package var isPolling: Bool {
    watches.withLock { watches in
      [watches.own, watches.above].contains { $0?.isPolling ?? false }
    }
  }

  /// Ends it; once this has returned, the handler is not called again.
  package func stop() {
    gate.close()
    let (own, above) = watches.withLock { watches in
      watches.isStopped = true
      return (watches.own.take(), watches.above.take())
    }
    own?.stop()
    above?.stop()
    gate.drain()
  }

  deinit { stop() }
}
