#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A queue with ordering keys and two workers.
  extension Scenario {
    /// Shorter than a suspension.
    private static let handlingDeadline = Duration.milliseconds(100)
    /// The longest time in which another worker returns a late claim and begins with its job.
    private static let longestClaim = Duration.milliseconds(1500)
    /// The jobs of one key, in order, and the job of another key.
    private static let (line, other) = ([1, 2], 3)

    // MARK: The processes

    func sendKeyedJobs(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let queue = container.queue("jobs", of: Int.self)
      try queue.send(0)
      Turnstile.begin()
      for (key, jobs) in [("line", Self.line), ("other", [Self.other])] {
        for job in jobs { Note.attempted.write(job) }
        try queue.send(contentsOf: jobs, SendOptions(orderingKey: key))
        for job in jobs { Note.sent.write(job) }
      }
      Turnstile.finish()
    }

    /// Handles jobs until the time is up.
    ///
    /// The first job is sent and handled before the race, and has no key.
    func workInOrder(_ number: Int, _ path: String, for time: Duration) throws {
      let container = try SharedContainer(directory: path, options: options())
      let worker = try container.queue("jobs", of: Int.self)
        .callers(handlingDeadline: Self.handlingDeadline)
      try handleInOrder(number, from: worker, until: .now + Self.limited(.seconds(1)))
      Turnstile.begin()
      try handleInOrder(number, from: worker, until: .now + Self.limited(time))
      Turnstile.finish()
      worker.stop()
    }

    /// Acknowledges all jobs but the first one of the line, which the two workers refuse.
    private func handleInOrder(
      _ number: Int, from worker: QueueCallers, until deadline: Instant
    ) throws {
      var refuses = number < processes - 1
      while let message = worker.next(until: deadline) {
        let job = try message.value(as: Int.self)
        let isRefused = refuses && Self.line.contains(job)
        if isRefused { refuses = false }
        Note.began.write(Self.microseconds)
        (message.isRedelivered ? Note.redelivered : .received).write(job)
        // While the job is handled, the other worker lists the jobs; a single preemption before the
        // look at the claims then lets this worker return its job.
        Self.pause(isRefused ? .microseconds(15) : .milliseconds(5))
        Note.ended.write(Self.microseconds)
        try settle(message, job, number, isRefused: isRefused)
        // The other worker has time to look at the key again, and claims the job.
        if isRefused { Self.pause(.milliseconds(30)) }
      }
    }

    /// Ends the attempt, if the claim is still this worker's.
    private func settle(
      _ message: Message, _ job: Int, _ number: Int, isRefused: Bool
    ) throws(WormholeError) {
      do throws(WormholeError) {
        if isRefused { try refuse(message, job, number) } else { try accept(message, job) }
      } catch {
        guard error.code == .superseded else { throw error }
        Note.refused.write(job)
      }
    }

    private func accept(_ message: Message, _ job: Int) throws(WormholeError) {
      Note.acknowledging.write(job)
      try message.acknowledge()
      Note.acknowledged.write(job)
    }

    /// Returns the job, or reports a failure; throws if the claim belongs to another worker.
    private func refuse(_ message: Message, _ job: Int, _ number: Int) throws(WormholeError) {
      if number == 1 {
        Note.returned.write(job)
        try message.unclaim()
      } else {
        try message.renew()
        try message.fail("refused")
      }
    }

    private static var microseconds: Int { Int(Instant.now.nanoseconds / 1000) }

    // MARK: The promises

    func brokenKeys(_ notes: [[Pair]]) -> String? {
      let attempts = notes.dropFirst().flatMap { Self.attempts(in: $0) }.sorted {
        $0.begin < $1.begin
      }
      return unlookedClaim() ?? brokenLine(attempts) ?? brokenClaims(attempts, notes)
        ?? brokenEnd(of: Self.line + [Self.other], notes)
    }

    private struct Attempt {
      let job: Int
      /// In microseconds: a step takes at least one.
      let begin: Int
      var end: Int
      let isMarked: Bool
      /// Whether the claim was another worker's at the end.
      var isLate = false
    }

    /// A killed process ends its last attempt at once.
    private static func attempts(in notes: [Pair]) -> [Attempt] {
      var (all, begin): ([Attempt], Int) = ([], 0)
      for (note, value) in notes {
        switch note {
        case .began: begin = value
        case .received, .redelivered:
          all.append(
            Attempt(job: value, begin: begin, end: begin, isMarked: note == .redelivered))
        case .ended: all[all.count - 1].end = value
        case .refused: all[all.count - 1].isLate = true
        default: break
        }
      }
      return all.filter { $0.job > 0 }
    }

    /// No attempt with an earlier job of the line begins after an attempt with a later one.
    ///
    /// A suspended worker may begin with a job that is another worker's by then.
    private func brokenLine(_ attempts: [Attempt]) -> String? {
      let line = attempts.filter { Self.line.contains($0.job) && !$0.isLate }
      for (one, next) in zip(line, line.dropFirst()) {
        if next.job < one.job { return "order: job \(next.job) begins after job \(one.job)" }
        if next.job > one.job, Self.areTogether(one, next) {
          return "order: job \(next.job) begins while a worker has job \(one.job)"
        }
      }
      return nil
    }

    /// Whether the second attempt begins during the first one, within the handling deadline.
    private static func areTogether(_ one: Attempt, _ next: Attempt) -> Bool {
      // The claim is older than the attempt, by the steps between.
      let deadline = Int(handlingDeadline / .microseconds(1)) - 2000
      return next.begin < one.end && next.begin < one.begin + deadline
    }

    private func brokenClaims(_ attempts: [Attempt], _ notes: [[Pair]]) -> String? {
      let attempted = Set(values(.attempted, in: notes[0]))
      for (job, all) in Dictionary(grouping: attempts, by: \.job) {
        guard attempted.contains(job) else { return "invented: job \(job)" }
        let returns = notes.joined().count { $0.note == .returned && $0.value == job }
        if all.count(where: { !$0.isMarked }) > 1 + returns {
          return "unmarked: job \(job) again"
        }
        for (one, next) in zip(all, all.dropFirst()) where Self.areTogether(one, next) {
          return "together: job \(job) at \(next.begin), and another worker had it at \(one.begin)"
        }
        let longest = Int(Self.longestClaim / .microseconds(1))
        for one in all where one.end - one.begin > longest {
          guard all.contains(where: { $0.begin > one.begin && $0.begin < one.end }) else {
            return "held: no worker has ended the late claim of job \(job)"
          }
        }
      }
      return nil
    }

    /// Before it claims a job with a key, a worker looks at the claims of all workers.
    ///
    /// Only a worker that has looked before the claim of another one can claim in vain then, and
    /// only once; a claim in vain that is interrupted counts as an attempt.
    private func unlookedClaim() -> String? {
      // The players whose latest listing was one of the claims of a worker.
      var looked: Set<Int> = []
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        guard choice.player >= 0 else { continue }
        switch choice.doing {
        case .call(.getdents):
          let parts = Self.path(at: number)
          let isLook = parts.count > 2 && parts[parts.count - 3] == "workers"
          if isLook { looked.insert(choice.player) } else { looked.remove(choice.player) }
        case .end: looked.remove(choice.player)
        // A renewal of a claim stays in its directory.
        case .call(.rename) where choice.folder != choice.otherFolder:
          if Self.isKeyedClaim(Self.path(at: number)), !looked.contains(choice.player) {
            return "unlooked: a job is claimed without a look at the claims of other workers"
          }
        default: break
        }
      }
      return nil
    }

    /// The path of a step, which costs more than all the rest of the step.
    private static func path(at number: Int) -> [Substring] {
      Turnstile.step(at: number).path.split(separator: "/")
    }

    /// The beginning of a long path is missing.
    private static func isKeyedClaim(_ parts: [Substring]) -> Bool {
      guard parts.count > 3, parts[parts.count - 4] == "workers" else { return false }
      return ClaimedName(String(parts[parts.count - 1]))?.name.key != nil
    }
  }
#endif
