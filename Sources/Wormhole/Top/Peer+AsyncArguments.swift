public import WormholeContainerStorage

/// The async overloads of `send` with the options as arguments.
extension Peer {
  /// Sends a message, which is delivered even if processes die in the meantime.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits for
  /// space, nothing is sent.
  @discardableResult
  public func send<Value: Encodable & Sendable>(
    _ value: Value, durability: Durability = .power, timeToLive: Duration? = nil,
    delay: Duration? = nil, isUrgent: Bool = false, id: String? = nil, kind: String? = nil,
    headers: [String: String] = [:], wantsOutcome: Bool? = nil,
    whenFull: SendOptions.WhenFull = .fail
  ) async throws(WormholeError) -> Sent {
    try await send(
      value,
      SendOptions(
        durability: durability, timeToLive: timeToLive, delay: delay, isUrgent: isUrgent, id: id,
        kind: kind, headers: headers, wantsOutcome: wantsOutcome, whenFull: whenFull))
  }

  /// Sends many messages with little more effort than a single message: up to 64 messages share a
  /// file.
  ///
  /// The async overload; runs off the task's thread. If the task is cancelled while it waits for
  /// space, no further message is sent.
  @discardableResult
  public func send<Value: Encodable & Sendable>(
    contentsOf values: [Value], durability: Durability = .power, timeToLive: Duration? = nil,
    delay: Duration? = nil, isUrgent: Bool = false, id: String? = nil, kind: String? = nil,
    headers: [String: String] = [:], wantsOutcome: Bool? = nil,
    whenFull: SendOptions.WhenFull = .fail
  ) async throws(WormholeError) -> [Sent] {
    try await send(
      contentsOf: values,
      SendOptions(
        durability: durability, timeToLive: timeToLive, delay: delay, isUrgent: isUrgent, id: id,
        kind: kind, headers: headers, wantsOutcome: wantsOutcome, whenFull: whenFull))
  }
}
