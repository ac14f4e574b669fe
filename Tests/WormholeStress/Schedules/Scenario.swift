#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// What real processes do in every order that a schedule can give them.
  ///
  /// The last process checks the container once the others have ended, with the library as they.
  enum Scenario: String, CaseIterable {
    case updaters, power, mail, takeover, cancel

    var purpose: String {
      switch self {
      case .updaters: "two processes add to a number"
      case .takeover: "two processes add to a number, one is suspended"
      case .power: "two processes add to a number for good"
      case .mail: "a sender and a receiver, of two messages"
      case .cancel: "a sender and a receiver, and a cancelled message"
      }
    }

    /// The processes, the one that checks included.
    var processes: Int {
      switch self {
      case .updaters, .takeover, .power: 3
      case .mail, .cancel: 4
      }
    }

    /// The process that is killed, and its successor.
    var replacement: (of: Int, by: Int)? {
      switch self {
      case .updaters, .takeover, .power: nil
      case .mail, .cancel: (0, 2)
      }
    }

    /// The time for which a process is suspended: longer than any lease here.
    static let suspension = Duration.seconds(3)

    private func options() -> Options {
      var options = Options()
      if self == .power { options.durability = .power }
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
      case .updaters, .takeover, .power: try add(number, path)
      case .mail, .cancel:
        if number == 1 { try send(path) } else { try receive(path) }
      }
    }

    private func add(_ number: Int, _ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
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
      // The closing of files at the end of a process is no part of the race.
      Turnstile.finish()
    }

    /// Sends a message before the race, which opens what the race needs, and two in the race.
    private func send(_ path: String) throws {
      let member = try SharedContainer(directory: path, options: options()).join(as: "a")
      let peer = member.peer("b")
      var options = SendOptions()
      options.wantsOutcome = self == .cancel
      Note.attempted.write(0)
      try peer.send(0, SendOptions())
      Note.sent.write(0)
      // Until each thread waits: the clock is the schedule's.
      if Turnstile.isScheduled { Self.wait(for: .seconds(1)) }
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
      Turnstile.finish()
      member.leave()
    }

    private static func wait(for time: Duration) {
      let _: Void? = Monitor(0).wait(until: .now + time) { _ in nil }
    }

    private func receive(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let member = try container.join(as: "b")
      let receiving = try Self.receive(as: member, beginning: true, for: .seconds(20))
      receiving.stop()
      Turnstile.finish()
      member.leave()
    }

    /// Receives until the last message has been acknowledged, or the time is up.
    private static func receive(
      as member: Member, beginning begins: Bool, for time: Duration
    ) throws -> Subscription {
      let isOver = Monitor(false)
      let receiving = try member.receive(acknowledging: .explicit) { message in
        let number = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(number)
        Note.acknowledging.write(number)
        try message.acknowledge()
        Note.acknowledged.write(number)
        if number == 2 { isOver.signal { $0 = true } }
      }
      if begins { Turnstile.begin() }
      let _: Bool? = isOver.wait(until: .now + time) { $0 ? true : nil }
      return receiving
    }

    // MARK: The check

    private func check(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      var member: Member?
      switch self {
      case .updaters, .takeover, .power:
        let latest = try container.channel("sum", of: Int.self).latest
        Note.added.write(latest?.value ?? -1)
        Note.version.write(latest?.metadata.version ?? -1)
      case .mail, .cancel:
        let receiver = try container.join(as: "b")
        let time = Turnstile.isScheduled ? Duration.seconds(5) : .zero
        try Self.receive(as: receiver, beginning: false, for: time).stop()
        member = receiver
      }
      let findings = try container.storage.inspect() + container.inspectMail()
      let hasKills = (0..<processes).contains { Turnstile.wasKilled($0) }
      for finding in findings where finding.severity == .problem {
        // The next change removes it.
        if hasKills, finding.what == "left by an ended process" { continue }
        Note.problem.write(0)
        Turnstile.setText("doctor: \(finding)")
      }
      Turnstile.finish()
      member?.leave()
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
