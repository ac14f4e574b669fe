#if FAULT_POINTS
  import Wormhole
  import WormholeContainerStorage
  import WormholeSyscalls

  /// A queue with two workers.
  extension Scenario {
    /// Shorter than a suspension.
    private static let handlingDeadline = Duration.milliseconds(100)
    private static let jobs = 1...1

    func sendJobs(_ path: String) throws {
      let container = try SharedContainer(directory: path, options: options())
      let queue = container.queue("jobs", of: Int.self)
      try queue.send(0)
      Turnstile.begin()
      for job in Self.jobs {
        Note.attempted.write(job)
        try queue.send(job)
        Note.sent.write(job)
      }
      Turnstile.finish()
    }

    /// Handles jobs until the time is up.
    ///
    /// The first job is sent and handled before the race.
    func work(_ path: String, for time: Duration) throws {
      let container = try SharedContainer(directory: path, options: options())
      let worker = try container.queue("jobs", of: Int.self)
        .callers(handlingDeadline: Self.handlingDeadline)
      try handle(from: worker, until: .now + Self.limited(.seconds(1)))
      Turnstile.begin()
      try handle(from: worker, until: .now + Self.limited(time))
      Turnstile.finish()
      worker.stop()
    }

    private func handle(from worker: QueueCallers, until deadline: Instant) throws {
      while let message = worker.next(until: deadline) {
        let job = try message.value(as: Int.self)
        Note.began.write(Self.milliseconds)
        (message.isRedelivered ? Note.redelivered : .received).write(job)
        Note.acknowledging.write(job)
        do {
          try message.acknowledge()
          Note.acknowledged.write(job)
        } catch let error where error.code == .superseded {
          Note.refused.write(job)
        }
        Note.ended.write(Self.milliseconds)
      }
    }

    static var milliseconds: Int { Int(Instant.now.nanoseconds / 1_000_000) }

    func brokenQueue(_ notes: [[Pair]]) -> String? {
      let deadline = Int(Self.handlingDeadline / .milliseconds(1))
      var attempts: [Int: [(begin: Int, end: Int, isMarked: Bool)]] = [:]
      for number in 1...3 {
        var begin = 0
        var current: (job: Int, isMarked: Bool)?
        func add(until end: Int) {
          guard let (job, isMarked) = current else { return }
          attempts[job, default: []].append((begin, end, isMarked))
          current = nil
        }
        for (note, value) in notes[number] {
          switch note {
          case .began: begin = value
          case .received: current = (value, false)
          case .redelivered: current = (value, true)
          case .ended: add(until: value)
          default: break
          }
        }
        // The process was killed, and another one may have the job at once.
        add(until: begin)
      }
      let attempted = Set(values(.attempted, in: notes[0]))
      for (job, all) in attempts {
        guard job == 0 || attempted.contains(job) else { return "invented: job \(job)" }
        let all = all.sorted { $0.begin < $1.begin }
        if all.count(where: { !$0.isMarked }) > 1 { return "unmarked: job \(job) again" }
        for (one, next) in zip(all, all.dropFirst())
        where next.begin < one.end && next.begin < one.begin + deadline {
          return "together: job \(job) at \(next.begin), and another worker had it at \(one.begin)"
        }
      }
      return brokenEnd(of: Self.jobs, notes)
    }

    /// Each job is acknowledged once.
    func brokenEnd(of jobs: some Sequence<Int>, _ notes: [[Pair]]) -> String? {
      let done = notes.joined().filter { $0.note == .acknowledged }.map(\.value)
      for job in jobs where done.count(where: { $0 == job }) > 1 {
        return "twice: job \(job) was acknowledged by two workers"
      }
      // A process that dies in the call may have acknowledged the job.
      var unsure: Set<Int> = []
      for (number, notes) in notes.enumerated() where Turnstile.wasKilled(number) {
        unsure.formUnion(values(.acknowledging, in: notes))
      }
      let wanted = Set(values(.sent, in: notes[0])).subtracting(unsure)
      return wanted.isSubset(of: done) ? nil : "lost: of \(wanted.sorted()), \(done.sorted())"
    }
  }
#endif
