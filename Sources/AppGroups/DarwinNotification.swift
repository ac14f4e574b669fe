public import Dispatch
public import Wormhole
internal import WormholeDropIns
internal import WormholeSyscalls

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
  public func post() throws(WormholeError) { try SharedOpenings.user().notice(name).post() }

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
    let (observation, cancellable) = makeObservation(on: queue, in: isolation, handler)
    try observation.watch()
    return cancellable
  }

  /// Calls a handler that does not wait on the thread that notices the posts.
  func observeHere(
    _ handler: @escaping @Sendable () -> Void
  ) throws(WormholeError) -> AnyCancellable {
    let observation = DarwinObservation(name, handler)
    try observation.watch()
    return AnyCancellable { observation.cancel() }
  }

  /// Does the same as ``observe(on:_:)`` on the main queue, for a caller that receives no error: a
  /// watch that the system refuses is tried again.
  ///
  /// - Returns: nil if no watch will ever be possible.
  func observe(
    retryingIn isolation: Isolation, _ handler: @escaping @Sendable () -> Void
  ) -> AnyCancellable? {
    let (observation, cancellable) = makeObservation(on: .main, in: isolation, handler)
    return observation.watchNowOrLater() ? cancellable : nil
  }

  private func makeObservation(
    on queue: DispatchQueue, in isolation: Isolation, _ handler: @escaping @Sendable () -> Void
  ) -> (DarwinObservation, AnyCancellable) {
    let callbacks = CallbackQueue(queue, for: "the notification '\(name)'")
    let gate = Gate()
    let observation = DarwinObservation(name) {
      isolation.run(on: callbacks) { if gate.isOpen { handler() } }
    }
    let cancellable = AnyCancellable {
      observation.cancel()
      gate.close()
    }
    return (observation, cancellable)
  }
}

/// The watch of one observer, which continues in the next container of the user after a program has
/// removed the last one.
private final class DarwinObservation: Sendable {
  private struct State {
    var watching: Subscription?
    /// The number of the latest attempt to watch.
    var attempt = 0
    var isCancelled = false
  }

  private let state = Monitor(State())
  private let name: String
  private let posted: @Sendable () -> Void

  init(_ name: String, _ posted: @escaping @Sendable () -> Void) {
    self.name = name
    self.posted = posted
  }

  func watch() throws(WormholeError) {
    let attempt = state.withLock { state in
      state.attempt += 1
      return state.attempt
    }
    let watching = try SharedOpenings.user().notice(name).watch { [posted] in
      posted()
    } failure: { [weak self] error in
      DropInLog.tell(.error, error)
      // The pause lets the program end its removal.
      if error.code == .notAContainer { self?.watchLater() }
    }
    let gone = state.withLock { state -> Subscription? in
      // A later attempt has begun if this watch has ended in the meantime.
      if state.isCancelled || state.attempt != attempt { return watching }
      defer { state.watching = watching }
      return state.watching
    }
    gone?.stop()
  }

  /// - Returns: whether the watch has begun, or will be tried again.
  func watchNowOrLater() -> Bool {
    var isRetried = false
    let isWatching = SilentCall.attempt {
      do throws(WormholeError) {
        try watch()
      } catch {
        isRetried = error.code != .invalidName
        throw error
      }
      return true
    }
    if isWatching == true { return true }
    if isRetried { watchLater() }
    return isRetried
  }

  /// Tries until it succeeds, at growing intervals, because no notice tells that it is possible
  /// again.
  private func watchLater() {
    DispatchQueue.global().retry { [weak self] in
      guard let self, !self.state.withLock({ $0.isCancelled }) else { return true }
      let watched: Void? = SilentCall.attempt { try self.watch() }
      return watched != nil
    }
  }

  func cancel() {
    let gone = state.withLock { state in
      state.isCancelled = true
      return state.watching.take()
    }
    gone?.stop()
  }
}
