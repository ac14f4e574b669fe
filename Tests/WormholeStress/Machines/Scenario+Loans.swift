#if FAULT_POINTS
  import Wormhole
  import WormholeBridge
  import WormholeContainerStorage
  import WormholeSyscalls

  /// Jobs that a queue lends to a worker of another machine, which takes long for each job.
  ///
  /// If the bridge of the home is killed, the jobs are lent once more, while the first attempts
  /// continue. Once the worker's machine knows that the claims of these attempts have ended, the
  /// worker cannot acknowledge the jobs.
  extension Scenario {
    private static let jobs = "jobs"
    private static let numbers = 1...2
    private static let handlingTime = Duration.seconds(12)
    /// The time between the two jobs, so that a job can end while a later claim exists.
    private static let interval = Duration.seconds(6)
    /// The longest time until the worker's machine knows that claims have ended, in milliseconds.
    private static let noticeTime = 6_000

    // MARK: The processes

    func lend(_ number: Int, _ container: SharedContainer, _ path: String) throws {
      if number == MachinePart.here {
        try sendLent(container)
      } else {
        try workOnLent(container, path)
      }
    }

    private func sendLent(_ container: SharedContainer) throws {
      _ = try Bridge.addQueue(Self.jobs, of: container)
      let queue = try container.join(as: "al").queue(Self.jobs, of: Int.self)
      var options = SendOptions()
      options.wantsOutcome = true
      // The worker handles the job before the race, which opens everything that the race needs.
      _ = try queue.send(0, options)
      Turnstile.begin()
      let end = Self.programEnd
      Note.began.write(Self.milliseconds)
      var sent: [Sent] = []
      for number in Self.numbers {
        Note.attempted.write(number)
        sent.append(try queue.send(number, options))
        Note.sent.write(number)
        Self.pause(Self.interval)
      }
      for (number, one) in zip(Self.numbers, sent) {
        guard let status = one.waitForEnd(until: end) else { continue }
        Note.outcome.write(number * 2 + (status == .delivered ? 1 : 0))
      }
    }

    private func workOnLent(_ container: SharedContainer, _ path: String) throws {
      let ready = Self.programEnd
      try Self.wait(until: ready) {
        try container.storage.existingMember(Self.jobs, in: .queues)?.elsewhere != nil
      }
      let worker = try container.queue(Self.jobs, of: Int.self)
        .callers(concurrency: Self.numbers.count, handlingDeadline: nil)
      if let first = worker.next(until: ready) { try first.acknowledge() }
      Turnstile.begin()
      let end = Self.programEnd
      let threads = try Self.numbers.map { _ in
        try Thread("worker") { Self.handle(from: worker, until: end, path) }
      }
      for thread in threads { thread.join() }
    }

    /// Handles jobs until the sender has ended.
    private static func handle(from worker: QueueCallers, until end: Instant, _ path: String) {
      while Instant.now < end, !hasEnded(path, [MachinePart.here]) {
        guard let message = worker.next(until: .now + limited(.seconds(1))) else { continue }
        do {
          let job = try message.value(as: Int.self)
          (message.isRedelivered ? Note.redelivered : .received).write(job)
          pause(handlingTime)
          if try acknowledges(message) {
            Note.acknowledged.write(job)
            Note.ended.write(milliseconds)
          } else {
            Note.refused.write(job)
          }
        } catch {
          Turnstile.setText("\(error)")
        }
      }
    }

    // MARK: The promises

    func brokenLoans(_ notes: [[Pair]]) -> String? {
      let (own, work) = (notes[MachinePart.here], notes[MachinePart.there])
      let outcomes = values(.outcome, in: own)
      let done = Array(zip(values(.acknowledged, in: work), values(.ended, in: work)))
      for number in Self.numbers {
        if values(.received, in: work).count(where: { $0 == number }) > 1 {
          return "unmarked: job \(number) is delivered again"
        }
        guard !Turnstile.wasKilled(MachinePart.there) else { continue }
        let times = done.filter { $0.0 == number }.map(\.1)
        if outcomes.contains(number * 2 + 1), times.isEmpty {
          return "lost: job \(number) counts as handled, and the worker was refused"
        }
        guard times.count > 1, let begin = values(.began, in: own).first else { continue }
        if times[0] - begin > Self.lastMove + Self.noticeTime {
          return "twice: job \(number) was acknowledged at \(times)"
        }
      }
      let isKilled = MachinePart.programs.contains { Turnstile.wasKilled($0) }
      if !isKilled, outcomes != Self.numbers.map({ $0 * 2 + 1 }) {
        return "blocked: the outcomes \(outcomes)"
      }
      return nil
    }

    /// The milliseconds from the begin of the race until the last move of the schedule.
    private static var lastMove: Int {
      let steps = 0..<Turnstile.stepCount
      guard let last = steps.last(where: { Turnstile.step(at: $0).isMove }) else { return 0 }
      let time = Turnstile.step(at: last).clock - Turnstile.step(at: 0).clock
      return Int(time / 1_000_000)
    }
  }
#endif
