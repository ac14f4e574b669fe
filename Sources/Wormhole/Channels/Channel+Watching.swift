public import Dispatch
public import WormholeContainerStorage

extension Channel {
  /// Calls a closure with the channel's content, and again after each change.
  ///
  /// The closure is called for changes by this process and by other processes, for a clear, and for
  /// the same value put again. If changes follow each other quickly, only the newest is reported. A
  /// channel that was never written causes no call before its first change.
  ///
  /// - Parameters:
  ///   - initial: whether the first call reports the present content.
  ///   - queue: the queue for the closures; by default, a thread of the module.
  ///   - handler: called with each change.
  ///   - failure: called in place of the handler when a value cannot be read, for instance a value
  ///     of another type; the watch continues. The watch ends with an error of code
  ///     ``WormholeError/Code-swift.struct/notAContainer`` when the container is removed or moved
  ///     away. Without this closure, errors go to the log.
  @discardableResult
  public func watch(
    initial: Bool = true, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try container.watch([self], initial: initial, on: queue, handler, failure: failure)
  }

  /// Calls a closure of the main actor with the channel's content, and again after each change:
  /// `watch { @MainActor snapshot in … }`.
  ///
  /// As ``watch(initial:on:_:failure:)``. After a stop of the watch on the main actor, the closures
  /// are not called again.
  ///
  /// - Parameters:
  ///   - initial: whether the first call reports the present content.
  ///   - handler: called with each change.
  ///   - failure: called in place of the handler when a value cannot be read.
  @discardableResult
  public func watch(
    initial: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Snapshot<Value>) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try container.watch([self], initial: initial, handler, failure: failure)
  }

  /// Calls an asynchronous closure with the channel's content, and again after each change.
  ///
  /// As ``watch(initial:on:_:failure:)``, with one call at a time: of the changes during a call,
  /// the newest is reported. The closures are called from a task of the watch, each on the actor to
  /// which the closure is isolated, if any.
  ///
  /// After the watch has been stopped, no call begins. Stopping cancels the task of a call in
  /// progress, unless the call itself stops the watch, and does not wait for the call, because the
  /// call may run on the stopping actor; ``Subscription/finished()`` waits. After a stop on the
  /// closure's own actor, the closure is not entered again.
  ///
  /// - Parameters:
  ///   - initial: whether the first call reports the present content.
  ///   - handler: called with each change.
  ///   - failure: called in place of the handler when a value cannot be read, for instance a value
  ///     of another type; the watch continues. The watch ends with an error of code
  ///     ``WormholeError/Code-swift.struct/notAContainer`` when the container is removed or moved
  ///     away. Without this closure, errors go to the log.
  @discardableResult
  public func watch(
    initial: Bool = true,
    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try container.watch([self], initial: initial, handler, failure: failure)
  }

  /// Returns the channel's content, and then each change: the value with its version, time and
  /// sender.
  ///
  /// - Parameter initial: whether the first element is the present content. If false, the first
  ///   element is the first change after this call.
  public func snapshots(initial: Bool = true) -> Updates<Snapshot<Value>> {
    container.watching([self], initial: initial).updates
  }

  /// The value, and then each change; nil for a clear.
  public var values: Updates<Value?> {
    container.watching([self], initial: true).map(\.value).updates
  }
}

extension SharedContainer {
  /// Calls a closure with the content of several channels, and again after each change of a
  /// channel.
  ///
  /// As ``Channel/watch(initial:on:_:failure:)``; the snapshot contains the name of its channel.
  /// For each channel, the newest change is reported.
  @discardableResult
  public func watch<Value>(
    _ channels: [Channel<Value>], initial: Bool = true, on queue: DispatchQueue? = nil,
    _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(channels, initial: initial)
      .observe(
        in: subscriptions, on: queue, handler, failureHandler(failure, about: subject(channels)))
  }

  /// Calls a closure of the main actor with the content of several channels, and again after each
  /// change of a channel.
  ///
  /// As ``Channel/watch(initial:on:_:failure:)``; the snapshot contains the name of its channel.
  @discardableResult
  public func watch<Value>(
    _ channels: [Channel<Value>], initial: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Snapshot<Value>) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(channels, initial: initial).observe(
      in: subscriptions, IsolatedHandler(handler),
      isolatedFailureHandler(failure, about: subject(channels)))
  }

  /// Calls an asynchronous closure with the content of several channels, and again after each
  /// change of a channel.
  ///
  /// As ``Channel/watch(initial:on:_:failure:)``, with the closures called from a task of the
  /// watch; the snapshot contains the name of its channel.
  @discardableResult
  public func watch<Value>(
    _ channels: [Channel<Value>], initial: Bool = true,
    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(channels, initial: initial).observe(
      in: subscriptions, IsolatedHandler(handler),
      isolatedFailureHandler(failure, about: subject(channels)))
  }

  private func subject<Value>(_ channels: [Channel<Value>]) -> LogSubject {
    LogSubject(channel: channels.count == 1 ? channels[0].name : nil)
  }

  /// Calls a closure with the content of each channel whose name has a prefix, and again after each
  /// change; includes channels that do not exist yet.
  ///
  /// As ``Channel/watch(initial:on:_:failure:)``; the snapshot contains the name of its channel.
  @discardableResult
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, initial: Bool = true,
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Snapshot<Value>) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(prefix: prefix, of: type, initial: initial)
      .observe(in: subscriptions, on: queue, handler, failureHandler(failure))
  }

  /// Calls a closure of the main actor with the content of each channel whose name has a prefix,
  /// and again after each change; includes channels that do not exist yet.
  ///
  /// As ``Channel/watch(initial:on:_:failure:)``; the snapshot contains the name of its channel.
  @discardableResult
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, initial: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Snapshot<Value>) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(prefix: prefix, of: type, initial: initial)
      .observe(in: subscriptions, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Calls an asynchronous closure with the content of each channel whose name has a prefix, and
  /// again after each change; includes channels that do not exist yet.
  ///
  /// As ``Channel/watch(initial:on:_:failure:)``, with the closures called from a task of the
  /// watch; the snapshot contains the name of its channel.
  @discardableResult
  public func watch<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, initial: Bool = true,

    _ handler: @escaping @isolated(any) @Sendable (Snapshot<Value>) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(prefix: prefix, of: type, initial: initial)
      .observe(in: subscriptions, IsolatedHandler(handler), isolatedFailureHandler(failure))
  }

  /// Returns the content of several channels, and then each change of a channel.
  public func snapshots<Value>(
    of channels: [Channel<Value>], initial: Bool = true
  ) -> Updates<Snapshot<Value>> {
    watching(channels, initial: initial).updates
  }

  /// Returns the content of each channel whose name has a prefix, and then each change of a
  /// channel; includes channels that do not exist yet.
  public func snapshots<Value: Codable & Sendable>(
    prefix: String, of type: Value.Type = Value.self, initial: Bool = true
  ) -> Updates<Snapshot<Value>> {
    watching(prefix: prefix, of: type, initial: initial).updates
  }
}
