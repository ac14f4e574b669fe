internal import PropertyLists
public import SharedContainer

extension Wormhole {
  /// What becomes of a value that an update has worked on.
  @nonexhaustive
  public enum Decision: Hashable, Sendable {
    /// It is put.
    case commit
    /// It is forgotten: nothing has happened.
    case discard
  }
}

extension Wormhole.Channel {
  /// Changes the value under the channel's lock, so that no other change comes in between.
  ///
  /// Setting the value to nil clears the channel. If it is `Equatable` and the body leaves it as it
  /// was, nothing is changed and no watcher hears of it; `put(_:ifVersion:durability:)` is for
  /// saying the same thing again.
  ///
  /// The body runs on the calling thread, and again, on a newer value, if others took the lock over
  /// because this process stood still: what it did to the value before is forgotten. It must not
  /// touch the same container's channels otherwise, which throws
  /// ``WormholeError/Code-swift.struct/nested``. Whatever it throws comes through, and nothing is
  /// changed then. A value that is damaged or of another type is an error, and the body does not
  /// run.
  ///
  /// - Parameters:
  ///   - durability: what it survives once this has returned; by default what the options say.
  ///   - body: gets the value, nil if there is none.
  /// - Returns: the value as it is afterwards.
  @discardableResult
  public func update(
    durability: Durability? = nil, _ body: (inout Value?) throws -> Void
  ) throws -> Value? {
    try decide(durability: durability) { value in
      try body(&value)
      return .commit
    }
  }

  /// Changes the value under the channel's lock, if the body decides to.
  ///
  /// As `update(durability:_:)`, with a body that says what becomes of what it did: for values
  /// that are not `Equatable`, and for what has nothing to do with the value.
  @discardableResult
  public func decide(
    durability: Durability? = nil, _ body: (inout Value?) throws -> Wormhole.Decision
  ) throws -> Value? {
    try decideVersion(durability: durability, body).value
  }

  /// As ``decide(durability:_:)``, and says which version the value has afterwards; 0 if nothing
  /// was
  /// ever put.
  package func decideVersion(
    durability: Durability? = nil, _ body: (inout Value?) throws -> Wormhole.Decision
  ) throws -> (value: Value?, version: Int) {
    let writer = try writer()
    let reader = reader("update channel")
    var after: Value?
    var latest = 0
    try writer.slot.change(
      "update", durability: durability ?? hole.options.durability, patience: writer.patience
    ) { content in
      let snapshot = try reader.snapshot(of: content, as: Value.self)
      let before = snapshot?.value
      after = before
      latest = snapshot?.metadata.version ?? 0
      guard try body(&after) == .commit else {
        after = before
        return .none
      }
      if isUnchanged(before, after) { return .none }
      let version = writer.count(content).next
      latest = version
      return .put(try writer.seal(after, version, "update channel"), note: version)
    }
    return (after, latest)
  }

  /// Changes the value under the channel's lock, beginning with a given one where there is none.
  ///
  /// As `update(durability:_:)`. What the body leaves as it began with is not written.
  @discardableResult
  public func update(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: (inout Value) throws -> Void
  ) throws -> Value {
    try decide(default: first(), durability: durability) { value in
      try body(&value)
      return .commit
    }
  }

  /// Changes the value under the channel's lock, beginning with a given one where there is none, if
  /// the body decides to.
  ///
  /// As `decide(durability:_:)`.
  @discardableResult
  public func decide(
    default first: @autoclosure () -> Value, durability: Durability? = nil,
    _ body: (inout Value) throws -> Wormhole.Decision
  ) throws -> Value {
    var after = first()
    let begin = after
    try decide(durability: durability) { value in
      after = value ?? begin
      guard try body(&after) == .commit else {
        after = value ?? begin
        return .discard
      }
      // A channel that has no value stays without, too, if the body changes nothing.
      if value == nil, isUnchanged(begin, after) { return .discard }
      value = after
      return .commit
    }
    return after
  }
}

/// Whether a body has left a value as it was: false if nobody can tell.
func isUnchanged<Value>(_ before: Value?, _ after: Value?) -> Bool {
  switch (before, after) {
  case (nil, nil): return true
  case (let before?, let after?):
    func compare<Known: Equatable>(_ before: Known) -> Bool { before == after as? Known }
    return (before as? any Equatable).map { compare($0) } ?? false
  default: return false
  }
}
