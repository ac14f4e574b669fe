#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A member sends to a member of another machine, and the bridges of both machines carry.
  ///
  /// Two containers stand for the machines. Each bridge has a successor.
  extension Scenario {
    enum CarryPart { static let (receiver, sender) = (2, 3) }

    /// Whether the processes are those above, and the four bridges.
    var isCarried: Bool { [.carry, .guest, .file].contains(self) }

    /// The numbers of the messages in the race; in `carry` the last one is cancelled, and in `file`
    /// the first one has a file.
    private static let carried = 1...2

    // MARK: The processes

    func carry(_ number: Int, _ path: String) throws {
      switch number {
      case CarryPart.sender: try sendAcross(path)
      case CarryPart.receiver: try receiveAcross(path)
      default:
        try carry(
          for: number % 4 == 0 ? .here : .there, in: path, generation: number < 2 ? 1 : 2)
      }
    }

    private func carry(
      for machine: ScheduledBridge.Machine, in path: String, generation: Int
    ) throws {
      Self.makeFolder(path)
      let bridge = try ScheduledBridge(
        machine, in: path, options(), generation: generation, watches: true)
      if machine.folder == ScheduledBridge.Machine.here.folder { try bridge.standIn(for: "bob") }
      // The bridge carries the first message and its outcome before the race, while this thread
      // waits.
      let end = Instant.now + Self.limited(.seconds(25))
      let carrying = try Thread("bridge") { bridge.carry(until: end) }
      Turnstile.begin()
      carrying.join()
      Turnstile.finish()
      bridge.stop()
    }

    private static func makeFolder(_ path: String) {
      _ = try? Descriptor.makeDirectory(path: path, mode: 0o700)
    }

    private func sendAcross(_ path: String) throws {
      Self.makeFolder(path)
      if self == .file { try Self.write(1, Self.sentFile(in: path)) }
      let machine = ScheduledBridge.Machine.here
      let container = try SharedContainer(
        directory: "\(path)/\(machine.folder)", options: options())
      let peer: Peer
      let leave: () -> Void
      if self == .guest {
        let guest = try container.guest()
        peer = guest.peer("bob")
        leave = { guest.leave() }
      } else {
        let member = try container.join(as: "al")
        peer = member.peer("bob")
        leave = { member.leave() }
      }
      var options = SendOptions()
      options.wantsOutcome = true
      let before = try peer.send(0, options)
      _ = before.waitForEnd(until: .now + Self.limited(.seconds(4)))
      Self.pause(.seconds(1))
      Turnstile.begin()
      var sent: [Sent] = []
      for number in Self.carried {
        Note.attempted.write(number)
        sent.append(try send(number, to: peer, options, in: path))
        Note.sent.write(number)
      }
      if self == .carry { try Self.cancelLast(of: sent) }
      for (number, one) in zip(Self.carried, sent) {
        guard let end = one.waitForEnd(until: .now + Self.limited(.seconds(12))) else { continue }
        Note.outcome.write(Self.code(number, end))
      }
      Turnstile.finish()
      leave()
    }

    private static func sentFile(in path: String) -> String { "\(path)/sent" }

    private func send(
      _ number: Int, to peer: Peer, _ options: SendOptions, in path: String
    ) throws -> Sent {
      guard self == .file, number == Self.carried.lowerBound else {
        return try peer.send(number, options)
      }
      return try peer.send(file: Self.sentFile(in: path), metadata: number, options)
    }

    private static func cancelLast(of sent: [Sent]) throws {
      // The bridge claims and publishes both, in the order without a preemption.
      pause(.microseconds(20))
      Note.cancelling.write(carried.upperBound)
      let cancellation = try sent.last?.cancel()
      Note.cancelled.write(cancellation == .cancelled ? 1 : cancellation == .requested ? 2 : 0)
    }

    private func receiveAcross(_ path: String) throws {
      Self.makeFolder(path)
      let folder = "\(path)/\(ScheduledBridge.Machine.there.folder)"
      var settings = self.options()
      // Each outcome takes more.
      if self == .guest { settings.mailbox.maximumReceiptBytes = 1 }
      let member = try SharedContainer(directory: folder, options: settings).join(as: "bob")
      let receiving = try Self.receive(
        as: member, beginning: true, for: Self.limited(.seconds(15)), last: Self.carried.upperBound
      ) {
        // A process that opens the container removes the guests without a process.
        if self == .guest { _ = try SharedContainer(directory: folder, options: self.options()) }
      }
      receiving.stop()
      Turnstile.finish()
      member.leave()
    }

    private static func code(_ number: Int, _ end: Outcome.Status) -> Int {
      number * 4 + (end == .delivered ? 1 : end == .cancelled ? 0 : 2)
    }

    // MARK: The check

    /// Carries and receives what is left.
    func checkCarried(_ path: String) throws {
      let machines = [ScheduledBridge.Machine.here, .there]
      let bridges = try machines.map {
        try ScheduledBridge($0, in: path, options(), generation: 3, watches: false)
      }
      func settle() throws {
        for _ in 0..<10 {
          var isSettled = true
          for bridge in bridges where try !bridge.carryOnce() { isSettled = false }
          if isSettled { return }
        }
        Note.problem.write(1)
      }
      let time = Turnstile.isScheduled ? Duration.seconds(2) : .milliseconds(50)
      try settle()
      let bob = try bridges[1].container.join(as: "bob")
      try Self.receive(as: bob, beginning: false, for: time, last: Self.carried.upperBound).stop()
      bob.leave()
      try settle()
      if self != .guest {
        let al = try bridges[0].container.join(as: "al")
        let outcomes = try al.watchOutcomes { outcome in
          guard let number = try? outcome.value(as: Int.self) else { return }
          Note.told.write(Self.code(number, outcome.status))
        }
        Self.pause(time)
        outcomes.stop()
        al.leave()
        try settle()
      }
      for file in Self.leftFiles(path) { Turnstile.setText("left: \(file)") }
      let hasKills = (0..<processes).contains { Turnstile.wasKilled($0) }
      for bridge in bridges {
        let found = try bridge.container.storage.inspect() + bridge.container.inspectMail()
        for finding in found where finding.severity == .problem {
          // The next change removes it.
          if hasKills, finding.what == "left by an ended process" { continue }
          Turnstile.setText("doctor: \(finding)")
        }
      }
      Turnstile.finish()
      for bridge in bridges { bridge.stop() }
    }

    /// The files of bridges and members that should be gone once everything is settled.
    private static func leftFiles(_ path: String) -> [String] {
      let (here, there) = (ScheduledBridge.Machine.here, ScheduledBridge.Machine.there)
      var folders = [
        "here/members/bob/inbox", "here/members/bob/claimed", "here/members/al/receipts",
        "there/members/bob/inbox", "there/members/bob/claimed", "there/members/al/receipts",
        "here/members/bob/files", "there/members/bob/files",
      ]
      for machine in [here, there] {
        folders += ["out", "in"].map { "\(machine.folder)/bridge/\($0)/\(machine.other.name)" }
      }
      return folders.flatMap { folder -> [String] in
        let names = try? ServerFiles.names(in: "\(path)/\(folder)")
        return (names ?? []).filter { !["flow.plist", "cursor.plist", "room"].contains($0) }
          .map { "\(folder)/\($0)" }
      }
    }

    // MARK: The promises

    private var hasRefusedReceipt: Bool {
      Turnstile.failedSteps.contains { $0.path.split(separator: "/").contains("receipts") }
    }

    func brokenCarrying(_ notes: [[Pair]]) -> String? {
      let last = Self.carried.upperBound
      let own = notes[CarryPart.sender]
      let received = notes[CarryPart.receiver] + notes[processes - 1]
      let (attempted, sent) = (values(.attempted, in: own), values(.sent, in: own))
      let (isSenderKilled, isReceiverKilled) = (
        Turnstile.wasKilled(CarryPart.sender), Turnstile.wasKilled(CarryPart.receiver)
      )
      if count(.problem, notes) > 0 { return "restless: bridges carry without end" }
      var (seen, done, latest) = (Set<Int>(), Set<Int>(), 0)
      for (note, value) in received {
        switch note {
        case .received, .redelivered:
          guard value == 0 || attempted.contains(value) else { return "invented: message \(value)" }
          let isAgain = !seen.insert(value).inserted
          if done.contains(value) || isAgain && !isReceiverKilled {
            return "twice: message \(value)"
          }
          // A receiver that is killed may have claimed a message that no handler had.
          if (note == .redelivered) != isAgain, isAgain || !isReceiverKilled {
            return "unmarked: message \(value)"
          }
          if value < latest { return "order: message \(value) after message \(latest)" }
          latest = value
        case .acknowledged: done.insert(value)
        default: break
        }
      }
      let outcomes = values(.outcome, in: own) + values(.told, in: notes[processes - 1])
      let cancellation = values(.cancelled, in: own).first
      let isCancelled = cancellation == 1 || outcomes.contains(last * 4)
      if isCancelled, seen.contains(last) { return "cancelled: message \(last) is delivered" }
      // A process that dies in a call may have made its change.
      var unsure: Set<Int> = isCancelled ? [last] : []
      if isReceiverKilled { unsure.formUnion(values(.acknowledging, in: received)) }
      if isSenderKilled, !values(.cancelling, in: own).isEmpty { unsure.insert(last) }
      let wanted = Set(sent).subtracting(unsure)
      if !wanted.isSubset(of: done) { return "lost: of \(wanted.sorted()), \(done.sorted())" }
      // A guest is not notified of an outcome after its end.
      guard !isSenderKilled, self != .guest || !isReceiverKilled else { return nil }
      for number in sent {
        var ends = outcomes.filter { $0 / 4 == number }
        // A receipt that cannot be removed is reported again.
        if hasRefusedReceipt, ends.count > 1 { ends = Array(Set(ends)) }
        // Its receiver may have died before it stored the outcome, and the message came again.
        let isDelivered = done.contains(number) || isReceiverKilled && seen.contains(number)
        guard ends == [number * 4 + (isDelivered ? 1 : 0)] else {
          return "outcome: \(ends) of message \(number), received is \(isDelivered)"
        }
        // A sender whose next send has failed waits for no outcome.
        guard Turnstile.text(of: CarryPart.sender).isEmpty else { continue }
        if !isReceiverKilled, !values(.outcome, in: own).contains(ends[0]) {
          return "blocked: message \(number) had no outcome within its time"
        }
      }
      return nil
    }
  }
#endif
