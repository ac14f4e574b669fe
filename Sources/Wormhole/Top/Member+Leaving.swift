internal import Synchronization
internal import WormholeContainerStorage
internal import WormholeSyscalls

extension Member: Stoppable {
  /// Releases the name; a second call does nothing.
  ///
  /// Watchers of the member are notified. The profile of the member stays. Messages to the member
  /// wait until a process joins under the name again; claimed messages without an acknowledgement
  /// are redelivered then. Subscriptions that were started through the member end with it.
  ///
  /// The call waits for receivers' closures in progress on other threads, so that their messages
  /// are not redelivered. For the same reason, a call inside such a closure releases the name
  /// when the closure has returned. The tasks of asynchronous closures are cancelled and not
  /// awaited; the overload with `await` waits for them. Sequences end, and later sends and waits
  /// through the member throw ``WormholeError/Code-swift.struct/notJoined``.
  public func leave() { _ = leave(because: nil) }

  /// - Returns: a function that waits for closures in progress.
  func leave(because reason: WormholeError?) -> @Sendable () -> Void {
    // A forked child is not a member and has no name to release.
    guard container.storage.isOwned else { return {} }
    guard !isLeaving.exchange(true, ordering: .acquiringAndReleasing) else { return {} }
    _ = mailbox.tasks.cancel()
    let rest = Monitor(Action {})
    mailbox.closures.end { [self] in
      // Close everything before the name is released: the next incarnation must find all claimed
      // messages.
      services.close()
      presence.release()
      let others = live.begun.end(reason)
      rest.withLock { $0 = Action(others) }
      container.subscriptions.forget(self, reason)
    }
    return rest.withLock { $0 }.perform
  }

  /// Leaves, and waits for all closures that the member has started.
  package func stop() { leave(because: nil)() }

  package var endsFirst: Bool { true }
}
