public import Dispatch
internal import PropertyLists
public import SharedContainer
internal import Syscalls

extension Wormhole.Defaults {
  /// Calls a closure with the value of a key, and again whenever that changes.
  ///
  /// A change of another key, or setting the same value again, is not heard. What is registered
  /// stands in when the key is removed.
  ///
  /// - Parameters:
  ///   - key: the key, of which there need be no value yet.
  ///   - type: what the value is decoded as.
  ///   - present: whether the first call is for what is set already.
  ///   - queue: where the closures are called; by default on a thread of the module's own.
  ///   - handler: gets the value; nil if it was removed and nothing is registered.
  ///   - failure: is called instead when a value cannot be had; the watch goes on. Without it,
  ///     errors go to the log.
  @discardableResult
  public func watch<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type = Value.self, present: Bool = true,
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Value?) -> Void,
    failure: (@Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Subscription {
    try watching(key, of: type, present: present)
      .observe(
        in: hole.begun, on: queue, handler,
        hole.failureHandler(failure, about: LogSubject(suite: suite)))
  }

  /// Calls a closure of the main actor with the value of a key, and again whenever that changes:
  /// `watch("key") { @MainActor value in … }`.
  ///
  /// As ``watch(_:of:present:on:_:failure:)``.
  @discardableResult
  public func watch<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type = Value.self, present: Bool = true,
    _ handler: @escaping @MainActor @Sendable (Value?) -> Void,
    failure: (@MainActor @Sendable (WormholeError) -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Subscription {
    try watching(key, of: type, present: present).observe(
      in: hole.begun, IsolatedHandler(handler),
      hole.isolatedFailureHandler(failure, about: LogSubject(suite: suite)))
  }

  /// Calls an asynchronous closure with the value of a key, and again whenever that changes.
  ///
  /// As ``watch(_:of:present:on:_:failure:)``; the closures are called from a task of the watch's
  /// own, each on the actor that it is isolated to, if it is to one.
  @discardableResult
  public func watch<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type = Value.self, present: Bool = true,
    _ handler: @escaping @isolated(any) @Sendable (Value?) async -> Void,
    failure: (@isolated(any) @Sendable (WormholeError) async -> Void)? = nil
  ) throws(WormholeError) -> Wormhole.Subscription {
    try watching(key, of: type, present: present)
      .observe(
        in: hole.begun, IsolatedHandler(handler),
        hole.isolatedFailureHandler(failure, about: LogSubject(suite: suite)))
  }

  /// The value of a key, and then each change of it; nil when it is removed.
  ///
  /// - Parameters:
  ///   - key: the key, of which there need be no value yet.
  ///   - type: what the value is decoded as.
  ///   - present: whether the first element is what is set already.
  public func values<Value: Decodable & Sendable>(
    forKey key: String, of type: Value.Type = Value.self, present: Bool = true
  ) -> Wormhole.Updates<Value?> {
    watching(key, of: type, present: present).updates
  }

  private func watching<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type, present: Bool
  ) -> WatchPlan<Value?> {
    watchingStamped(key, of: type, present: present).map { $0.value }
  }

  /// The same, and from which version of the suite each value is.
  func watchingStamped<Value: Decodable & Sendable>(
    _ key: String, of type: Value.Type, present: Bool
  ) -> WatchPlan<(stamp: Stamp, value: Value?)> {
    let slot = slot
    // What counts as known: the file, and in it the key.
    let known = present ? nil : (try? slot.get()).map { Finding(reading: $0, hole.options.limits) }
    let knownValue: PropertyListValue? = known.flatMap { try? stored(key, in: $0) }
    return WatchPlan(
      seen: known.flatMap { known in (try? slot.get()).map { [$0.escaped: known.stamp] } } ?? [:],
      join: { (listener) throws(WormholeError) in
        try self.hole.feeds.join(listener, slot.get())
      },
      interpreter: {
        let last = Monitor(knownValue)
        return { (finding, pass) throws(WormholeError) in
          let stored: PropertyListValue? = try self.stored(key, in: finding)
          let isSame = last.withLock { last in
            defer { last = stored }
            return last == stored
          }
          if isSame { return }
          if let value: Value = try self.stored(key, in: finding) {
            return pass((finding.stamp, value))
          }
          pass((finding.stamp, try self.registered(key)))
        }
      })
  }

  /// The value of a key as it is now, and from which version of the suite.
  func look(
    at key: String
  ) throws(WormholeError) -> (stamp: Stamp, value: PropertyListValue?) {
    try Self.naming("read defaults", suite) { () throws(WormholeError) in
      let finding = Finding(reading: try slot.get(), hole.options.limits)
      if let value: PropertyListValue = try stored(key, in: finding) {
        return (finding.stamp, value)
      }
      return (finding.stamp, try registered(key))
    }
  }

  private func stored<Value: Decodable & Sendable>(
    _ key: String, in finding: Finding
  ) throws(WormholeError) -> Value? {
    try reader.entry(key, of: finding)
  }
}
