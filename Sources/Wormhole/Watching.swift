internal import SharedContainer

extension Wormhole {
  /// A watch that calls a closure; ends when it is stopped, or when nobody keeps it.
  ///
  /// Any number of them may watch one thing. Each is called for itself, never twice at the same
  /// time, and holds up none of the others, however long its closure takes: what changes meanwhile
  /// it hears of afterwards, the newest of each channel. The last is never missed.
  public final class Watching: Sendable {
    let listener: Listener

    init(_ listener: Listener) { self.listener = listener }

    deinit { listener.stop() }

    /// Ends the watch; once this has returned, the closure is not called again.
    ///
    /// A call that is under way on another thread is waited for, so this must not be called with
    /// anything held that the closure waits for. The closure itself may call it. A second time it
    /// does nothing.
    public func stop() { listener.stop() }

    /// How often the watch was woken, for whatever reason.
    package var wakeUps: Int { listener.signals }
  }
}
