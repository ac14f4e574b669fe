internal import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

/// A closure that listens for an identifier, and the message that waits for the closure.
///
/// While the closure's queue is busy, only the last message waits, so that a flood fills no memory.
/// If the closure is replaced before a pending message is delivered, the new closure receives the
/// message, at its own place, and no message is lost.
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
    var isOnQueue: Bool { isolation?.isNone ?? true }

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
    let version: MessageVersion?
    /// Returns the message when its delivery starts.
    // A message is read for one listener, and given to that listener alone.
    let read: @Sendable () -> UncheckedBox<Any?>
  }

  /// A scheduled delivery of the message that waits when its turn comes.
  ///
  /// It holds no closure, so that a closure is released when its listener is stopped.
  private struct Call: Sendable {
    /// No other call of the listener has the same number.
    let number: Int
    let callbacks: CallbackQueue
  }

  private struct State {
    /// Nil once the listener has been stopped.
    var hearer: Hearer?
    var watching: Subscription?
    var waiting: Found?
    /// The only call that delivers; it was scheduled where the present closure is to be called.
    var scheduled: Call?
    var lastCall = 0
    /// The version up to which messages were found or cleared, in the latest channel.
    var known: MessageVersion?
    /// The same in the channels of other messengers.
    var others: [MessageVersion.ChannelIdentity: Int] = [:]

    mutating func newCall(on callbacks: CallbackQueue) -> Call {
      lastCall += 1
      let call = Call(number: lastCall, callbacks: callbacks)
      scheduled = call
      return call
    }

    /// Notes that messages up to a version were found or cleared; returns whether it is new.
    mutating func note(_ version: MessageVersion) -> Bool {
      // A program seldom replaces its messenger: no message looks into the dictionary then.
      if let known, known.source == version.source {
        guard version.number > known.number else { return false }
      } else {
        guard version.number > others[version.source, default: 0] else { return false }
        if let known { others[known.source] = known.number }
      }
      known = version
      return true
    }
  }

  private let state: Monitor<State>

  init(_ identifier: String, _ hearer: Hearer) {
    self.identifier = identifier
    state = Monitor(State(hearer: hearer))
  }

  var isWatching: Bool { state.withLock { $0.watching != nil } }

  var isStopped: Bool { state.withLock { $0.hearer == nil } }

  /// Replaces the closure; the new one also receives pending messages, on its own actor if it has
  /// one.
  ///
  /// - Returns: the previous closure, to be released without holding a lock.
  func replace(_ hearer: Hearer) -> Hearer? {
    let (before, call) = state.withLock { state -> (Hearer?, Call?) in
      guard let before = state.hearer else { return (nil, nil) }
      state.hearer = hearer
      // On the queue the scheduled call may deliver to either closure.
      guard let earlier = state.scheduled, !before.isOnQueue || !hearer.isOnQueue else {
        return (before, nil)
      }
      return (before, state.newCall(on: earlier.callbacks))
    }
    if let call { schedule(call, for: hearer) }
    return before
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

  /// Schedules the delivery of a message on a queue, in place of a message that still waits.
  func found(_ found: Found, on callbacks: CallbackQueue) {
    let (gone, first) = state.withLock { state -> (Found?, (call: Call, hearer: Hearer)?) in
      guard let hearer = state.hearer else { return (nil, nil) }
      if let version = found.version {
        guard state.note(version) else { return (nil, nil) }
      }
      let gone = state.waiting
      state.waiting = found
      if state.scheduled?.callbacks === callbacks { return (gone, nil) }
      return (gone, (call: state.newCall(on: callbacks), hearer: hearer))
    }
    // Released without holding the lock, because it may be an object of the program's.
    _ = gone
    if let first { schedule(first.call, for: first.hearer) }
  }

  /// Drops messages up to this version, including messages that are found later.
  func forget(upTo version: MessageVersion) {
    let gone = state.withLock { state -> Found? in
      _ = state.note(version)
      guard let waiting = state.waiting?.version, waiting.source == version.source,
        waiting.number <= version.number
      else { return nil }
      return state.waiting.take()
    }
    _ = gone
  }

  private func schedule(_ call: Call, for hearer: Hearer) {
    hearer.run(on: call.callbacks) { self.deliver(call) }
  }

  private func deliver(_ call: Call) {
    let (found, hearer) = state.withLock { state -> (Found?, Hearer?) in
      // The listener has another queue or another closure by now, with a call of its own.
      guard state.scheduled?.number == call.number else { return (nil, nil) }
      state.scheduled = nil
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
