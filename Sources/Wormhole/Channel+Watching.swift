public import Dispatch
public import SharedContainer

extension Wormhole.Channel {
  /// Calls a closure with what the channel holds, and again whenever that changes.
  ///
  /// One's own changes are heard like those of others, a clear as well, and the same value put
  /// again too. Of changes in quick succession the newest is heard. A channel that was never
  /// written is silent until it is.
  ///
  /// - Parameters:
  ///   - present: whether the first call is for what is there already.
  ///   - queue: where the closures are called; by default on a thread of the module's own.
  ///   - handler: is called with each change.
  ///   - failure: is called instead when a value cannot be had, as one of another type; the watch
  ///     goes on. Without it, errors go to the log.
  public func watch(
    present: Bool = true, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Watching {
    try hole.watch([self], present: present, on: queue, handler, failure: failure)
  }

  /// Calls an asynchronous closure, or one of an actor's, with what the channel holds, and again
  /// whenever that changes.
  ///
  /// As ``watch(present:on:_:failure:)-(_,DispatchQueue?,_,_)``: one call at a time, and of what
  /// changed meanwhile the newest. The closures are called from a task of the watch's own, each on
  /// the actor that it is isolated to: `watch(on: .itsActor) { @MainActor snapshot in … }`.
  ///
  /// Once the watch has been stopped no call begins. A call under way is not waited for: the actor
  /// it runs on may be the one that stops. Whoever stops on that very actor can be sure that the
  /// closure is not entered again.
  ///
  /// - Parameters:
  ///   - present: whether the first call is for what is there already.
  ///   - place: says that the closures say themselves where they run.
  ///   - handler: is called with each change.
  ///   - failure: is called instead when a value cannot be had, as one of another type; the watch
  ///     goes on. Without it, errors go to the log.
  public func watch(
    present: Bool = true, on place: Wormhole.ClosurePlace,
    _ handler: @escaping @isolated(any) @Sendable (Wormhole.Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Watching {
    try hole.watch([self], present: present, on: place, handler, failure: failure)
  }

  /// What the channel holds, and then each change: the value with its version, time and sender.
  ///
  /// - Parameter present: whether the first element is what is there already. Without it, the first
  ///   is the first change after this call.
  public func snapshots(present: Bool = true) -> Wormhole.Updates<Wormhole.Snapshot<Value>> {
    hole.watching([self], present: present).updates
  }

  /// The value, and then each change; nil for a clear.
  public var values: Wormhole.Updates<Value?> {
    hole.watching([self], present: true).map(\.value).updates
  }
}

extension Wormhole {
  /// Where the closures of a watch are called that say so themselves.
  public enum ClosurePlace: Sendable {
    /// On the actor that the closure is isolated to; on none, if it is to none.
    case itsActor
  }

  /// Calls a closure with what each of several channels holds, and again whenever one changes.
  ///
  /// As ``Channel/watch(present:on:_:failure:)-(_,DispatchQueue?,_,_)``; the snapshot says which
  /// channel it is of. Of each channel the newest is heard.
  public func watch<Value>(
    _ channels: [Channel<Value>], present: Bool = true, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Watching {
    try watching(channels, present: present)
      .observe(on: queue, handler, failureHandler(failure))
  }

  /// Calls an asynchronous closure, or one of an actor's, with what each of several channels holds,
  /// and again whenever one changes.
  ///
  /// As ``Channel/watch(present:on:_:failure:)-(_,Wormhole.ClosurePlace,_,_)``; the snapshot says
  /// which channel it is of.
  public func watch<Value>(
    _ channels: [Channel<Value>], present: Bool = true, on place: ClosurePlace,
    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Watching {
    try watching(channels, present: present).observe(
      IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Calls a closure with what each channel of a prefix holds, and again whenever one changes; also
  /// those that do not exist yet.
  ///
  /// As ``Channel/watch(present:on:_:failure:)-(_,DispatchQueue?,_,_)``; the snapshot says which
  /// channel it is of.
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, present: Bool = true,
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Watching {
    try watching(prefix: prefix, of: type, present: present)
      .observe(on: queue, handler, failureHandler(failure))
  }

  /// Calls an asynchronous closure, or one of an actor's, with what each channel of a prefix holds,
  /// and again whenever one changes; also those that do not exist yet.
  ///
  /// As ``Channel/watch(present:on:_:failure:)-(_,Wormhole.ClosurePlace,_,_)``; the snapshot says
  /// which channel it is of.
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, present: Bool = true,
    on place: ClosurePlace,
    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Watching {
    try watching(prefix: prefix, of: type, present: present)
      .observe(IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// What each of several channels holds, and then each change of one of them.
  public func snapshots<Value>(
    of channels: [Channel<Value>], present: Bool = true
  ) -> Updates<Snapshot<Value>> {
    watching(channels, present: present).updates
  }

  /// What each channel of a prefix holds, and then each change of one of them; also of those that
  /// do not exist yet.
  public func snapshots<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, present: Bool = true
  ) -> Updates<Snapshot<Value>> {
    watching(prefix: prefix, of: type, present: present).updates
  }
}
