public import WormholeContainerStorage
internal import WormholePropertyLists

/// The result of an update's body.
@nonexhaustive
public enum UpdateDecision: Hashable, Sendable {
  /// The changed value is put.
  case commit
  /// The changed value is discarded: nothing has happened.
  case keep
}

extension Channel {
  /// Changes the value under the channel's lock, so that no other change interferes.
  ///
  /// Setting the value to nil clears the channel. If the value is `Equatable` and the body leaves
  /// it equal, nothing is changed and no watcher is notified; to notify with an equal value, use
  /// `put(_:ifVersion:durability:)`. Only with `.power` is an equal value that was put without a
  /// sync written again, under the next version. The body receives nil for an expired value; a
  /// changed value expires when the value before it would have.
  ///
  /// The body runs on the calling thread. If another process takes the lock over because this
  /// process is suspended, the body runs again, on a newer value, and its earlier changes are
  /// discarded. The body must not take a second lock of the same container, for instance by
  /// changing a channel: such a call throws ``WormholeError/Code-swift.struct/nested``. If the body
  /// throws, the caller receives its error, and nothing is changed. A value that is damaged or of
  /// another type is an error, and the body does not run.
  ///
  /// - Parameters:
  ///   - durability: the failures that the change survives once the call has returned; by default
  ///     as in the options.
  ///   - body: receives the value, nil if the channel has none.
  /// - Returns: the value after the change.
  @discardableResult
  public func update(
    durability: Durability? = nil, _ body: (inout Value?) throws -> Void
  ) throws -> Value? {
    try updateIfNeeded(durability: durability) { value in
      try body(&value)
      return .commit
    }
  }

  /// Changes the value under the channel's lock, if the body decides to.
  ///
  /// As `update(durability:_:)`, with a body that decides whether its change is put: for values
  /// that are not `Equatable`, and for decisions that do not depend on the value.
  @discardableResult
  public func updateIfNeeded(
    durability: Durability? = nil, _ body: (inout Value?) throws -> UpdateDecision
  ) throws -> Value? {
    try updateVersionIfNeeded(durability: durability, body).value
  }

  /// As ``updateIfNeeded(durability:_:)``, and also returns the version of the value afterwards; 0
  /// if the channel was never written.
  package func updateVersionIfNeeded(
    durability: Durability? = nil, _ body: (inout Value?) throws -> UpdateDecision
  ) throws -> (value: Value?, version: Int) {
    do {
      return try updateHere(durability, body)
    } catch let error as WormholeError {
      return try updateAtHome(error, body)
    }
  }

  private func updateHere(
    _ durability: Durability?, _ body: (inout Value?) throws -> UpdateDecision
  ) throws -> (value: Value?, version: Int) {
    let writer = try writer()
    let reader = reader("update channel")
    var after: Value?
    var latest = 0
    var isFound = false
    let durability = durability ?? container.options.durability
    try writer.slot.change("update", durability: durability, patience: writer.patience) { content in
      isFound = false
      // A body that depends on a copy runs only if its result can be carried to the home.
      let count = try writer.count(content)
      let opened = try reader.open(content)
      let snapshot = try opened.map {
        try reader.snapshot(of: $0.file, isRecovered: $0.isRecovered, as: Value.self)
      }
      let before = snapshot?.value
      after = before
      latest = snapshot?.metadata.version ?? 0
      guard try body(&after) == .commit else {
        after = before
        return .none
      }
      isFound = isUnchanged(before, after) && (durability != .power || content.isSynced)
      if isFound { return .none }
      latest = count.next
      // A changed value expires when the value would have.
      let until = opened.flatMap { $0.file.isExpired ? nil : $0.file.header.until }
      return .put(try writer.seal(after, count, until: until, "update channel"), note: count.note)
    }
    // An earlier call may have made the change, without the sync of the name.
    if isFound, durability == .power { try writer.slot.syncName("update channel") }
    return (after, latest)
  }

  /// Changes the value under the channel's lock; a channel without a value starts from a default.
  ///
  /// As `update(durability:_:)`. A default that the body leaves unchanged is not written.
  @discardableResult
  public func update(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: (inout Value) throws -> Void
  ) throws -> Value {
    try updateIfNeeded(default: first(), durability: durability) { value in
      try body(&value)
      return .commit
    }
  }

  /// Changes the value under the channel's lock, if the body decides to; a channel without a value
  /// starts from a default.
  ///
  /// As `decide(durability:_:)`.
  @discardableResult
  public func updateIfNeeded(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: (inout Value) throws -> UpdateDecision
  ) throws -> Value {
    var after = first()
    let begin = after
    try updateIfNeeded(durability: durability) { value in
      after = value ?? begin
      guard try body(&after) == .commit else {
        after = value ?? begin
        return .keep
      }
      // A channel without a value also stays without a value if the body leaves the default
      // unchanged.
      if value == nil, isUnchanged(begin, after) { return .keep }
      value = after
      return .commit
    }
    return after
  }
}

/// Whether a body has left a value unchanged; false if the values cannot be compared.
func isUnchanged<Value>(_ before: Value?, _ after: Value?) -> Bool {
  switch (before, after) {
  case (nil, nil): return true
  case (let before?, let after?):
    func compare<Known: Equatable>(_ before: Known) -> Bool { before == after as? Known }
    return (before as? any Equatable).map { compare($0) } ?? false
  default: return false
  }
}
