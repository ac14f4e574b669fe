internal import SharedContainer
internal import Synchronization
internal import Syscalls

/// The watch on a member's inbox, which pauses while everybody who could receive is busy.
///
/// To be told of each message costs a thread here, and the sender as well, more than reading it.
/// So in a lull nothing is told: who comes to the end of what is known ends it and looks again, and
/// until then the inbox is looked at now and then, for what is urgent.
final class InboxWatch: Sendable {
  private let watch = Monitor<NamedWatch?>(nil)
  /// In a lull, when to look for what is urgent; 0 if it is none.
  private let nextLook = Atomic<Int64>(0)

  /// Begins to watch, if it does not yet.
  func begin(
    _ home: MemberDirectory, _ handler: @escaping @Sendable (Watcher.Signal) -> Void
  ) throws(Errno) {
    try watch.withLock { watch throws(Errno) in
      if watch == nil { watch = try home.watch(.inbox, pauses: true, handler) }
    }
  }

  func stop() { watch.withLock { $0.take() }?.stop() }

  /// Whether it is a lull.
  var isPaused: Bool { nextLook.load(ordering: .sequentiallyConsistent) != 0 }

  /// Begins a lull, for as long as somebody is busy: who has nothing more to do ends it.
  ///
  /// - Returns: whether there is one.
  func pause() -> Bool {
    watch.withLock { watch in
      guard watch?.pause() == true else { return isPaused }
      lookAgain(after: .zero)
      return true
    }
  }

  /// Ends the lull; false if there was none.
  ///
  /// Look once it has returned.
  func resume() -> Bool {
    guard isPaused else { return false }
    watch.withLock { watch in
      watch?.resume()
      nextLook.store(0, ordering: .sequentiallyConsistent)
    }
    return true
  }

  /// Whether it is a lull, and time to look for what is urgent.
  var isLookDue: Bool {
    let due = nextLook.load(ordering: .sequentiallyConsistent)
    return due != 0 && Instant.now.nanoseconds >= due
  }

  /// The inbox was looked at.
  func looked(since began: Instant) {
    guard isPaused else { return }
    watch.withLock { _ in if isPaused { lookAgain(after: .now - began) } }
  }

  /// Looking is to take a tenth of the time at most.
  private func lookAgain(after effort: Duration) {
    let next = Instant.now + max(.milliseconds(1), effort * 10)
    nextLook.store(next.nanoseconds, ordering: .sequentiallyConsistent)
  }
}
