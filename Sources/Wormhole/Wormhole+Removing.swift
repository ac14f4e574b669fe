public import SharedContainer

extension Wormhole {
  /// Removes a channel for good, with all that was kept of its values; false if there is none.
  ///
  /// It is cleared first, and whoever watches it hears that; watches go on, and hear of it when it
  /// is written again. Its versions do not begin anew then, so whoever knows one of them never
  /// meets it again: what is written for the first time in this container has a greater version
  /// from now on than anything that was removed.
  ///
  /// Whoever changes it at that moment loses nothing: what they put comes before the removal, and
  /// goes with it, or after, and is there. Refused if a foreign file lies in its directory.
  @discardableResult
  public func removeChannel(_ name: String) throws(WormholeError) -> Bool {
    try remove("remove channel", name, container.slot(.channels, name))
  }

  /// Removes the settings of a suite for good; false if there are none.
  ///
  /// As `removeChannel(_:)`. Whoever watches a key hears that it was removed.
  @discardableResult
  public func removeDefaults(_ suite: String) throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      return try remove("remove suite", suite, defaults(suite).slot.get())
    } catch {
      var error = error
      (error.operation, error.subject) = ("remove suite", suite)
      throw error
    }
  }

  private func remove(
    _ operation: String, _ name: String, _ slot: Slot
  ) throws(WormholeError) -> Bool {
    let writer = SlotWriter(slot, of: self, name: name)
    let nothing: Int? = nil
    return try WormholeError.writing(operation, name) {
      try slot.remove(operation, durability: options.durability, patience: patience) { content in
        let version = writer.count(content).next
        return (try writer.seal(nothing, version, operation), version)
      }
    }
  }

  // MARK: Members

  /// Removes a member whom nobody is any more, with all that is known of it.
  ///
  /// That is who it was, how it is started, and what its peers have told it. False if there is
  /// none.
  ///
  /// Refused while it runs, and while messages wait for it or were given up: receive them, take
  /// them back or discard them first. Whoever joins under the name, or sends to it, at that moment
  /// loses nothing: it is there again then.
  @discardableResult
  public func removeMember(_ name: String) throws(WormholeError) -> Bool {
    try container.removeMember(name)
  }
}

/// What waits or syncs, for tasks: the same calls, off the threads of the pool.
extension Wormhole {
  /// Removes a channel for good, with all that was kept of its values; false if there is none.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits
  /// nothing is removed.
  @discardableResult
  public func removeChannel(_ name: String) async throws(WormholeError) -> Bool {
    let lane = OffPool.Lane(try? container.slot(.channels, name), self)
    return try await OffPool.run("remove channel", name, in: lane) { () throws(WormholeError) in
      try self.removeChannel(name)
    }
  }

  /// Removes the settings of a suite for good; false if there are none.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits
  /// nothing is removed.
  @discardableResult
  public func removeDefaults(_ suite: String) async throws(WormholeError) -> Bool {
    let lane = OffPool.Lane(try? defaults(suite).slot.get(), self)
    return try await OffPool.run("remove suite", suite, in: lane) { () throws(WormholeError) in
      try self.removeDefaults(suite)
    }
  }

  /// Removes a member whom nobody is any more, with all that is known of it.
  ///
  /// As the one without `await`, off the task's thread.
  @discardableResult
  public func removeMember(_ name: String) async throws(WormholeError) -> Bool {
    try await OffPool.run("remove member", name) { () throws(WormholeError) in
      try self.removeMember(name)
    }
  }
}
