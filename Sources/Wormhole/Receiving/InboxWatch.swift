internal import Synchronization
internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The watch on the inbox of a member or a queue, which pauses while all receivers of the process,
/// or all handlers of the worker, are busy.
///
/// Each notice costs a thread here, and the sender as well, more than reading the message does.
/// During a pause, no notice of a message arrives. A receiver that has used up the known messages
/// resumes the watch, and lists the inbox again. Until then, the inbox is listed from time to time
/// for urgent messages.
final class InboxWatch: Sendable {
  /// Without a worker: each notice goes to the state machine at once, under its lock.
  private let folder = NoticedFolder()
  /// During a pause, the time of the next listing for urgent messages; otherwise 0.
  private let nextLook = Atomic<Int64>(0)

  /// Starts the watch, if it is not running yet.
  func begin(
    _ home: MemberDirectory, _ handler: @escaping @Sendable (WatchSignal) -> Void
  ) throws(Errno) {
    try folder.begin { _ throws(Errno) in try home.watch(.inbox, pauses: true, handler) }
  }

  func stop() { folder.stop() }

  /// Whether the watch is paused.
  var isPaused: Bool { nextLook.load(ordering: .sequentiallyConsistent) != 0 }

  /// Pauses the watch while receivers are busy; the first receiver without further work resumes it.
  ///
  /// - Returns: whether the watch is paused.
  func pause() -> Bool {
    folder.withWatch { watch in
      guard watch?.pause() == true else { return isPaused }
      lookAgain(after: .zero)
      return true
    }
  }

  /// Resumes the watch; returns false if it was not paused.
  ///
  /// List the inbox after this call returns.
  func resume() -> Bool {
    guard isPaused else { return false }
    folder.withWatch { watch in
      watch?.resume()
      nextLook.store(0, ordering: .sequentiallyConsistent)
    }
    return true
  }

  /// Whether the watch is paused, and a listing for urgent messages is due.
  var isLookDue: Bool {
    let due = nextLook.load(ordering: .sequentiallyConsistent)
    return due != 0 && Instant.now.nanoseconds >= due
  }

  /// Records a listing of the inbox.
  func looked(since began: Instant) {
    guard isPaused else { return }
    folder.withWatch { _ in if isPaused { lookAgain(after: .now - began) } }
  }

  /// Listings take a tenth of the time at most.
  private func lookAgain(after effort: Duration) {
    let next = Instant.now + max(.milliseconds(1), effort * 10)
    nextLook.store(next.nanoseconds, ordering: .sequentiallyConsistent)
  }
}
