public import Dispatch
internal import DropIns
public import Wormhole

/// A name that any program of the user can post, and any other hear.
///
/// As `notify_post` on devices: nothing is carried, nothing is kept for those who listen later,
/// several posts in quick succession may be heard as one, the last is always heard, and one's own
/// are heard as well. All programs of a user meet, whatever group or container they use.
public struct DarwinNotification: Hashable, Sendable {
  /// The name, by custom one like `com.example.cinema.changed`.
  public let name: String

  /// The notification of a name.
  public init(_ name: String) { self.name = name }

  /// Tells all who observe it; does not wait for them.
  public func post() throws(WormholeError) { try UserContainer.hole().notice(name).post() }

  /// Calls a closure whenever it is posted, until what this returns is cancelled or let go of.
  ///
  /// - Parameters:
  ///   - queue: where the closure is called; by default the main queue, which the program has to
  ///     run.
  ///   - handler: is called once for several posts if it is not fast enough for each.
  public func observe(
    on queue: DispatchQueue = .main, _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> AnyCancellable {
    let callbacks = CallbackQueue(queue, for: "the notification '\(name)'")
    let gate = Gate()
    let watching = try UserContainer.hole().notice(name).watch {
      callbacks.call { if gate.isOpen { handler() } }
    }
    return AnyCancellable {
      watching.stop()
      gate.close()
    }
  }
}
