public import SharedContainer
internal import Syscalls

/// What waits or syncs, for tasks: the same calls, off the threads of the pool.
extension Wormhole.Peer {
  /// Sends a message, which arrives whoever dies meanwhile.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits for
  /// room nothing is sent.
  @discardableResult
  public func send<Value: Encodable & Sendable>(
    _ value: Value, _ options: Wormhole.SendOptions = Wormhole.SendOptions()
  ) async throws(WormholeError) -> Wormhole.Sent {
    try await OffPool.run("send message to", name) { () throws(WormholeError) in
      try self.send(value, options)
    }
  }

  /// Sends many messages with little more effort than one: up to 64 of them share a file.
  ///
  /// As the one without `await`, off the task's thread; if the task is cancelled while it waits for
  /// room nothing more is sent.
  @discardableResult
  public func send<Value: Encodable & Sendable>(
    contentsOf values: [Value], _ options: Wormhole.SendOptions = Wormhole.SendOptions()
  ) async throws(WormholeError) -> [Wormhole.Sent] {
    try await OffPool.run("send message to", name) { () throws(WormholeError) in
      try self.send(contentsOf: values, options)
    }
  }

  /// Sends a file, with a value that tells of it.
  ///
  /// As the one without `await`, off the task's thread, where the progress is told too; if the task
  /// is cancelled while it copies or waits for room nothing is sent.
  @discardableResult
  public func send<Metadata: Encodable & Sendable>(
    file path: String, metadata: Metadata, by handing: Wormhole.FileHanding = .copying,
    _ options: Wormhole.SendOptions = Wormhole.SendOptions(),
    progress: (@Sendable (Wormhole.FileProgress) -> Wormhole.FileDecision)? = nil
  ) async throws(WormholeError) -> Wormhole.Sent {
    try await OffPool.run("send file", path) { () throws(WormholeError) in
      try self.send(
        file: path, metadata: metadata, by: handing, options, progress: OffPool.heeding(progress))
    }
  }

  /// Sends a file and nothing else, as a message of the kind `file`.
  ///
  /// As the one without `await`, off the task's thread, where the progress is told too; if the task
  /// is cancelled while it copies or waits for room nothing is sent.
  @discardableResult
  public func send(
    file path: String, by handing: Wormhole.FileHanding = .copying,
    _ options: Wormhole.SendOptions = Wormhole.SendOptions(),
    progress: (@Sendable (Wormhole.FileProgress) -> Wormhole.FileDecision)? = nil
  ) async throws(WormholeError) -> Wormhole.Sent {
    try await OffPool.run("send file", path) { () throws(WormholeError) in
      try self.send(file: path, by: handing, options, progress: OffPool.heeding(progress))
    }
  }

  /// Sends a message that only makes sense now.
  ///
  /// As the one without `await`, off the task's thread; a task that is cancelled waits no longer
  /// for the peer to be started.
  ///
  /// - Parameters:
  ///   - value: what is sent.
  ///   - immediacy: tells this from a guaranteed message.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - timeout: after which nobody is to see it any more.
  ///   - waking: whether the peer is started if it does not run.
  public func send<Value: Encodable & Sendable>(
    _ value: Value, _ immediacy: Wormhole.Immediacy, kind: String? = nil,
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) {
    let deadline = hole.options.time.now + timeout
    if waking { try await wake(within: timeout) }
    do throws(WormholeError) {
      try await sendOff(value, kind, timeout, until: deadline)
    } catch {
      // What was awake may have been about to end.
      let left = deadline - hole.options.time.now
      guard waking, error.code == .unreachable, left > .zero else { throw error }
      try await wake(within: left)
      try await sendOff(value, kind, timeout, until: deadline)
    }
  }

  private func sendOff<Value: Encodable & Sendable>(
    _ value: Value, _ kind: String?, _ timeout: Duration, until deadline: Instant
  ) async throws(WormholeError) {
    try await OffPool.run("send message to", name) { () throws(WormholeError) in
      _ = try self.sendNow(value, kind, timeout, until: deadline)
    }
  }

  /// Tells the peer a state: it takes the place of what was told before and not received yet.
  ///
  /// As the one without `await`, off the task's thread.
  ///
  /// - Parameters:
  ///   - value: what the peer is told.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - evenIfSame: whether a value that equals the last one is told again.
  ///   - durability: what it survives once this has returned; by default what the options say.
  /// - Returns: whether it was told; false if the last one was the same.
  @discardableResult
  public func setContext<Value: Encodable & Sendable>(
    _ value: Value, kind: String? = nil, evenIfSame: Bool = false, durability: Durability? = nil
  ) async throws(WormholeError) -> Bool {
    try await OffPool.run("set context of", name) { () throws(WormholeError) in
      try self.setContext(value, kind: kind, evenIfSame: evenIfSame, durability: durability)
    }
  }
}
