#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// What real processes do in every order that a schedule can give them.
  ///
  /// The last process checks the container once the others have ended, with the library as they.
  enum Scenario: String, CaseIterable {
    case updaters, takeover, mail, cancel

    var purpose: String {
      switch self {
      case .updaters: "two processes add to a number"
      case .takeover: "the same, and one is suspended for longer than its lease"
      case .mail: "a sender and a receiver, of two messages"
      case .cancel: "the same, and the sender cancels the first message"
      }
    }

    /// The processes, the one that checks included.
    var processes: Int {
      switch self {
      case .updaters, .takeover: 3
      case .mail, .cancel: 4
      }
    }

    /// The process that is killed, and its successor.
    var replacement: (of: Int, by: Int)? {
      switch self {
      case .updaters, .takeover: nil
      case .mail, .cancel: (0, 2)
      }
    }

    /// The time for which a process is suspended: longer than any lease here.
    static let suspension = Duration.seconds(3)

    static func options() -> Options {
      var options = Options()
      options.lease = .milliseconds(80)
      options.mailbox.attempts = 63
      options.mailbox.retryDelay = .milliseconds(10)
      return options
    }

    // MARK: The processes

    /// Plays the part of a process, in that process.
    func play(_ number: Int, in path: String) throws {
      if number == processes - 1 { return try check(path) }
      switch self {
      case .updaters, .takeover: try add(number, path)
      case .mail, .cancel:
        if number == 1 { try send(path) } else { try receive(path) }
      }
    }

    private func add(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: Self.options())
      let sum = container.channel("sum", of: Int.self)
      if number == 0 { try sum.put(0) }
      // The reading opens what the race needs.
      _ = try sum.value
      Turnstile.begin()
      Note.attempted.write(number)
      let after = try sum.updateVersionIfNeeded { value in
        value = (value ?? 0) + 1
        return .commit
      }
      Note.added.write(after.value ?? -1)
      Note.version.write(after.version)
      Self.kept = container
    }

    /// Stays open: the closing of files at the end of a process is no part of the race.
    // Set by the main thread of a player, or before the players are forked.
    nonisolated(unsafe) static var kept: SharedContainer?

    private func send(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: Self.options()).join(as: "a")
      let peer = member.peer("b")
      var options = SendOptions()
      options.wantsOutcome = self == .cancel
      Turnstile.begin()
      Note.attempted.write(1)
      let first = try peer.send(1, options)
      Note.sent.write(1)
      if self == .cancel {
        Note.cancelling.write(1)
        Note.cancelled.write(try first.cancel() == .cancelled ? 1 : 0)
      }
      Note.attempted.write(2)
      try peer.send(2, SendOptions())
      Note.sent.write(2)
      if self == .cancel, let end = first.waitForEnd(until: .now + .seconds(60)) {
        Note.outcome.write(end == .delivered ? 1 : end == .cancelled ? 0 : 2)
      }
      member.leave()
    }

    private func receive(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: Self.options())
      let member = try container.join(as: "b")
      let receiving = try Self.receive(as: member, beginning: true, for: .seconds(20))
      receiving.stop()
      member.leave()
    }

    /// Receives until the last message has been acknowledged, or the time is up.
    private static func receive(
      as member: Member, beginning begins: Bool, for time: Duration
    ) throws -> Subscription {
      if begins { Turnstile.begin() }
      let isOver = Monitor(false)
      let receiving = try member.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(number)
        Note.acknowledging.write(number)
        try message.acknowledge()
        Note.acknowledged.write(number)
        if number == 2 { isOver.signal { $0 = true } }
      }
      let _: Bool? = isOver.wait(until: .now + time) { $0 ? true : nil }
      return receiving
    }

    // MARK: The check

    private func check(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: Self.options())
      switch self {
      case .updaters, .takeover:
        let latest = try container.channel("sum", of: Int.self).latest
        Note.added.write(latest?.value ?? -1)
        Note.version.write(latest?.metadata.version ?? -1)
      case .mail, .cancel:
        let member = try container.join(as: "b")
        let receiving = try Self.receive(as: member, beginning: false, for: .seconds(5))
        receiving.stop()
        member.leave()
      }
      let findings = try container.storage.inspect() + container.inspectMail()
      for finding in findings where finding.severity == .problem {
        Note.problem.write(0)
        Turnstile.setText("doctor: \(finding)")
      }
    }
  }

  /// What a process notes for the check: a pair of numbers, the kind and the value.
  enum Note: Int {
    case attempted = 1
    case added, version, sent, received, redelivered, acknowledging, acknowledged, cancelling
    case cancelled, outcome, problem

    func write(_ value: Int) {
      Turnstile.note(rawValue)
      Turnstile.note(value)
    }
  }
#endif
