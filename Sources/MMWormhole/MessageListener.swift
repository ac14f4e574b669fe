internal import DropIns
internal import Syscalls
internal import Wormhole

/// A closure that listens for an identifier, and what waits to be heard by it.
///
/// Of what is found while its queue is busy only the last waits, so that a flood fills no memory.
/// The closure may be another one by the time that a message is heard: what was on its way goes to
/// the new one, and is not lost.
final class MessageListener: Sendable {
  let identifier: String

  /// A closure that is looked at under a lock, which has to stand in something: see ``Monitor``.
  struct Hearer: Sendable { let hear: @Sendable (Any?) -> Void }

  /// A message that was found.
  struct Found: Sendable {
    /// Nil where messages have none.
    let version: Int?
    /// Answers it, once its turn has come.
    let read: @Sendable () -> Passed
  }

  private struct State {
    /// Nil once it has been stopped.
    var hearer: Hearer?
    var watching: Wormhole.Subscription?
    var waiting: Found?
    /// Where a call is under way that hears what is waiting then.
    var callbacks: CallbackQueue?
    /// Up to which version messages were found, or cleared.
    var known = 0
  }

  private let state: Monitor<State>

  init(_ identifier: String, _ hearer: Hearer) {
    self.identifier = identifier
    state = Monitor(State(hearer: hearer))
  }

  var isWatching: Bool { state.withLock { $0.watching != nil } }

  /// Has another closure hear what comes, and what is on its way.
  ///
  /// - Returns: the closure before, to be let go of where no lock is held.
  func replace(_ hearer: Hearer) -> Hearer? {
    state.withLock { state in
      guard let before = state.hearer else { return nil }
      state.hearer = hearer
      return before
    }
  }

  /// Takes on what finds its messages, in place of what did before; nil if nothing does.
  ///
  /// What did before goes on until now, so that nothing is lost between the two.
  func watch(_ watching: Wormhole.Subscription?) {
    let gone = state.withLock { state in
      guard state.hearer != nil else { return watching }
      defer { state.watching = watching }
      return state.watching
    }
    gone?.stop()
  }

  /// Messages come from elsewhere from now on, where versions are others.
  func forgetVersions() { state.withLock { $0.known = 0 } }

  /// Has a message heard on a queue, in place of one that still waits.
  func found(_ found: Found, on callbacks: CallbackQueue) {
    let (gone, isFirst) = state.withLock { state -> (Found?, Bool) in
      guard state.hearer != nil else { return (nil, false) }
      if let version = found.version {
        guard version > state.known else { return (nil, false) }
        state.known = version
      }
      let gone = state.waiting
      state.waiting = found
      if state.callbacks === callbacks { return (gone, false) }
      state.callbacks = callbacks
      return (gone, true)
    }
    // Let go of where no lock is held, as it may be an object of the program's.
    _ = gone
    if isFirst { callbacks.call { self.hear(on: callbacks) } }
  }

  /// What was found until this version, or will be, is not heard any more.
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
      // There is another queue by now, and a later message waits for that.
      guard state.callbacks === callbacks else { return (nil, nil) }
      state.callbacks = nil
      return (state.waiting.take(), state.hearer)
    }
    if let found { hearer?.hear(found.read().object) }
  }

  /// Nothing is heard any more.
  func stop() {
    let (watching, gone) = state.withLock { state in
      (state.watching.take(), (state.hearer.take(), state.waiting.take()))
    }
    _ = gone
    watching?.stop()
  }
}

// A message is read for one listener and handed to it alone.
struct Passed: @unchecked Sendable {
  let object: Any?
  init(_ object: Any?) { self.object = object }
}
