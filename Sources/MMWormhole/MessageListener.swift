internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// A closure that listens for an identifier, and the message that waits for the closure.
///
/// While the closure's queue is busy, only the last message waits, so that a flood fills no memory.
/// If the closure is replaced before a pending message is delivered, the new closure receives the
/// message, and no message is lost.
final class MessageListener: Sendable {
  let identifier: String

  /// The isolation of the closure that the current call sets.
  @TaskLocal static var isolation: Isolation?
  /// The wormhole of which the current call sets a closure.
  @TaskLocal static var setter: ObjectIdentifier?

  /// A closure with the place where it is called.
  struct Hearer: Sendable {
    private let handler: Handler<Any?>
    /// Nil: the wormhole's queue.
    let isolation: Isolation?

    init(_ hear: @escaping (Any?) -> Void) {
      handler = Handler(hear)
      isolation = MessageListener.isolation
    }

    func hear(_ message: Any?) { handler.callHere(message) }

    /// Runs a body that calls the closure.
    func run(on callbacks: CallbackQueue, _ body: @escaping @Sendable () -> Void) {
      if let isolation { isolation.run(on: callbacks, body) } else { callbacks.call(body) }
    }
  }

  /// A message that was found.
  struct Found: Sendable {
    /// Nil if messages have no version.
    let version: Int?
    /// Returns the message when its delivery starts.
    // A message is read for one listener, and given to that listener alone.
    let read: @Sendable () -> UncheckedBox<Any?>
  }

  private struct State {
    /// Nil once the listener has been stopped.
    var hearer: Hearer?
    var watching: Subscription?
    var waiting: Found?
    /// The queue with a scheduled call, which will deliver the message waiting at that moment.
    var callbacks: CallbackQueue?
    /// The version up to which messages were found or cleared.
    var known = 0
  }

  private let state: Monitor<State>

  init(_ identifier: String, _ hearer: Hearer) {
    self.identifier = identifier
    state = Monitor(State(hearer: hearer))
  }

  var isWatching: Bool { state.withLock { $0.watching != nil } }

  /// Replaces the closure, which also receives pending messages.
  ///
  /// - Returns: the previous closure, to be released without holding a lock.
  func replace(_ hearer: Hearer) -> Hearer? {
    state.withLock { state in
      guard let before = state.hearer else { return nil }
      state.hearer = hearer
      return before
    }
  }

  /// Replaces the subscription that finds messages; nil if the listener has none.
  ///
  /// The previous subscription runs until now, so that no message is lost between the two.
  func watch(_ watching: Subscription?) {
    let gone = state.withLock { state in
      guard state.hearer != nil else { return watching }
      return exchange(&state.watching, with: watching)
    }
    gone?.stop()
  }

  /// Forgets the versions: messages now come from another messenger, whose versions differ.
  func forgetVersions() { state.withLock { $0.known = 0 } }

  /// Schedules the delivery of a message on a queue, in place of a message that still waits.
  func found(_ found: Found, on callbacks: CallbackQueue) {
    let (gone, first) = state.withLock { state -> (Found?, Hearer?) in
      guard let hearer = state.hearer else { return (nil, nil) }
      if let version = found.version {
        guard version > state.known else { return (nil, nil) }
        state.known = version
      }
      let gone = state.waiting
      state.waiting = found
      if state.callbacks === callbacks { return (gone, nil) }
      state.callbacks = callbacks
      return (gone, hearer)
    }
    // Released without holding the lock, because it may be an object of the program's.
    _ = gone
    first?.run(on: callbacks) { self.hear(on: callbacks) }
  }

  /// Drops messages up to this version, including messages that are found later.
  func forget(upTo version: Int) {
    let gone = state.withLock { state -> Found? in
      state.known = max(state.known, version)
      guard let waiting = state.waiting?.version, waiting <= version else { return nil }
      return state.waiting.take()
    }
    _ = gone
  }

  private func hear(on callbacks: CallbackQueue) {
    let (found, hearer) = state.withLock { state -> (Found?, Hearer?) in
      // The listener has another queue by now, on which a later message waits.
      guard state.callbacks === callbacks else { return (nil, nil) }
      state.callbacks = nil
      return (state.waiting.take(), state.hearer)
    }
    if let found { hearer?.hear(found.read().value) }
  }

  /// Stops the listener: no more messages are delivered.
  func stop() {
    let (watching, gone) = state.withLock { state in
      (state.watching.take(), (state.hearer.take(), state.waiting.take()))
    }
    _ = gone
    watching?.stop()
  }
}
