public import SharedContainer

/// What waits or syncs, for tasks: the same calls, off the threads of the pool.
///
/// While they wait the task can be cancelled: the call throws
/// ``WormholeError/Code-swift.struct/cancelled`` then, and has changed nothing. One that has what
/// it waited for is brought to its end.
extension Wormhole.Channel {
  /// Puts a value, in place of whatever is there, damaged or not.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits
  /// nothing is changed.
  ///
  /// - Parameters:
  ///   - value: what everybody reads from now on.
  ///   - expected: puts it only if this version is there, 0 standing for a channel that was never
  ///     written; otherwise throws ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: what it survives once this has returned; by default what the options say.
  /// - Returns: the version that the value has.
  @discardableResult
  public func put(
    _ value: Value, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) async throws(WormholeError) -> Int {
    try await offPool("put value into") { () throws(WormholeError) in
      try put(value, ifVersion: expected, durability: durability)
    }
  }

  /// Takes the value away; the version goes on.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits
  /// nothing is changed.
  ///
  /// - Parameters:
  ///   - erasing: keeps nothing of what the channel ever held.
  ///   - expected: clears it only if this version is there; otherwise throws
  ///     ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: what it survives once this has returned; by default what the options say.
  /// - Returns: the version that the channel has then; 0 if it was never written.
  @discardableResult
  public func clear(
    erasing: Bool = false, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) async throws(WormholeError) -> Int {
    try await offPool("clear") { () throws(WormholeError) in
      try clear(erasing: erasing, ifVersion: expected, durability: durability)
    }
  }

  /// Changes the value under the channel's lock, so that no other change comes in between.
  ///
  /// As the one without `await`, off the task's thread, where the body runs too; if the task is
  /// cancelled while it waits the body does not run, and nothing is changed.
  ///
  /// - Parameters:
  ///   - durability: what it survives once this has returned; by default what the options say.
  ///   - body: gets the value, nil if there is none.
  /// - Returns: the value as it is afterwards.
  @discardableResult
  public func update(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Value?) throws -> Void
  ) async throws -> Value? {
    try await offPoolAny("update") { try update(durability: durability, body) }
  }

  /// Changes the value under the channel's lock, if the body decides to.
  ///
  /// As the one without `await`, off the task's thread, where the body runs too; if the task is
  /// cancelled while it waits the body does not run, and nothing is changed.
  @discardableResult
  public func decide(
    durability: Durability? = nil,
    _ body: @escaping @Sendable (inout Value?) throws -> Wormhole.Decision
  ) async throws -> Value? {
    try await offPoolAny("update") { try decide(durability: durability, body) }
  }

  /// Changes the value under the channel's lock, beginning with a given one where there is none.
  ///
  /// As the one without `await`, off the task's thread, where the body runs too; if the task is
  /// cancelled while it waits the body does not run, and nothing is changed.
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

  /// Changes the value under the channel's lock, beginning with a given one where there is none, if
  /// the body decides to.
  ///
  /// As the one without `await`, off the task's thread, where the body runs too; if the task is
  /// cancelled while it waits the body does not run, and nothing is changed.
  @discardableResult
  public func decide(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: @escaping @Sendable (inout Value) throws -> Wormhole.Decision
  ) async throws -> Value {
    let first = first()
    return try await offPoolAny("update") {
      try decide(default: first, durability: durability, body)
    }
  }

  private var lane: OffPool.Lane? { OffPool.Lane(try? slot.get(), hole) }

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

extension Wormhole {
  /// Changes two channels under both their locks, so that no other change comes in between.
  ///
  /// As the one without `await`, off the task's thread, where the body runs too; if the task is
  /// cancelled while it waits the body does not run, and nothing is changed.
  public func update<First, Second>(
    _ first: Channel<First>, _ second: Channel<Second>, durability: Durability? = nil,
    _ body: @escaping @Sendable (inout First?, inout Second?) throws -> Void
  ) async throws {
    // Behind those who wait for the lock that comes first.
    let isFirst = first.name.utf8.lexicographicallyPrecedes(second.name.utf8)
    let lane = isFirst ? first.slot : second.slot
    try await OffPool.runAny(
      "update channel", first.name, in: OffPool.Lane(try? lane.get(), self)
    ) { try self.update(first, second, durability: durability, body) }
  }

  /// Changes several channels of one type under all their locks.
  ///
  /// As the one without `await`, off the task's thread, where the body runs too; if the task is
  /// cancelled while it waits the body does not run, and nothing is changed.
  public func update<Value>(
    _ channels: [Channel<Value>], durability: Durability? = nil,
    _ body: @escaping @Sendable (inout [Value?]) throws -> Void
  ) async throws {
    let first = channels.min { $0.name.utf8.lexicographicallyPrecedes($1.name.utf8) }
    try await OffPool.runAny(
      "update channels of", directory,
      in: OffPool.Lane(first.flatMap { try? $0.slot.get() }, self)
    ) { try self.update(channels, durability: durability, body) }
  }
}
