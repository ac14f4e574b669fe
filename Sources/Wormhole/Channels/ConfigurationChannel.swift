public import WormholeContainerStorage
internal import WormholeSyscalls

/// A channel with a default: for configuration that a running program reloads.
///
/// A channel without a value has the default. A value that cannot be read, or that the program's
/// own check refuses, never ends a program or a sequence: the program continues with the last good
/// value and the log names the reason, once for each version. Values that other programs put are
/// checked when they are read.
public struct ConfigurationChannel<Value: Codable & Sendable>: Sendable {
  /// The channel, for calls that do not use the default.
  public let channel: Channel<Value>
  /// The value of a channel that was cleared or never written.
  public let defaultValue: Value
  let check: (@Sendable (Value) throws -> Void)?
  private let history = History()

  init(
    _ channel: Channel<Value>, default value: Value, _ check: (@Sendable (Value) throws -> Void)?
  ) {
    self.channel = channel
    defaultValue = value
    self.check = check
  }

  /// The channel's name.
  public var name: String { channel.name }

  /// The value that counts now: the present one, or the default of a channel without a value.
  ///
  /// If the present value cannot be used, this is the last good value that this object has read,
  /// or else the default; the log names the reason. The call throws only if the file cannot be
  /// read at all, for instance because the container is gone.
  public var value: Value {
    get throws(WormholeError) {
      let finding = WatchResult(reading: try channel.slot.get(), channel.container.options.limits)
      _ = try finding.content.get()
      if case .success(let value)? = result(of: finding) { return value }
      return lastGood
    }
  }

  /// Puts a value in place of the present content, damaged or not.
  ///
  /// - Parameters:
  ///   - value: the value that all processes read from now on. If the check refuses it, the call
  ///     throws the error of the check, and nothing is changed.
  ///   - expected: the version that must be present; a different version throws
  ///     ``WormholeError/Code-swift.struct/conflict``.
  ///   - durability: the failures that the value survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: the version of the value.
  @discardableResult
  public func put(
    _ value: Value, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) throws -> Int {
    try check?(value)
    return try channel.put(value, ifVersion: expected, durability: durability)
  }

  /// Changes the value under the channel's lock; a channel without a value starts from the default.
  ///
  /// As `Channel.update(default:durability:_:)`. If the check refuses the changed value, the call
  /// throws the error of the check, and nothing is changed. A present value that cannot be decoded
  /// is an error, because the body has nothing to change.
  @discardableResult
  public func update(
    durability: Durability? = nil, _ body: (inout Value) throws -> Void
  ) throws -> Value {
    try channel.update(default: defaultValue, durability: durability) { value in
      try body(&value)
      try check?(value)
    }
  }

  /// Puts a value in place of the present content, damaged or not.
  ///
  /// The async overload; runs off the task's thread. The check runs on the task.
  @discardableResult
  public func put(
    _ value: Value, ifVersion expected: Int? = nil, durability: Durability? = nil
  ) async throws -> Int {
    try check?(value)
    return try await channel.put(value, ifVersion: expected, durability: durability)
  }

  /// Changes the value under the channel's lock; a channel without a value starts from the default.
  ///
  /// The async overload; the call, its body and the check run off the task's thread. If the task
  /// is cancelled while it waits, the body does not run, and nothing is changed.
  @discardableResult
  public func update(
    durability: Durability? = nil, _ body: @escaping @Sendable (inout Value) throws -> Void
  ) async throws -> Value {
    let check = check
    return try await channel.update(default: defaultValue, durability: durability) { value in
      try body(&value)
      try check?(value)
    }
  }
}

// MARK: Watching

extension ConfigurationChannel {
  /// The value that counts now, and then each good value; the default for a clear.
  ///
  /// The first element arrives at once, also for a channel that was never written. A value that
  /// cannot be used is logged, and no element follows: the last good value remains valid. At the
  /// start of the sequence, the first element is then as in ``value``. If the container is removed
  /// or moved away, the sequence throws and has ended.
  public var values: Updates<Value> { plan.updates }

