public import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists

/// Changes for tasks: async overloads, off the threads of the pool.
extension Defaults {
  /// Sets a key to any value that can be encoded; nil removes it.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, nothing is changed.
  public func set<Value: Encodable & Sendable>(
    _ value: Value?, forKey key: String
  ) async throws(WormholeError) {
    try await offPool { () throws(WormholeError) in try self.set(value, forKey: key) }
  }

  /// Sets a key to an address, as text; nil removes it.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, nothing is changed.
  public func set(_ url: URL?, forKey key: String) async throws(WormholeError) {
    try await offPool { () throws(WormholeError) in try self.set(url, forKey: key) }
  }

  /// Removes a key; afterwards its value is the registered one, if any.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, nothing is changed.
  public func removeObject(forKey key: String) async throws(WormholeError) {
    try await offPool { () throws(WormholeError) in try self.removeObject(forKey: key) }
  }

  /// Removes all keys, also of a damaged suite.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, nothing is changed.
  public func removeAll() async throws(WormholeError) {
    try await offPool { () throws(WormholeError) in try self.removeAll() }
  }

  /// Changes several keys at once, or one key depending on its previous value.
  ///
  /// As the overload without `await`, off the task's thread, where the body runs too. If the task
  /// is cancelled during the wait, the body does not run, and nothing is changed.
  public func update(
    _ body: @escaping @Sendable (inout [String: PropertyListValue]) throws -> Void
  ) async throws {
    try await OffPool.runAny("write defaults", suite, in: lane) { try self.update(body) }
  }

  private var lane: OffPool.Lane? {
    OffPool.Lane(try? slot.get(), within: container.options.timeout)
  }

  private func offPool(
    _ body: @escaping @Sendable () throws(WormholeError) -> Void
  ) async throws(WormholeError) {
    try await OffPool.run("write defaults", suite, in: lane, body)
  }
}
