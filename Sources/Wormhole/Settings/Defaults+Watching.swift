public import Dispatch
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

extension Defaults {
  /// Calls a closure with the value of a key, and again after each change of the value.
  ///
  /// The closure is not called for a change of another key, or if the same value is set again. When
  /// the key is removed, the closure receives the registered value.
  ///
  /// - Parameters:
  ///   - key: the key, which need not have a value yet.
  ///   - type: the type as which the value is decoded.
  ///   - initial: whether the first call is for the present value.
  ///   - queue: the queue for the closures; by default a thread of the module.
  ///   - handler: receives the value; nil if it was removed and no value is registered.
  ///   - failure: is called instead when a value cannot be read; the watch continues. Without this
  ///     closure, errors go to the log.
  @discardableResult
  public func watch<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type = Value.self, initial: Bool = true,
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Value?) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(key, of: type, initial: initial)
      .observe(
        in: container.subscriptions, on: queue, handler,
        container.failureHandler(failure, about: LogSubject(suite: suite)))
  }

  /// Calls a closure of the main actor with the value of a key, and again after each change of the
  /// value: `watch("key") { @MainActor value in … }`.
  ///
  /// As ``watch(_:of:initial:on:_:failure:)``.
  @discardableResult
  public func watch<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type = Value.self, initial: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Value?) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(key, of: type, initial: initial).observe(
      in: container.subscriptions, IsolatedHandler(handler),
      container.isolatedFailureHandler(failure, about: LogSubject(suite: suite)))
  }

  /// Calls an asynchronous closure with the value of a key, and again after each change of the
  /// value.
  ///
  /// As ``watch(_:of:initial:on:_:failure:)``; the closures are called from a task of the watch,
  /// each on the actor of its isolation, if any.
  @discardableResult
  public func watch<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type = Value.self, initial: Bool = true,
    _ handler: @escaping @isolated(any) @Sendable (Value?) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Subscription {
    try watching(key, of: type, initial: initial)
      .observe(
        in: container.subscriptions, IsolatedHandler(handler),
        container.isolatedFailureHandler(failure, about: LogSubject(suite: suite)))
  }

  /// Returns the value of a key, and then each change of the value, as a sequence; nil when the key
  /// is removed.
  ///
  /// - Parameters:
  ///   - key: the key, which need not have a value yet.
  ///   - type: the type as which the value is decoded.
  ///   - initial: whether the first element is the present value.
  public func values<Value: Decodable & Sendable>(
    forKey key: String, of type: Value.Type = Value.self, initial: Bool = true
  ) -> Updates<Value?> {
    watching(key, of: type, initial: initial).updates
  }

  private func watching<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type, initial: Bool
  ) -> WatchPlan<Value?> {
    watchingStamped(key, of: type, initial: initial).map { $0.value }
  }

  /// As `watching`, with the version of the suite for each value.
  func watchingStamped<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type, initial: Bool
  ) -> WatchPlan<(stamp: Stamp, value: Value?)> {
    let slot = slot
    // The known state: the stamp of the file, and the value of the key.
    let known =
      initial ? nil : (try? slot.get()).map { WatchResult(reading: $0, container.options.limits) }
    let knownValue: PropertyListValue? = known.flatMap { try? stored(key, in: $0) }
    return WatchPlan(
      seen: known.flatMap { known in (try? slot.get()).map { [$0.escaped: known.stamp] } } ?? [:],
      join: { (listener) throws(WormholeError) in
        try self.container.feeds.join(listener, slot.get())
      },
      interpreter: {
        let last = Monitor(knownValue)
        return { (finding, pass) throws(WormholeError) in
          let stored: PropertyListValue? = try self.stored(key, in: finding)
          let isSame = last.withLock { exchange(&$0, with: stored) == stored }
          if isSame { return }
          if let value: Value = try self.stored(key, in: finding) {
            return pass((finding.stamp, value))
          }
          pass((finding.stamp, try self.registered(key)))
        }
      })
  }

  /// Returns the current value of a key, and the version of the suite with this value.
  func look(
    at key: String
  ) throws(WormholeError) -> (stamp: Stamp, value: PropertyListValue?) {
    try Self.naming("read defaults", suite) { () throws(WormholeError) in
      let finding = WatchResult(reading: try slot.get(), container.options.limits)
      if let value: PropertyListValue = try stored(key, in: finding) {
        return (finding.stamp, value)
      }
      return (finding.stamp, try registered(key))
    }
  }

  private func stored<Value: Decodable & Sendable>(
    _ key: String, in finding: WatchResult
  ) throws(WormholeError) -> Value? {
    try Self.naming(finding.isFinal ? "watch defaults" : "read defaults", suite) {
      () throws(WormholeError) in
      try reader.entry(key, of: finding)
    }
  }
}