  /// The value that counts now, and then each version: a value, or the reason why the version
  /// cannot be used.
  ///
  /// A channel that was cleared or never written has the default. If the container is removed or
  /// moved away, the sequence throws and has ended.
  public var results: Updates<Result<Value, WormholeError>> {
    plan { configuration in
      { (finding, pass) throws(WormholeError) in
        if let result = try configuration.next(finding) { pass(result) }
      }
    }.updates
  }

  /// The values, without those that cannot be used.
  var plan: WatchPlan<Value> {
    plan { configuration in
      let hasStarted = Monitor(false)
      return { (finding, pass) throws(WormholeError) in
        guard let result = try configuration.next(finding) else { return }
        let isFirst = hasStarted.withLock { !exchange(&$0, with: true) }
        if case .success(let value) = result {
          pass(value)
        } else if isFirst {
          pass(configuration.lastGood)
        }
      }
    }
  }

  private func plan<Element>(
    _ interpreter: @escaping @Sendable (Self) -> Interpreter<Element>
  ) -> WatchPlan<Element> {
    let (channel, feeds) = (channel, channel.container.feeds)
    return WatchPlan(
      reportsAbsence: true,
      join: { (listener) throws(WormholeError) in
        try feeds.join(listener, channel.slot.get())
      }, interpreter: { interpreter(self) })
  }

  /// Returns the meaning of a finding of a watch; throws the error that ends the watch.
  private func next(_ finding: WatchResult) throws(WormholeError) -> Result<Value, WormholeError>? {
    if finding.isFinal { _ = try finding.content.get() }
    return result(of: finding)
  }
}

// MARK: Reading

extension ConfigurationChannel {
  /// What the copies of one channel object know together.
  private final class History: Sendable {
    struct State {
      var lastGood: Value?
      /// The last version that could not be used: each is logged once.
      var logged: Stamp?
    }

    let state = Monitor(State())
  }

  private var lastGood: Value { history.state.withLock { $0.lastGood } ?? defaultValue }

  /// Returns nil if the container is gone, which a watch reports separately.
  private func result(of finding: WatchResult) -> Result<Value, WormholeError>? {
    if case .failure(let error) = finding.content, error.code == .notAContainer { return nil }
    do throws(WormholeError) {
      let value = try read(finding)
      history.state.withLock { $0.lastGood = value }
      return .success(value)
    } catch {
      let isNew = history.state.withLock {
        exchange(&$0.logged, with: finding.stamp) != finding.stamp
      }
      if isNew {
        channel.container.storage.log(.error, error, about: LogSubject(channel: name))
      }
      return .failure(error)
    }
  }

  private func read(_ finding: WatchResult) throws(WormholeError) -> Value {
    let reader = channel.reader()
    guard let (file, isRecovered) = try reader.open(finding) else { return defaultValue }
    let snapshot = try reader.snapshot(of: file, isRecovered: isRecovered, as: Value.self)
    guard let value = snapshot.value else { return defaultValue }
    do {
      try check?(value)
    } catch {
      throw WormholeError(error, reader.operation, name, otherwise: .invalidValue)
    }
    return value
  }
}

extension SharedContainer {
  /// Returns the channel with a name, with a default for the time without a usable value.
  ///
  /// The call makes and reads nothing.
  ///
  /// - Parameters:
  ///   - name: the channel's name.
  ///   - value: the value while the channel has none; it is never written by itself.
  ///   - check: throws an error for a value that the program must not use. The check binds this
  ///     object only: its `put` and `update` throw the error, and its readers treat such a value
  ///     of another program as one that cannot be read.
  public func channel<Value: Codable & Sendable>(
    _ name: String, default value: Value,
    validating check: (@Sendable (Value) throws -> Void)? = nil
  ) -> ConfigurationChannel<Value> {
    ConfigurationChannel(channel(name), default: value, check)
  }
}
