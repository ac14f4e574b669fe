public import WormholeContainerStorage
internal import WormholeSyscalls

/// The async overloads of the calls that wait or sync; they run off the threads of the pool.
extension Peer {
  /// Sends a message, which is delivered even if processes die in the meantime.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits for
  /// space, nothing is sent.
  @discardableResult
  public func send<Value: Encodable & Sendable>(
    _ value: Value, _ options: SendOptions
  ) async throws(WormholeError) -> Sent {
    try await OffPool.run("send message to", name) { () throws(WormholeError) in
      try self.send(value, options)
    }
  }

  /// Sends many messages with little more effort than a single message: up to 64 messages share a
  /// file.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits for
  /// space, no further message is sent.
  @discardableResult
  public func send<Value: Encodable & Sendable>(
    contentsOf values: [Value], _ options: SendOptions
  ) async throws(WormholeError) -> [Sent] {
    try await OffPool.run("send message to", name) { () throws(WormholeError) in
      try self.send(contentsOf: values, options)
    }
  }

  /// Sends a file with a descriptive value.
  ///
  /// The async overload; runs off the task's thread, including the progress closure. If the task is
  /// cancelled while it copies or waits for space, nothing is sent.
  @discardableResult
  public func send<Metadata: Encodable & Sendable>(
    file path: String, metadata: Metadata, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) -> Sent {
    try await OffPool.run("send file", path) { () throws(WormholeError) in
      try self.send(
        file: path, metadata: metadata, mode: mode, options, progress: OffPool.heeding(progress))
    }
  }

  /// Sends a file without a value, as a message of the kind `file`.
  ///
  /// The async overload; runs off the task's thread, including the progress closure. If the task is
  /// cancelled while it copies or waits for space, nothing is sent.
  @discardableResult
  public func send(
    file path: String, mode: TransferMode = .copying,
    _ options: SendOptions = SendOptions(),
    progress: (@Sendable (FileProgress) -> ProgressDecision)? = nil
  ) async throws(WormholeError) -> Sent {
    try await OffPool.run("send file", path) { () throws(WormholeError) in
      try self.send(file: path, mode: mode, options, progress: OffPool.heeding(progress))
    }
  }

  /// Sends an immediate message, which is delivered to the running process or not at all.
  ///
  /// The async overload; runs off the task's thread. A cancelled task stops waiting for the start
  /// of the peer.
  ///
  /// - Parameters:
  ///   - value: the content.
  ///   - kind: the kind of the message; by default the name of the value's type.
  ///   - headers: the headers of the message; see ``SendOptions/headers``.
  ///   - timeout: the time after which the message is no longer delivered.
  ///   - waking: whether to start the peer if it does not run.
  public func sendImmediately<Value: Encodable & Sendable>(
    _ value: Value, kind: String? = nil, headers: [String: String] = [:],
    within timeout: Duration = .seconds(10), waking: Bool = false
  ) async throws(WormholeError) {
    let label = try OutgoingLabel(kind, headers, of: Value.self, "send message to", name)
    let deadline = container.options.time.now + timeout
    if waking { try await wake(within: timeout) }
    do throws(WormholeError) {
      try await sendOff(value, label, timeout, until: deadline)
    } catch {
      // The peer may have been about to end when it was found running.
      let left = deadline - container.options.time.now
      guard waking, error.code == .unreachable, left > .zero else { throw error }
      try await wake(within: left)
      try await sendOff(value, label, timeout, until: deadline)
    }
  }

  private func sendOff<Value: Encodable & Sendable>(
    _ value: Value, _ label: OutgoingLabel, _ timeout: Duration, until deadline: Instant
  ) async throws(WormholeError) {
    try await OffPool.run("send message to", name) { () throws(WormholeError) in
      _ = try self.sendNow(value, label, timeout, until: deadline)
    }
  }

  /// Sets a context for the peer: the new context replaces a previous context that the peer has not
  /// received yet.
  ///
  /// The async overload; runs off the task's thread.
  ///
  /// - Parameters:
  ///   - value: the context.
  ///   - kind: the kind of the context; by default the name of the value's type.
  ///   - evenIfSame: whether to send a value that equals the previous value.
  ///   - durability: the failures that the context survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: whether the context was set; false if it equals the previous value.
  @discardableResult
  public func setContext<Value: Encodable & Sendable>(
    _ value: Value, kind: String? = nil, evenIfSame: Bool = false, durability: Durability? = nil
  ) async throws(WormholeError) -> Bool {
    try await OffPool.run("set context for", name) { () throws(WormholeError) in
      try self.setContext(value, kind: kind, evenIfSame: evenIfSame, durability: durability)
    }
  }
}
