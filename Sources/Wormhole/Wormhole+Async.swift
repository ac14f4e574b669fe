public import SharedContainer

/// What waits or syncs, for tasks: the same calls, off the threads of the pool.
extension Wormhole {
  /// Opens the container of a group, one per user; makes it if need be.
  ///
  /// As the one without `await`, off the task's thread.
  ///
  /// - Parameters:
  ///   - group: any name, by custom one like `group.com.example.cinema`.
  ///   - options: what holds for all that is done through this object.
  public convenience init(
    group: String, options: Options = Options()
  ) async throws(WormholeError) {
    let container = try await OffPool.run("open group", group) { () throws(WormholeError) in
      try Self.container(of: group, options)
    }
    self.init(container, options)
  }

  /// Opens the container at a path; makes one there if need be, in an empty or a new directory.
  ///
  /// As the one without `await`, off the task's thread.
  public convenience init(
    directory: String, options: Options = Options()
  ) async throws(WormholeError) {
    let container = try await OffPool.run("open", directory) { () throws(WormholeError) in
      try Self.container(at: directory, options)
    }
    self.init(container, options)
  }

  /// Joins under a name that this process has for itself until it leaves or ends.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits
  /// nobody has joined.
  ///
  /// - Parameters:
  ///   - name: any name; it is who messages are sent to.
  ///   - info: what the others may know of this member.
  public func join(
    as name: String, info: [String: String] = [:]
  ) async throws(WormholeError) -> Member {
    try await OffPool.run("join as", name) { () throws(WormholeError) in
      try self.join(as: name, info: info)
    }
  }

  /// Joins under a name for as long as the body runs, and leaves however that ends.
  ///
  /// As `leave()`, also if the task is cancelled.
  @discardableResult
  public nonisolated(nonsending) func withMember<Result>(
    as name: String, info: [String: String] = [:],
    _ body: nonisolated(nonsending) (Member) async throws -> Result
  ) async throws -> Result {
    let member = try await join(as: name, info: info)
    do {
      let result = try await body(member)
      await member.leave()
      return result
    } catch {
      await member.leave()
      throw error
    }
  }
}

extension Wormhole {
  /// Joins under a name for as long as the body runs, which does not wait for other tasks, and
  /// leaves however that ends.
  ///
  /// As the one whose body does.
  @discardableResult
  public func withMember<Result>(
    as name: String, info: [String: String] = [:], _ body: (Member) throws -> Result
  ) async throws -> Result {
    try await withMember(as: name, info: info) { (member: Member) async throws -> Result in
      try body(member)
    }
  }
}

extension Wormhole {
  /// Becomes a guest: for programs that are over in a moment, and care how it ended.
  ///
  /// As the one without `await`, off the task's thread.
  public func guest() async throws(WormholeError) -> Guest {
    try await OffPool.run("become a guest of", directory) { () throws(WormholeError) in
      try self.guest()
    }
  }

  /// Ends all that was begun through this opening and goes on until it is stopped, and lets nothing
  /// of the kind begin any more; once this has returned, no closure of theirs is called again.
  ///
  /// As the one without `await`, off the task's thread; it is done also if the task is cancelled.
  public func close() async {
    await OffPool.runForSure(on: .holding) { self.close() }
  }
}

extension Wormhole.Guest {
  /// Goes; a second time it does nothing.
  ///
  /// As the one without `await`, off the task's thread; it is done also if the task is cancelled.
  public func leave() async {
    await OffPool.runForSure { self.leave() }
  }
}

extension Wormhole.Member {
  /// Gives the name back; a second time it does nothing.
  ///
  /// As the one without `await`, off the task's thread; it is done also if the task is cancelled.
  public func leave() async {
    await OffPool.runForSure { self.leave() }
  }
}
