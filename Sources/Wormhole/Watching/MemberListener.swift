internal import Dispatch
internal import SharedContainer

/// One who is told of what comes for a member, one after the other, until it is stopped.
final class MemberListener<Item: Sendable>: Lasting {
  /// Where it is told; nil for wherever that is done.
  let queue: DispatchQueue?
  /// Answers whether it was heard.
  let handler: @Sendable (Item) -> Bool
  /// Is called when the member leaves; never waits.
  let left: @Sendable () -> Void
  let gate = CallGate()
  private let container: Container
  private let leave: @Sendable (MemberListener) -> Void

  /// - Parameter leave: has nothing more told; what is being told goes on.
  init(
    of container: Container, on queue: DispatchQueue?,
    _ handler: @escaping @Sendable (Item) -> Bool,
    left: @escaping @Sendable () -> Void, leave: @escaping @Sendable (MemberListener) -> Void
  ) {
    self.container = container
    self.queue = queue
    self.handler = handler
    self.left = left
    self.leave = leave
  }

  func stop() {
    guard container.isOwned else { return }
    end()
    gate.drain()
  }

  func end() {
    leave(self)
    gate.close()
  }
}
