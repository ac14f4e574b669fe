public import WormholeContainerStorage
internal import WormholeSyscalls

/// Async overloads of calls that wait or sync, off the threads of the pool.
extension SharedContainer {
  /// Opens the container of a group, one per user; makes it if need be.
  ///
  /// As the overload without `await`, off the task's thread.
  ///
  /// - Parameters:
  ///   - group: any name, by custom a name like `group.com.example.cinema`.
  ///   - options: the options for all work through this object.
  public convenience init(
    group: String, options: Options = Options()
  ) async throws(WormholeError) {
    let storage = try await OffPool.run("open group", group) { () throws(WormholeError) in
      try Self.container(of: group, options)
    }
    self.init(storage, options)
  }

  /// Opens the container at a path; makes one there if need be, in an empty or a new directory.
  ///
  /// As the overload without `await`, off the task's thread.
  public convenience init(
    directory: String, options: Options = Options()
  ) async throws(WormholeError) {
    let storage = try await OffPool.run("open", directory) { () throws(WormholeError) in
      try Self.container(at: directory, options)
    }
    self.init(storage, options)
  }

  /// Joins under a name, exclusively for this process until it leaves or ends.
  ///
  /// As the overload without `await`, off the task's thread. If the task is cancelled during the
  /// wait, the process has not joined.
  ///
  /// - Parameters:
  ///   - name: any name; the address for messages to the member.
  ///   - info: the public information about the member.
  public func join(
    as name: String, info: [String: String] = [:]
  ) async throws(WormholeError) -> Member {
    try await OffPool.run("join as", name) { () throws(WormholeError) in
      try self.join(as: name, info: info)
    }
  }

  /// Joins under a name for as long as the body runs, and leaves however the body ends.
  ///
  /// It leaves as by `leave()`, also if the task is cancelled.
  @discardableResult
  public nonisolated(nonsending) func withMember<Result>(
    as name: String, info: [String: String] = [:],
    _ body: nonisolated(nonsending) (Member) async throws -> Result
  ) async throws -> Result {
    try await join(as: name, info: info).leaving(after: body)
  }
}

extension Member {
  /// Runs the body, and leaves however the body ends.
  nonisolated(nonsending) func leaving<Result>(
    after body: nonisolated(nonsending) (Member) async throws -> Result
  ) async throws -> Result {
    do {
      let result = try await body(self)
      await leave()
      return result
    } catch {
      await leave()
      throw error
    }
  }
}

extension SharedContainer {
  /// Joins under a name for as long as a synchronous body runs, and leaves however the body ends.
  ///
  /// As the overload with an asynchronous body.
  @discardableResult
  public func withMember<Result>(
    as name: String, info: [String: String] = [:], _ body: (Member) throws -> Result
  ) async throws -> Result {
    try await withMember(as: name, info: info) { (member: Member) async throws -> Result in
      try body(member)
    }
  }
}

extension SharedContainer {
  /// Becomes a guest: for programs that end in a moment, and need the outcome of their messages.
  ///
  /// As the overload without `await`, off the task's thread.
  public func guest() async throws(WormholeError) -> Guest {
    try await OffPool.run("become a guest of", directory) { () throws(WormholeError) in
      try self.guest()
    }
  }

  /// Ends all subscriptions of this instance, and accepts no more; once this has returned, none of
  /// their closures is called again.
  ///
  /// As the overload without `await`, off the task's thread; it runs even if the task is cancelled.
  public func close() async {
    await OffPool.runForSure(on: .holding) { self.close() }
  }
}

extension Guest {
  /// Ends the guest; a second call does nothing.
  ///
  /// As the overload without `await`, off the task's thread; it runs even if the task is cancelled.
  public func leave() async {
    await OffPool.runForSure { self.leave() }
  }
}

extension Member {
  /// Releases the name, after the closures in progress have ended; a second call does nothing.
  ///
  /// As the overload without `await`, off the task's thread; it runs even if the task is cancelled.
  /// In addition, the tasks of asynchronous closures are cancelled and awaited, so that their
  /// messages are acknowledged or requeued. If the time runs out first, the log reports it: the
  /// messages still being handled are redelivered as after a crash, counted and marked, and their
  /// late acknowledgements throw or change nothing. A call inside an asynchronous closure does not
  /// wait for that closure.
  ///
  /// - Parameter time: how long to wait for asynchronous closures.
  public func leave(within time: Duration = .seconds(10)) async {
    let tasks = container.storage.isOwned ? mailbox.tasks.cancel() : []
    await OffPool.runForSure(on: .holding) {
      let deadline = Instant.now + time
      let late = tasks.count { !$0.wait(until: deadline) }
      if late > 0 {
        self.container.log(
          .warning,
          "'\(self.name)' leaves though \(late) of its closures have not returned within \(time): "
            + "their messages will be redelivered, as another attempt",
          about: LogSubject(member: self.name))
      }
      self.leave()
    }
  }
}
