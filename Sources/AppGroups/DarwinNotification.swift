public import Dispatch
public import Wormhole
internal import WormholeDropIns

/// A name that any program of the user can post, and any other can observe.
///
/// As with `notify_post` on devices, a notification carries no content, and is not stored for later
/// observers. Several posts in quick succession may arrive as one; the last post always arrives. A
/// program also receives its own posts. All programs of a user meet, whatever group or container
/// they use.
public struct DarwinNotification: Hashable, Sendable {
  /// The name, by custom of a form like `com.example.cinema.changed`.
  public let name: String

  /// Makes the notification of a name.
  public init(_ name: String) { self.name = name }

  /// Notifies all observers; does not wait for them.
  public func post() throws(WormholeError) { try UserContainer.container().notice(name).post() }

  /// Calls a closure whenever the notification is posted, until the returned object is cancelled or
  /// released.
  ///
  /// - Parameters:
  ///   - queue: the queue on which the closure is called; by default the main queue, which the
  ///     program has to run.
  ///   - handler: is called once for several posts if it is too slow to be called for each; a
  ///     closure that is isolated to an actor is called there.
  public func observe(
    on queue: DispatchQueue = .main, _ handler: @escaping @isolated(any) () -> Void
  ) throws(WormholeError) -> AnyCancellable {
    // As `Handler.callHere`: the isolation of a closure is data of the closure.
    let body = UncheckedBox(unsafeBitCast(handler, to: (() -> Void).self))
    return try observe(on: queue, in: Isolation(handler.isolation)) { body.value() }
  }

  /// - Parameter isolation: the isolation of the handler.
  func observe(
    on queue: DispatchQueue = .main, in isolation: Isolation,
    _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> AnyCancellable {
    let callbacks = CallbackQueue(queue, for: "the notification '\(name)'")
    let gate = Gate()
    let watching = try UserContainer.container().notice(name).watch {
      isolation.run(on: callbacks) { if gate.isOpen { handler() } }
    }
    return AnyCancellable {
      watching.stop()
      gate.close()
    }
  }
}
