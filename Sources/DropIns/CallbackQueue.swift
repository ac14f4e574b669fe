package import Dispatch
internal import SharedContainer
internal import Synchronization

/// A queue on which a drop-in module calls its user's closures.
///
/// Most originals call back on the main queue, which on devices always runs. A program here has to
/// see to that itself, with `dispatchMain()` or `RunLoop.main.run()`; one that does not is told so
/// once, because otherwise it would only look as if nothing came.
package final class CallbackQueue: Sendable {
  package let queue: DispatchQueue
  private let what: String
  /// How many were given to the queue, and how many of them have begun.
  private let given = Atomic<Int>(0)
  private let begun = Atomic<Int>(0)
  private let isWatched = Atomic<Bool>(false)
  private static let clock = DispatchQueue(label: "wormhole.dropins.clock")

  /// - Parameters:
  ///   - queue: where closures are called.
  ///   - what: what is not heard if nobody runs the queue, for the log.
  package init(_ queue: DispatchQueue = .main, for what: String) {
    self.queue = queue
    self.what = what
  }

  /// Calls a closure on the queue, after those that were given before.
  package func call(_ body: @escaping @Sendable () -> Void) {
    given.add(1, ordering: .relaxed)
    queue.async { [self] in
      begun.add(1, ordering: .relaxed)
      body()
    }
    if !isWatched.exchange(true, ordering: .relaxed) { watch() }
  }

  /// Looks after a while whether all that was given until now has begun; one look at a time, as
  /// one for each call would cost as much as the call.
  private func watch() {
    let mark = given.load(ordering: .relaxed)
    Self.clock.asyncAfter(deadline: .now() + .seconds(Self.patience)) { [self] in
      // Told once: it stays watched.
      guard begun.load(ordering: .relaxed) >= mark else { return tell() }
      isWatched.store(false, ordering: .relaxed)
      guard begun.load(ordering: .relaxed) < given.load(ordering: .relaxed),
        !isWatched.exchange(true, ordering: .relaxed)
      else { return }
      watch()
    }
  }

  private func tell() {
    let advice =
      queue === DispatchQueue.main
      ? "call dispatchMain() or RunLoop.main.run() on the main thread"
      : "see what keeps the queue '\(queue.label)' busy"
    DropInLog.tell(
      .warning, "\(what) waits for its queue for \(Self.patience) seconds: \(advice)")
  }

  /// How many seconds a closure may wait before that is told.
  private static let patience = 5
}

/// Whether calls that are under way to a queue are still wanted.
package final class Gate: Sendable {
  private let closed = Atomic<Bool>(false)

  package init() {}

  package var isOpen: Bool { !closed.load(ordering: .acquiring) }

  package func close() { closed.store(true, ordering: .releasing) }
}
