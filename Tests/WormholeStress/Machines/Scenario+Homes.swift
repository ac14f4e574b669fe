#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Workers of a queue on two machines, and its home moves from one to the other.
  extension Scenario {
    private static let jobs = "jobs"
    /// The numbers in the race, and the first one after the command to move the home.
    private static let (numbers, later) = (1...4, 3)

    // MARK: The processes

    func useQueue(_ number: Int, _ container: SharedContainer, _ path: String) throws {
      let end = Self.programEnd
      if number == MachinePart.here { return try sendJobs(container, path, until: end) }
      try Self.wait(until: end) {
        try container.storage.existingMember(Self.jobs, in: .queues)?.elsewhere != nil
      }
      let worker = try container.queue(Self.jobs, of: Int.self).callers(handlingDeadline: nil)
      try Self.handle(from: worker, until: end, last: 0) { false }
      Turnstile.begin()
      try Self.handle(from: worker, until: end) { Self.hasEnded(path, [MachinePart.here]) }
    }

    /// Sends jobs, orders the move, and works on the queue.
    private func sendJobs(
      _ container: SharedContainer, _ path: String, until end: Instant
    ) throws {
      _ = try Bridge.addQueue(Self.jobs, of: container)
      let queue = try container.join(as: "al").queue(Self.jobs, of: Int.self)
      let other = try BridgeStatus.identity(of: Self.container(1, path, options())).machine
      var options = SendOptions()
      options.wantsOutcome = true
      _ = try queue.send(0, options)
      Turnstile.begin()
      var sent: [(number: Int, sent: Sent)] = []
      for number in Self.numbers {
        if number == Self.later {
          Note.partly.write(0)
          try Bridge.moveQueue(Self.jobs, to: other, of: container)
          Note.moved.write(0)
        }
        Note.attempted.write(number)
        sent.append((number, try queue.send(number, options)))
        Note.sent.write(number)
      }
      let isOver = Monitor(false)
      let working = try Thread("worker") { Self.workHere(container, until: end, isOver) }
      for (number, one) in sent {
        guard let status = one.waitForEnd(until: end) else { continue }
        Note.outcome.write(number * 2 + (status == .delivered ? 1 : 0))
      }
      // The bridge of this machine has noticed the new home.
      try Self.wait(until: end) { try Self.elsewhere(container) != nil }
      isOver.signal { $0 = true }
      working.join()
    }

    private static func workHere(
      _ container: SharedContainer, until end: Instant, _ isOver: Monitor<Bool>
    ) {
      do {
        let worker = try container.queue(jobs, of: Int.self).callers(handlingDeadline: nil)
        try handle(from: worker, until: end) { isOver.withLock { $0 } }
      } catch {
        Turnstile.setText("\(error)")
      }
    }

    private static func elsewhere(_ container: SharedContainer) throws -> String? {
      try container.storage.existingMember(jobs, in: .queues)?.elsewhere?.machine
    }

    /// Handles jobs, each for a second, until the last one, or for a time after the race is over.
    private static func handle(
      from worker: QueueCallers, until end: Instant, last: Int? = nil, _ isOver: () -> Bool
    ) throws {
      var silence = 0
      while Instant.now < end, silence < 3 {
        guard let message = worker.next(until: .now + limited(.seconds(1))) else {
          silence = isOver() ? silence + 1 : 0
          continue
        }
        let job = try message.value(as: Int.self)
        (message.isRedelivered ? Note.redelivered : .received).write(job)
        pause(.seconds(1))
        Note.acknowledging.write(job)
        if try Self.acknowledges(message) {
          Note.acknowledged.write(job)
        } else {
          Note.refused.write(job)
        }
        if job == last { return }
      }
    }

    static func acknowledges(_ message: Message) throws -> Bool {
      do {
        try message.acknowledge()
        return true
      } catch let error where error.code == .superseded {
        return false
      }
    }

    // MARK: The check

    func checkHomes(_ path: String) throws {
      let containers = try [0, 1].map { try Self.container($0, path, options()) }
      for (machine, container) in containers.enumerated() {
        let list = "\(path)/\(MachinePart.folders[machine])/bridge/queues/\(Self.jobs).plist"
        let isNamed = (try? Descriptor.status(ofPath: list)) != nil
        if isNamed, try Self.elsewhere(container) == nil { Note.place.write(machine) }
        let waiting = try container.queue(Self.jobs, of: Int.self).messages.count
        for _ in 0..<waiting { Note.late.write(machine) }
      }
      for file in Self.leftRecords(in: path) { Turnstile.setText("left: \(file)") }
      try Self.noteProblems(containers)
      Turnstile.finish()
    }

    // MARK: The promises

    func brokenHomes(_ notes: [[Pair]]) -> String? {
      let (own, end) = (notes[MachinePart.here], notes[processes - 1])
      let race = MachinePart.programs.flatMap { notes[$0] }
      let (attempted, sent) = (values(.attempted, in: own), values(.sent, in: own))
      let done = values(.acknowledged, in: race)
      let homes = values(.place, in: end)
      let isOrdered = count(.moved, notes) > 0
      let isPossible = count(.partly, notes) > 0
      guard homes == [1] && isPossible || homes == [0] && !isOrdered else {
        return "homes: the machines \(homes), and a move was ordered: \(isOrdered)"
      }
      for number in [0] + Array(Self.numbers) {
        let first = values(.received, in: race).count { $0 == number }
        let again = values(.redelivered, in: race).count { $0 == number }
        if first + again > 0, number > 0, !attempted.contains(number) {
          return "invented: job \(number)"
        }
        if first > 1 { return "unmarked: job \(number) is delivered again" }
        if !isDisturbed, again > 0 || done.count(where: { $0 == number }) > 1 {
          return "twice: job \(number)"
        }
      }
      // A process that dies in the call may have acknowledged the job.
      var unsure: Set<Int> = []
      for number in MachinePart.programs where Turnstile.wasKilled(number) {
        unsure.formUnion(values(.acknowledging, in: notes[number]))
      }
      let lost = Set(sent).subtracting(unsure).subtracting(done)
      let waiting = values(.late, in: end).count
      if lost.count > waiting { return "lost: the jobs \(lost.sorted()), and \(waiting) wait" }
      guard !Turnstile.wasKilled(MachinePart.here) else { return nil }
      let outcomes = values(.outcome, in: own)
      guard outcomes == Self.numbers.map({ $0 * 2 + 1 }), waiting == 0 else {
        return "blocked: \(outcomes) of the jobs \(sent), and \(waiting) wait"
      }
      return nil
    }
  }
#endif
