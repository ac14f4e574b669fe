public import WormholeContainerStorage

/// Guaranteed messages, with the options as arguments.
extension Peer {
  /// Sends a message, which arrives in order, whichever process dies in the meantime.
  ///
  /// As `send(_:_:)`; each argument is the property of ``SendOptions`` with the same
  /// name.
  @discardableResult
  public func send<Value: Encodable>(
    _ value: Value, durability: Durability = .power, timeToLive: Duration? = nil,
    delay: Duration? = nil, isUrgent: Bool = false, id: String? = nil, kind: String? = nil,
    headers: [String: String] = [:], wantsOutcome: Bool? = nil,
    whenFull: SendOptions.WhenFull = .fail
  ) throws(WormholeError) -> Sent {
    try send(
      value,
      SendOptions(
        durability: durability, timeToLive: timeToLive, delay: delay, isUrgent: isUrgent, id: id,
        kind: kind, headers: headers, wantsOutcome: wantsOutcome, whenFull: whenFull))
  }

  /// Sends many messages with little more effort than one: up to 64 messages share a file.
  ///
  /// As `send(contentsOf:_:)`; each argument is the property of ``SendOptions`` with the same
  /// name.
  @discardableResult
  public func send<Value: Encodable>(
    contentsOf values: [Value], durability: Durability = .power, timeToLive: Duration? = nil,
    delay: Duration? = nil, isUrgent: Bool = false, id: String? = nil, kind: String? = nil,
    headers: [String: String] = [:], wantsOutcome: Bool? = nil,
    whenFull: SendOptions.WhenFull = .fail
  ) throws(WormholeError) -> [Sent] {
    try send(
      contentsOf: values,
      SendOptions(
        durability: durability, timeToLive: timeToLive, delay: delay, isUrgent: isUrgent, id: id,
        kind: kind, headers: headers, wantsOutcome: wantsOutcome, whenFull: whenFull))
  }
}
