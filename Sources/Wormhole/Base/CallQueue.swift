internal import WormholeContainerStorage
package import WormholeSyscalls

/// A serial queue of calls: a queue of the library, or of the program.
package protocol CallQueue: Sendable {
  /// Makes a call soon, and does not wait for it.
  func soon(_ call: @escaping @Sendable () -> Void)
  /// Makes a call at a moment or soon after it, and does not wait for the call.
  func later(_ moment: Instant, _ call: @escaping @Sendable () -> Void)
  /// Makes a call after all earlier calls, and waits until the call has returned.
  func wait<Result>(for call: () -> Result) -> Result
}

extension CallQueue {
  /// As ``soon(_:)``, after a time.
  package func soon(after pause: Duration, _ call: @escaping @Sendable () -> Void) {
    later(.now + pause, call)
  }

  /// Makes a call on the thread that notifies of changes, once all listeners are notified.
  ///
  /// If the caller is another thread, or the notifying thread has enough work, the call is made
  /// soon.
  func afterTelling(_ call: @escaping @Sendable () -> Void) {
    if !Watcher.shared.afterwards(call) { soon(call) }
  }
}
