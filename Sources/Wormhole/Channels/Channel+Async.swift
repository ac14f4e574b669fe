public import WormholeContainerStorage

/// The async overloads of the calls that wait or sync; they run off the threads of the pool.
///
/// If the task is cancelled while a call waits, the call throws
/// ``WormholeError/Code-swift.struct/cancelled`` and has changed nothing. A call whose wait is over
/// runs to its end.
extension Channel {
  /// Puts a value in place of the present content, damaged or not.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits,
  /// nothing is changed.
  ///
  /// - Parameters:
  ///   - value: the value that all processes read from now on.
  ///   - expected: the version that must be present, 0 for a channel that was never written; a
  ///     different version throws ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: the failures that the value survives once the call has returned; by default as
  ///     in the options.
  /// - Returns: the version of the value.
  @discardableResult
  public func put(
    _ value: Value, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) async throws(WormholeError) -> Int {
    try await offPool("put value into") { () throws(WormholeError) in
      try put(value, ifVersion: expected, durability: durability)
    }
  }

  /// Puts a value that expires, in place of the present content.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits,
  /// nothing is changed.
  @discardableResult
  public func put(
    _ value: Value, timeToLive: Duration, ifVersion expected: Int? = nil,
    durability: Durability? = nil
  ) async throws(WormholeError) -> Int {
    try await offPool("put value into") { () throws(WormholeError) in
      try put(value, timeToLive: timeToLive, ifVersion: expected, durability: durability)
    }
  }

  /// Clears the value; the version continues to rise.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits,
  /// nothing is changed.
  ///
  /// - Parameters:
  ///   - erasing: whether to remove all content that the channel ever held.
  ///   - expected: the version that must be present; a different version throws
  ///     ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: the failures that the change survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: the version of the channel afterwards; 0 if the channel was never written.
  @discardableResult
  public func clear(
    erasing: Bool = false, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) async throws(WormholeError) -> Int {
    try await offPool("clear") { () throws(WormholeError) in
      try clear(erasing: erasing, ifVersion: expected, durability: durability)
    }
  }

  /// Changes the value under the channel's lock, so that no other change interferes.
  ///
  /// The async overload; the call and its body run off the task's thread. If the task is cancelled
  /// while it waits, the body does not run, and nothing is changed.
  ///
  /// - Parameters:
  ///   - durability: the failures that the change survives once the call has returned; by default
  ///     as in the options.
  ///   - body: receives the value, nil if the channel has none.
  /// - Returns: the value after the change.
  @discardableResult
  public func update(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Value?) throws -> Void
  ) async throws -> Value? {
    try await offPoolAny("update") { try update(durability: durability, body) }
  }

  /// Changes the value under the channel's lock, if the body decides to.
  ///
  /// The async overload; the call and its body run off the task's thread. If the task is cancelled
  /// while it waits, the body does not run, and nothing is changed.
  @discardableResult
  public func updateIfNeeded(
    durability: Durability? = nil,
    _ body: @escaping @Sendable (inout Value?) throws -> UpdateDecision
  ) async throws -> Value? {
    try await offPoolAny("update") { try updateIfNeeded(durability: durability, body) }
  }

  /// Changes the value under the channel's lock; a channel without a value starts from a default.
  ///
  /// The async overload; the call and its body run off the task's thread. If the task is cancelled
  /// while it waits, the body does not run, and nothing is changed.
  @discardableResult
  public func update(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: @escaping @Sendable (inout Value) throws -> Void
  ) async throws -> Value {
    let first = first()
    return try await offPoolAny("update") {
      try update(default: first, durability: durability, body)
    }
  }

  /// Changes the value under the channel's lock, if the body decides to; a channel without a value
  /// starts from a default.
  ///
  /// The async overload; the call and its body run off the task's thread. If the task is cancelled
  /// while it waits, the body does not run, and nothing is changed.
  @discardableResult
  public func updateIfNeeded(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: @escaping @Sendable (inout Value) throws -> UpdateDecision
  ) async throws -> Value {
    let first = first()
    return try await offPoolAny("update") {
      try updateIfNeeded(default: first, durability: durability, body)
    }
  }

  private var lane: OffPool.Lane? {
    OffPool.Lane(try? slot.get(), within: container.options.timeout)
  }

  private func offPool<Success: Sendable>(
    _ operation: String, _ body: @escaping @Sendable () throws(WormholeError) -> Success
  ) async throws(WormholeError) -> Success {
    try await OffPool.run("\(operation) channel", name, in: lane, body)
  }

  private func offPoolAny<Success: Sendable>(
    _ operation: String, _ body: @escaping @Sendable () throws -> Success
  ) async throws -> Success {
    try await OffPool.runAny("\(operation) channel", name, in: lane, body)
  }
}

extension SharedContainer {
  /// Changes two channels under both their locks, so that no other change interferes.
  ///
  /// The async overload; the call and its body run off the task's thread. If the task is cancelled
  /// while it waits, the body does not run, and nothing is changed.
  public func update<First, Second>(
    _ first: Channel<First>, _ second: Channel<Second>, durability: Durability? = nil,
    _ body: @escaping @Sendable (inout First?, inout Second?) throws -> Void
  ) async throws {
    // Queue behind the waiters for the lock that is taken first.
    let isFirst = first.name.utf8.lexicographicallyPrecedes(second.name.utf8)
    let lane = isFirst ? first.slot : second.slot
    try await OffPool.runAny(
      "update channel", first.name, in: OffPool.Lane(try? lane.get(), within: options.timeout)
    ) { try self.update(first, second, durability: durability, body) }
  }

  /// Changes several channels of one type under all their locks.
  ///
  /// The async overload; the call and its body run off the task's thread. If the task is cancelled
  /// while it waits, the body does not run, and nothing is changed.
  public func update<Value>(
    _ channels: [Channel<Value>], durability: Durability? = nil,
    _ body: @escaping @Sendable (inout [Value?]) throws -> Void
  ) async throws {
    let first = channels.min { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    try await OffPool.runAny(
      "update channels of", directory,
      in: OffPool.Lane(first.flatMap { try? $0.slot.get() }, within: options.timeout)
    ) { try self.update(channels, durability: durability, body) }
  }
}
