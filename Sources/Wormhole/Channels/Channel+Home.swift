package import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A change of a channel that its home machine is asked to make.
package struct HomeChange<Value: Codable & Sendable>: Codable, Sendable {
  package var channel: String
  /// Identifies the change: asked again under its ID, it is made once.
  package var operation: String
  /// The version that must be present at the home; nil for any.
  package var expected: Int?
  /// The new value; nil to clear the channel.
  package var value: Value?
  /// When the new value expires; nil for never.
  package var until: Date?

  package init(
    channel: String, operation: String, expected: Int?, value: Value?, until: Date? = nil
  ) {
    (self.channel, self.operation) = (channel, operation)
    (self.expected, self.value, self.until) = (expected, value, until)
  }
}

/// The home's answer.
package struct HomeAnswer<Value: Codable & Sendable>: Codable, Sendable {
  package enum Result: String, Codable, Sendable {
    /// The change was made, now or when it was asked before.
    case made
    /// Another version is present: the answer has it, with its value.
    case differs
    /// The change has not reached the home, and will not.
    case unreachable
    /// The home does not make the change, for the reason.
    case refused
  }

  package var result: Result
  package var version = 0
  package var value: Value?
  package var reason: String?
  /// When the value expires; nil for never.
  package var until: Date?

  package init(
    _ result: Result, version: Int = 0, value: Value? = nil, reason: String? = nil,
    until: Date? = nil
  ) {
    (self.result, self.version, self.value, self.reason) = (result, version, value, reason)
    self.until = until
  }
}

/// Changes of copies. The process that carries the changes is a guest: `home.plist` has the guest's
/// address.
extension Channel {
  static var changeKind: String { "wormhole.change" }

  func putAtHome(
    _ value: Value, ifVersion expected: Int?, until: Date? = nil, _ refusal: WormholeError
  ) throws(WormholeError) -> Int {
    try throwing("put value into channel") {
      try changeAtHome(
        "put value into channel", refusal, ifVersion: expected, until: until, keepsTime: false
      ) { _, _ in (expected, value) }.version
    }
  }

  func clearAtHome(
    erasing: Bool, ifVersion expected: Int?, _ refusal: WormholeError
  ) throws(WormholeError) -> Int {
    try throwing("clear channel") {
      try changeAtHome("clear channel", refusal, ifVersion: expected) { value, version in
        guard !erasing else {
          throw WormholeError(
            .unsupported, "clear channel", name,
            because: "the channel is a copy, and only its home removes earlier content",
            hint: "clear the channel on its home machine")
        }
        return value == nil && (expected ?? version) == version ? nil : (expected, nil)
      }.version
    }
  }

  func updateAtHome(
    _ refusal: WormholeError, _ body: (inout Value?) throws -> UpdateDecision
  ) throws -> (value: Value?, version: Int) {
    try changeAtHome("update channel", refusal, ifVersion: nil) { value, version in
      // The body would take the absence of a readable copy for the absence of a value.
      guard let version else { return nil }
      var after = value
      guard try body(&after) == .commit, !isUnchanged(value, after) else { return nil }
      return (version, after)
    }
  }

  private func throwing<Result>(
    _ operation: String, _ body: () throws -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try body()
    } catch {
      throw WormholeError(error, operation, name, otherwise: .system)
    }
  }

  /// - Parameters:
  ///   - refusal: the error of the change on this machine, thrown again unless the channel is a
  ///     copy.
  ///   - given: when the new value expires.
  ///   - keepsTime: whether the new value expires when the present value would have.
  ///   - change: receives value and version, nil for the version of a damaged copy; returns the
  ///     change, nil for none. Called again with what the home has if that is newer, or if there is
  ///     nothing to change in a copy without a value.
  private func changeAtHome(
    _ operation: String, _ refusal: WormholeError, ifVersion expected: Int?,
    until given: Date? = nil, keepsTime: Bool = true,
    _ change: (Value?, Int?) throws -> (expected: Int?, value: Value?)?
  ) throws -> (value: Value?, version: Int) {
    guard refusal.code == .unreachable, try slot.get().home() != nil else { throw refusal }
    var (value, version, until) = try known()
    // A copy without a value may be damaged, or older than a value that this program has put: only
    // the home knows that there is nothing to change.
    var isSure = value != nil
    while true {
      let wanted = try change(value, version)
      if wanted == nil, isSure { return (value, version ?? 0) }
      let answer =
        if let wanted {
          try ask(operation, wanted.expected, wanted.value, until: keepsTime ? until : given)
        } else {
          try ask(operation, Self.noVersion, nil, until: nil)
        }
      switch answer.result {
      case .made: return (wanted?.value, answer.version)
      case .differs:
        (value, version, until) = (answer.value, answer.version, answer.until)
        isSure = true
      case .unreachable, .refused:
        throw WormholeError(
          answer.result == .refused ? .refused : .unreachable, operation, name,
          because: answer.reason ?? "the home of the channel gave no reason")
      }
      guard wanted == nil || expected == nil else {
        throw WormholeError(
          .conflict, operation, name,
          because:
            "version \(expected!) was expected, and the channel has version \(answer.version)",
          hint: "read the channel, and try again")
      }
    }
  }

  /// No channel has this version: asked to change it, a home makes no change, and answers with the
  /// present value.
  private static var noVersion: Int { -1 }

  /// What the copy has; without a version if it is damaged, as the home has the value.
  private func known() throws(WormholeError) -> (value: Value?, version: Int?, until: Date?) {
    do throws(WormholeError) {
      guard let snapshot = try latest else { return (nil, 0, nil) }
      let until = snapshot.value == nil ? nil : snapshot.metadata.expiresAt
      return (snapshot.value, snapshot.version, until)
    } catch {
      guard error.code == .damaged else { throw error }
      return (nil, nil, nil)
    }
  }

  /// Asks until there is an answer, always under the same ID: a carrier may end after the home has
  /// made the change.
  private func ask(
    _ operation: String, _ expected: Int?, _ value: Value?, until: Date?
  ) throws(WormholeError) -> HomeAnswer<Value> {
    let change = HomeChange(
      channel: name, operation: container.options.environment.randomName(), expected: expected,
      value: value, until: until)
    let deadline = OffPool.terms?.deadline ?? .now + container.options.timeout
    var wasAsked = false
    while true {
      guard let home = try slot.get().home() else {
        throw WormholeError(
          .conflict, operation, name, because: "its home was moved to this machine meanwhile",
          hint: "try again")
      }
      let left = deadline - .now
      if left > .zero, let carrier = home.carrier,
        try FoundMember.isPresent(carrier, in: container.storage, .guests)
      {
        do throws(WormholeError) {
          return try container.peer(guest: carrier).request(
            change, kind: Self.changeKind, within: left)
        } catch {
          // The carrier may have ended before its reply.
          guard error.code == .unreachable || error.code == .timedOut else { throw error }
          wasAsked = true
        }
      }
      guard wasAsked else { throw home.refusal(operation, name) }
      try OffPool.checkCancellation(operation, name)
      guard Instant.now < deadline else {
        throw WormholeError(
          .timedOut, operation, name,
          because: "\(home.reason), and has not answered in time; the change may have been made",
          hint: "read the channel before the change is repeated")
      }
      Thread.pause(min(deadline - .now, .milliseconds(20)))
    }
  }
}
