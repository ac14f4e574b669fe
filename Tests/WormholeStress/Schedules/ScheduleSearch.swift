#if FAULT_POINTS
  import WormholeSyscalls

  /// A search for an order that breaks a promise: every order with few preemptions, and orders
  /// that a seed draws.
  struct ScheduleSearch {
    struct Found {
      let schedule: Schedule
      let violation: String
    }

    /// What happens to processes, beside preemptions.
    struct Harm: OptionSet {
      let rawValue: Int
      static let kills = Harm(rawValue: 1)
      static let suspensions = Harm(rawValue: 2)
      static let failures = Harm(rawValue: 4)
      static let losses = Harm(rawValue: 8)
    }

    private struct Pending {
      let entries: [Schedule.Entry]
      let preemptions: Int
      let harms: Int
    }

    let rounds: ScheduledRounds
    /// The number of this search, and the count of all searches.
    let share: (number: Int, count: Int)
    /// The end of the search.
    var deadline: Instant
    /// Whether every order in the bounds was run.
    private(set) var isComplete = false
    private(set) var footprint: Footprint
    /// The keys of the orders that were left out, with the threads that were not preempted.
    private(set) var relied: [UInt64: UInt32] = [:]
    /// The footprints of all searches at the latest exchange.
    private var exchanged: [UInt64: UInt32] = [:]
    /// The orders that were left out, by key.
    private var leftOut: [UInt64: [Int: LeftOut]] = [:]
    private var leftOutCount = 0

    private struct LeftOut {
      let pending: Pending
      let player: Int
    }

    init(_ rounds: ScheduledRounds, share: (number: Int, count: Int), until deadline: Instant) {
      self.rounds = rounds
      self.share = share
      footprint = Footprint(processes: rounds.scenario.processes)
      self.deadline = deadline
    }

    private var isOver: Bool { Instant.now >= deadline || rounds.isStopped }

    /// Runs every order with at most so many preemptions, the orders with fewer of them first, and
    /// at most one harm in each, which counts as a preemption.
    ///
    /// A preemption lets another thread continue where the same thread could. Where a thread waits
    /// or ends, and several threads can continue, another choice than the usual thread counts as a
    /// preemption. No thread is preempted before a call that no other process notices: a preemption
    /// before the next call gives the same order. ``Footprint`` finds further calls of this kind.
    mutating func everyOrder(
      _ limit: Int, seed: UInt64, _ harm: Harm = []
    ) throws -> Found? {
      var queues = [[Pending]](repeating: [], count: limit + 2)
      queues[0] = [Pending(entries: [], preemptions: 0, harms: 0)]
      var exchanges = 0
      while true {
        guard let level = queues.firstIndex(where: { !$0.isEmpty }) else {
          exchanges += 1
          guard let returned = try exchange(exchanges) else { return nil }
          for one in returned { queues[one.preemptions + one.harms].append(one) }
          if isComplete { return nil }
          continue
        }
        if isOver { return nil }
        let next = queues[level].removeLast()
        var schedule = Schedule(scenario: rounds.scenario, seed: seed)
        schedule.entries = next.entries
        if let violation = try rounds.run(schedule) {
          return Found(schedule: schedule, violation: violation)
        }
        let returned = footprint.note().flatMap { takeLeftOut(relyingOn: $0) }
        var longer = continuations(of: next, limit, harm)
        if next.entries.isEmpty {
          // Each search has the orders that begin with its moves.
          longer = longer.enumerated().filter { $0.offset % share.count == share.number }
            .map(\.element)
        }
        for one in longer + returned { queues[one.preemptions + one.harms].append(one) }
      }
    }

    /// Waits for the end of all searches, and adds the footprints of the other searches.
    ///
    /// - Returns: the orders that this search has left out for a wrong reason; nil at the deadline.
    ///   Without new bits the searches end.
    private mutating func exchange(_ number: Int) throws -> [Pending]? {
      let before = exchanged
      try rounds.write(
        SearchResult.lines("users", footprint.users), as: "users.\(number)", of: share)
      while !isOver {
        if let texts = rounds.texts("users.\(number)", of: share) {
          for text in texts { exchanged.merge(SearchResult.table(text)) { $0 | $1 } }
          isComplete = exchanged == before
          return footprint.add(exchanged).flatMap { takeLeftOut(relyingOn: $0) }
        }
        let _: Void? = Monitor(0).wait(until: .now + .milliseconds(20)) { _ in nil }
      }
      return nil
    }

    /// Returns the orders that were left out for a reason that is wrong since the last round.
    private mutating func takeLeftOut(relyingOn key: UInt64) -> [Pending] {
      guard let all = leftOut[key] else { return [] }
      let wrong = all.filter { footprint.isOther(key, than: $0.value.player) }
      guard !wrong.isEmpty else { return [] }
      for number in wrong.keys {
        for other in leftOut.keys { leftOut[other]?[number] = nil }
      }
      relied[key] = nil
      return wrong.sorted { $0.key < $1.key }.map(\.value.pending)
    }

    private mutating func leaveOut(
      _ pending: Pending, relyingOn reliance: Footprint.Reliance, at player: Int
    ) {
      leftOutCount += 1
      // Each search has its share of the orders with one move.
      if pending.entries.count == 1, leftOutCount % share.count != share.number { return }
      for key in reliance.keys {
        leftOut[key, default: [:]][leftOutCount] = LeftOut(pending: pending, player: player)
        relied[key, default: 0] |= 1 << UInt32(player)
      }
    }

    /// The orders that were left out to the end.
    var equalOrders: Int { Set(leftOut.values.flatMap(\.keys)).count }

    /// The orders that differ from the last one in one move behind its moves.
    private mutating func continuations(of last: Pending, _ limit: Int, _ harm: Harm) -> [Pending] {
      var found: [Pending] = []
      let first = last.entries.last.map { $0.step + 1 } ?? 0
      for number in first..<max(first, Turnstile.stepCount) {
        let choice = Turnstile.choice(at: number)
        let goesOn = choice.player >= 0 && choice.enabled & 1 << UInt32(choice.player) != 0
        let reliance = goesOn ? footprint.reliance(choice) : nil
        for player in 0..<Turnstile.playerLimit
        where (choice.enabled | choice.suspended) & 1 << UInt32(player) != 0
          && player != choice.chosen
        {
          guard last.preemptions + last.harms < limit else { continue }
          let resumes = choice.suspended & 1 << UInt32(player) != 0
          let preempts = resumes || goesOn && player != choice.player
          if preempts, choice.isLocal { continue }
          let pending = Pending(
            entries: last.entries + [Schedule.Entry(step: number, move: .go(player: player))],
            preemptions: last.preemptions + 1, harms: last.harms)
          if preempts, let reliance {
            leaveOut(pending, relyingOn: reliance, at: choice.player)
          } else {
            found.append(pending)
          }
        }
        guard last.harms == 0, !harm.isEmpty, goesOn, !choice.isLocal,
          last.preemptions < max(1, limit)
        else { continue }
        for move in moves(at: number, harm) {
          let pending = Pending(
            entries: last.entries + [Schedule.Entry(step: number, move: move)],
            preemptions: last.preemptions, harms: 1)
          if let reliance, move.isSame(afterReading: reliance.onlyReads) {
            leaveOut(pending, relyingOn: reliance, at: choice.player)
          } else {
            found.append(pending)
          }
        }
      }
      return found
    }

    private func moves(at number: Int, _ harm: Harm) -> [Turnstile.Move] {
      let step = Turnstile.step(at: number)
      guard let process = step.process, process < rounds.scenario.processes - 1 else { return [] }
      var moves: [Turnstile.Move] = []
      if harm.contains(.kills), rounds.scenario.mayKill(process) {
        moves.append(.kill(process: process))
      }
      if harm.contains(.suspensions) {
        moves.append(.suspend(process: process, Scenario.suspension))
      }
      if harm.contains(.failures), case .call = step.doing {
        moves.append(.fail(process: process, .noSpace))
      }
      if harm.contains(.losses), step.doing == .call(.read) {
        moves.append(.loseNotices(process: process))
      }
      return moves
    }

    /// Runs orders that seeds draw: a rank for each thread, and moments at which the current thread
    /// gets the lowest rank, a kill or suspension in every second one.
    mutating func drawnOrders(_ count: Int, seed: UInt64, _ harm: Harm) throws -> Found? {
      var length = 60
      for number in stride(from: share.number, to: count, by: share.count) {
        if isOver { return nil }
        var dice = Dice(seed: seed, stream: UInt64(number))
        var schedule = Schedule(scenario: rounds.scenario, seed: 1)
        if !harm.isEmpty, dice.oneIn(2) {
          let step = dice.number(0..<length)
          let process = dice.number(0..<rounds.scenario.processes - 1)
          let isKill = harm.contains(.kills) && rounds.scenario.mayKill(process) && dice.oneIn(2)
          if isKill {
            schedule = schedule.adding(.kill(process: process), at: step)
          } else if harm.contains(.suspensions) {
            schedule = schedule.adding(.suspend(process: process, Scenario.suspension), at: step)
          }
        }
        let ranks = Array(1...Turnstile.playerLimit).shuffled(using: &dice)
        let steps = (0..<dice.number(1..<6)).map { _ in dice.number(0..<length) }
        let violation = try rounds.run(schedule) { Turnstile.draw(ranks: ranks, steps: steps) }
        length = max(20, Turnstile.stepCount)
        guard let violation else { continue }
        let explicit = Self.explicit(schedule)
        guard let again = try rounds.run(explicit) else {
          return Found(schedule: explicit, violation: "unrepeatable: \(violation)")
        }
        return Found(schedule: explicit, violation: again)
      }
      return nil
    }

    /// The last round's order, with each of its turns as a move.
    private static func explicit(_ drawn: Schedule) -> Schedule {
      var schedule = drawn
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        let goesOn = choice.player >= 0 && choice.enabled & 1 << UInt32(choice.player) != 0
        let isUsual = goesOn ? choice.chosen == choice.player : choice.enabled.nonzeroBitCount == 1
        let isHarm = drawn.entries.contains {
          if case .suspend = $0.move { false } else { $0.step == number }
        }
        if choice.chosen >= 0, !isUsual, !isHarm, schedule.entries.count < Turnstile.moveLimit {
          schedule = schedule.adding(.go(player: choice.chosen), at: number)
        }
      }
      return schedule
    }

    /// Leaves out moves for as long as a promise of the same kind breaks.
    mutating func shrink(_ found: Found) throws -> Found {
      var best = found
      let kind = found.violation.prefix { $0 != ":" }
      var size = max(1, best.schedule.entries.count / 2)
      while true {
        var start = 0
        var isShorter = false
        while start < best.schedule.entries.count {
          var shorter = best.schedule
          shorter.entries.removeSubrange(start..<min(start + size, shorter.entries.count))
          if let violation = try rounds.run(shorter), violation.prefix(while: { $0 != ":" }) == kind
          {
            best = Found(schedule: shorter, violation: violation)
            isShorter = true
          } else {
            start += size
          }
        }
        if size == 1, !isShorter { return best }
        size = max(1, size / 2)
      }
    }
  }

  extension Turnstile.Move {
    /// Whether it does the same before and after a call that no other thread notices.
    fileprivate func isSame(afterReading onlyReads: Bool) -> Bool {
      switch self {
      case .suspend: true
      // What a dead process has left is found.
      case .kill: onlyReads
      default: false
      }
    }
  }

  extension Scenario {
    /// Whether a schedule may kill the process: the promises hold for the others then.
    func mayKill(_ process: Int) -> Bool {
      replacement.map { process != $0.by } ?? true
    }
  }
#endif
