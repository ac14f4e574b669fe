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
  ///     goes on. It ends with an error of code ``WormholeError/Code-swift.struct/notAContainer``,
  ///     when the container is removed or moved away. Without it, errors go to the log.
  @discardableResult
  public func watch(
    present: Bool = true, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Wormhole.Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Subscription {
    try hole.watch([self], present: present, on: queue, handler, failure: failure)
  }

  /// Calls a closure of the main actor with what the channel holds, and again whenever that
  /// changes: `watch { @MainActor snapshot in … }`.
  ///
  /// As ``watch(present:on:_:failure:)``. Whoever stops the watch on the main actor can be sure
  /// that the closures are not called again.
  ///
  /// - Parameters:
  ///   - present: whether the first call is for what is there already.
  ///   - handler: is called with each change.
  ///   - failure: is called instead when a value cannot be had.
  @discardableResult
  public func watch(
    present: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Wormhole.Snapshot<Value>) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Subscription {
    try hole.watch([self], present: present, handler, failure: failure)
  }

  /// Calls an asynchronous closure with what the channel holds, and again whenever that changes.
  ///
  /// As ``watch(present:on:_:failure:)``: one call at a time, and of what changed meanwhile the
  /// newest. The closures are called from a task of the watch's own, each on the actor that it is
  /// isolated to, if it is to one.
  ///
  /// Once the watch has been stopped no call begins. A call under way is not waited for: the actor
  /// it runs on may be the one that stops. Whoever stops on that very actor can be sure that the
  /// closure is not entered again.
  ///
  /// - Parameters:
  ///   - present: whether the first call is for what is there already.
  ///   - handler: is called with each change.
  ///   - failure: is called instead when a value cannot be had, as one of another type; the watch
  ///     goes on. It ends with an error of code ``WormholeError/Code-swift.struct/notAContainer``,
  ///     when the container is removed or moved away. Without it, errors go to the log.
  @discardableResult
  public func watch(
    present: Bool = true,
    _ handler: @escaping @isolated(any) @Sendable (Wormhole.Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Subscription {
    try hole.watch([self], present: present, handler, failure: failure)
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
  /// Calls a closure with what each of several channels holds, and again whenever one changes.
  ///
  /// As ``Channel/watch(present:on:_:failure:)``; the snapshot says which
  /// channel it is of. Of each channel the newest is heard.
  @discardableResult
  public func watch<Value>(
    _ channels: [Channel<Value>], present: Bool = true, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(channels, present: present)
      .observe(in: begun, on: queue, handler, failureHandler(failure, about: subject(channels)))
  }

  /// Calls a closure of the main actor with what each of several channels holds, and again whenever
  /// one changes.
  ///
  /// As ``Channel/watch(present:on:_:failure:)``; the snapshot says which channel it is of.
  @discardableResult
  public func watch<Value>(
    _ channels: [Channel<Value>], present: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Snapshot<Value>) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(channels, present: present).observe(
      in: begun, IsolatedHandler(handler),
      isolatedFailureHandler(failure, about: subject(channels)))
  }

  /// Calls an asynchronous closure with what each of several channels holds,
  /// and again whenever one changes.
  ///
  /// As ``Channel/watch(present:on:_:failure:)``, with the closures called from a task of the
  /// watch's own; the snapshot says which channel it is of.
  @discardableResult
  public func watch<Value>(
    _ channels: [Channel<Value>], present: Bool = true,
    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(channels, present: present).observe(
      in: begun, IsolatedHandler(handler),
      isolatedFailureHandler(failure, about: subject(channels)))
  }

  private func subject<Value>(_ channels: [Channel<Value>]) -> LogSubject {
    LogSubject(channel: channels.count == 1 ? channels[0].name : nil)
  }

  /// Calls a closure with what each channel of a prefix holds, and again whenever one changes; also
  /// those that do not exist yet.
  ///
  /// As ``Channel/watch(present:on:_:failure:)``; the snapshot says which
  /// channel it is of.
  @discardableResult
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, present: Bool = true,
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(prefix: prefix, of: type, present: present)
      .observe(in: begun, on: queue, handler, failureHandler(failure))
  }

  /// Calls a closure of the main actor with what each channel of a prefix holds, and again whenever
  /// one changes; also those that do not exist yet.
  ///
  /// As ``Channel/watch(present:on:_:failure:)``; the snapshot says which channel it is of.
  @discardableResult
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, present: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Snapshot<Value>) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(prefix: prefix, of: type, present: present)
      .observe(in: begun, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Calls an asynchronous closure with what each channel of a prefix holds,
  /// and again whenever one changes; also those that do not exist yet.
  ///
  /// As ``Channel/watch(present:on:_:failure:)``, with the closures called from a task of the
  /// watch's own; the snapshot says which channel it is of.
  @discardableResult
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, present: Bool = true,

    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(prefix: prefix, of: type, present: present)
      .observe(in: begun, IsolatedHandler(handler), isolatedFailureHandler(failure))
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
