package import Dispatch
internal import Synchronization
internal import Wormhole
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A queue on which a drop-in module calls its user's closures.
///
/// Most originals call back on the main queue, which always runs on devices. Here a program must
/// run the main queue itself, with `dispatchMain()` or `RunLoop.main.run()`. If a program does not,
/// the log states this once, because otherwise the program would only see that no callback arrives.
package final class CallbackQueue: Sendable {
  package let queue: DispatchQueue
  private let what: String
  /// The number of closures given to the queue, and the number of those that have started.
  private let given = Atomic<Int>(0)
  private let begun = Atomic<Int>(0)
  private let isWatched = Atomic<Bool>(false)
  /// The number of closures that must have started by the pending check.
  private let mark = Atomic<Int>(0)
  private let check = Worker(staysOffWatcher: true)

  /// - Parameters:
  ///   - queue: the queue on which closures are called.
  ///   - what: the kind of callback that is lost if no thread runs the queue, for the log.
  package init(_ queue: DispatchQueue = .main, for what: String) {
    self.queue = queue
    self.what = what
    // A closure that waits for the queue retains this object, and with it the check.
    check.begin { [weak self] in self?.look() }
  }

  /// Calls a closure on the queue, after the closures given before.
  package func call(_ body: @escaping @Sendable () -> Void) {
    given.add(1, ordering: .sequentiallyConsistent)
    queue.async { [self] in
      begun.add(1, ordering: .relaxed)
      body()
    }
    if !isWatched.exchange(true, ordering: .sequentiallyConsistent) { watch() }
  }

  /// Checks after a while whether all closures given until now have started.
  ///
  /// Only one check is pending at a time, because one check per call would cost as much as the
  /// call.
  private func watch() {
    mark.store(given.load(ordering: .relaxed), ordering: .relaxed)
    check.trigger(at: .now + .seconds(Self.patience))
  }

  private func look() {
    // Told once: it stays watched.
    guard begun.load(ordering: .relaxed) >= mark.load(ordering: .relaxed) else { return tell() }
    // The loads and stores here and in `call` have one order for all threads: a call finds no
    // pending check, or this check counts the call.
    isWatched.store(false, ordering: .sequentiallyConsistent)
    guard begun.load(ordering: .relaxed) < given.load(ordering: .sequentiallyConsistent),
      !isWatched.exchange(true, ordering: .sequentiallyConsistent)
    else { return }
    watch()
  }

  private func tell() {
    let advice =
      queue === DispatchQueue.main
      ? "call dispatchMain() or RunLoop.main.run() on the main thread"
      : "find the call that blocks the queue '\(queue.label)'"
    DropInLog.tell(
      .warning, "\(what) has waited for its queue for \(Self.patience) seconds: \(advice)")
  }

  /// The number of seconds that a closure may wait before the log reports the delay.
  private static let patience = 5
}

/// Whether pending calls on a queue are still wanted.
package final class Gate: Sendable {
  private let closed = Atomic<Bool>(false)

  package init() {}

  package var isOpen: Bool { !closed.load(ordering: .acquiring) }

  package func close() { closed.store(true, ordering: .releasing) }
}
