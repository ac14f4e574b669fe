internal import WormholeContainerStorage

/// A listener for the arrivals of a member, with one call at a time, until its stop.
final class MemberListener<Item: Sendable>: Stoppable {
  /// The queue for the handler; nil for the thread of the notification.
  let queue: (any CallQueue)?
  /// Returns whether the handler accepted the item.
  let handler: @Sendable (Item) -> Bool
  /// Called when the member leaves; never waits.
  let left: @Sendable () -> Void
  let gate = CallGate()
  private let storage: Container
  private let leave: @Sendable (MemberListener) -> Void

  /// - Parameter leave: ends the notifications; a call in progress continues.
  init(
    of storage: Container, on queue: (any CallQueue)?,
    _ handler: @escaping @Sendable (Item) -> Bool,
    left: @escaping @Sendable () -> Void, leave: @escaping @Sendable (MemberListener) -> Void
  ) {
    self.storage = storage
    self.queue = queue
    self.handler = handler
    self.left = left
    self.leave = leave
  }

  func stop() {
    guard storage.isOwned else { return }
    end()
    gate.drain()
  }

  func end() {
    leave(self)
    gate.close()
  }
}
