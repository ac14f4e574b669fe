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
      var entries: [Schedule.Entry] = []
      /// The preemptions and harms.
      var level = 0
      var hasHarm = false
      /// The moments of each move, with the equal orders.
      var moments: [Moments] = []
      /// Whether moves of another order are at earlier steps here.
      var isMoved = false
    }

    let rounds: ScheduledRounds
    /// The number of this search, and the count of all searches that draw orders.
    let share: (number: Int, count: Int)
    /// The end of the search.
    var deadline: Instant
    /// Whether every order in the bounds was run.
    private(set) var isComplete = false
    /// The orders run by this search.
    private(set) var orders = 0
    /// The number of orders that were left out: each equals an order that was run.
    private(set) var equalOrders = 0
    /// The fingerprints of all orders, if wanted.
    private(set) var traces: Set<UInt64> = []
    private let wantsTraces: Bool
    /// Whether orders are left out.
    private let leavesOut: Bool
    private var queues: [[Pending]] = []
    private var seen: Set<[Schedule.Entry]> = []

    init(
      _ rounds: ScheduledRounds, share: (number: Int, count: Int), until deadline: Instant,
      leavesOut: Bool = true, wantsTraces: Bool = false
    ) {
      self.rounds = rounds
      self.share = share
      self.deadline = deadline
      self.leavesOut = leavesOut
      self.wantsTraces = wantsTraces
    }

    private var isOver: Bool { Instant.now >= deadline || rounds.isStopped }

    /// Runs every order with at most so many preemptions, the orders with fewer of them first, and
    /// at most one harm in each, which counts as a preemption.
    ///
    /// A preemption lets another thread continue where the same thread could. Where a thread waits
    /// or ends, and several threads can continue, another choice than the usual thread counts as a
    /// preemption. Orders with the results of another order are left out: see ``Moments``.
    ///
    /// A scenario has one search for these orders: only the trace of an order shows which orders
    /// follow.
    mutating func everyOrder(
      _ limit: Int, seed: UInt64, _ harm: Harm = []
    ) throws -> Found? {
      queues = [[Pending]](repeating: [], count: max(1, limit) + 1)
      queues[0] = [Pending()]
      while let level = queues.firstIndex(where: { !$0.isEmpty }) {
        if isOver { return nil }
        let next = queues[level].removeLast()
        var schedule = Schedule(scenario: rounds.scenario, seed: seed)
        schedule.entries = next.entries
        let violation = try rounds.run(schedule)
        if let violation, !next.isMoved || !violation.starts(with: "astray: ") {
          return Found(schedule: schedule, violation: violation)
        }
        orders += 1
        if violation == nil { note(next, limit, harm) }
      }
      isComplete = true
      return nil
    }

    /// Adds the orders that the last round leads to.
    private mutating func note(_ last: Pending, _ limit: Int, _ harm: Harm) {
      let trace = Trace(
        countsSyncs: rounds.scenario.hasCuts || rounds.scenario.hasMessageCuts)
      if wantsTraces { traces.insert(trace.fingerprint) }
      var last = last
      last.moments = test(last.moments, with: [], trace, last)
      let found = continuations(of: last, trace, limit, harm)
      // Where the usual choice equals the move, the order itself has the last moment.
      let waits = test(found.filter { !$0.isMade }, with: last.moments, trace, last)
      for moments in found where moments.isMade {
        var next = Self.inserting(moments, into: last)
        next.moments = last.moments + waits.filter { $0.step < moments.step } + [moments]
        push(next)
      }
    }

    /// Adds the orders with results that differ from the last order.
    ///
    /// - Returns: the moments with the same results.
    private mutating func test(
      _ all: [Moments], with others: [Moments], _ trace: Trace, _ last: Pending
    ) -> [Moments] {
      var all = all
      var different: [(index: Int, moments: Moments)] = []
      for index in all.indices {
        let (found, count) = all[index].test(trace)
        equalOrders += count
        different += found.map { (index, $0) }
      }
      for (index, moments) in different {
        let former = all[index]
        let shift = former.step - moments.step
        var next = last
        if former.isMade { next.entries.removeAll { $0.step == former.step } }
        for number in next.entries.indices where next.entries[number].step > former.step {
          next.entries[number].step -= shift
          next.isMoved = true
        }
        if former.isMade { next.level -= 1 }
        next = Self.inserting(moments, into: next)
        next.moments = others
        for other in all.indices where other != index {
          let isLater = all[other].step > former.step
          next.moments.append(isLater ? all[other].shifted(by: shift) : all[other])
        }
        // Behind the last move, nothing is known.
        let end = next.entries.last!.step
        next.moments = next.moments.filter { $0.step <= end } + [moments]
        push(next)
      }
      return all.filter { !$0.equal.isEmpty }
    }

    private static func inserting(_ moments: Moments, into order: Pending) -> Pending {
      var order = order
      order.entries.append(Schedule.Entry(step: moments.step, move: moments.move))
      order.entries.sort { $0.step < $1.step }
      order.level += 1
      if case .go = moments.move {} else { order.hasHarm = true }
      return order
    }

    private mutating func push(_ order: Pending) {
      guard order.level < queues.count, seen.insert(order.entries).inserted else { return }
      queues[order.level].append(order)
    }

    /// The moves behind the moves of the last order, each with its moments.
    private func continuations(
      of last: Pending, _ trace: Trace, _ limit: Int, _ harm: Harm
    ) -> [Moments] {
      var (found, row): ([Moments], [Turnstile.ScheduleMove: [Moments.Moment]]) = ([], [:])
      let first = last.entries.last.map { $0.step + 1 } ?? 0
      for number in first..<max(first, trace.choices.count) {
        let choice = trace.choices[number]
        let goesOn = choice.player >= 0 && choice.enabled & 1 << UInt64(choice.player) != 0
        var moves: [Turnstile.ScheduleMove] = []
        if last.level < limit {
          let others = choice.enabled | choice.suspended
          moves = (0..<Turnstile.playerLimit)
            .filter { others & 1 << UInt64($0) != 0 && $0 != choice.chosen }
            .map { .go(player: $0) }
        }
        if !last.hasHarm, !harm.isEmpty, goesOn, last.level < max(1, limit) {
          moves += harms(choice, harm)
        }
        for move in moves { row[move, default: []].append(.init(step: number, effects: [])) }
        if choice.chosen == choice.player {
          for move in row.keys {
            let latest = row[move]!.count - 1
            row[move]![latest].effects.append(trace.effects[number])
          }
        } else {
          found += close(&row, choice, at: number)
        }
      }
      if let choice = trace.choices.last { found += close(&row, choice, at: nil) }
      return found
    }

    /// Ends a row of steps of one thread.
    private func close(
      _ row: inout [Turnstile.ScheduleMove: [Moments.Moment]], _ choice: Turnstile.Choice,
      at step: Int?
    ) -> [Moments] {
      let all = row.sorted { $0.value[0].step < $1.value[0].step || "\($0.key)" < "\($1.key)" }
      row = [:]
      return all.flatMap { move, moments -> [Moments] in
        if !leavesOut {
          return moments.map {
            Moments(move: move, player: choice.player, step: $0.step, isMade: true, earlier: [])
          }
        }
        if let step, move == .go(player: choice.chosen) {
          return [
            Moments(
              move: move, player: choice.player, step: step, isMade: false,
              earlier: moments.reversed())
          ]
        }
        return [
          Moments(
            move: move, player: choice.player, step: moments.last!.step, isMade: true,
            earlier: moments.dropLast().reversed())
        ]
      }
    }

    private func harms(_ choice: Turnstile.Choice, _ harm: Harm) -> [Turnstile.ScheduleMove] {
      let process = choice.process
      guard process >= 0, process < rounds.scenario.processes - 1 else { return [] }
      var moves: [Turnstile.ScheduleMove] = []
      if harm.contains(.kills), let victim = rounds.scenario.victim, victim != process {
        moves.append(.kill(process: victim))
      }
      guard rounds.scenario.isHarmed(process) else { return moves }
      if harm.contains(.kills), rounds.scenario.mayKill(process) {
        moves.append(.kill(process: process))
      }
      if harm.contains(.suspensions) {
        moves.append(.suspend(process: process, Scenario.suspension))
      }
      if harm.contains(.failures), let error = choice.doing.failure {
        moves.append(.fail(process: process, error))
      }
      if harm.contains(.losses), choice.doing == .call(.read) {
        moves.append(.loseNotices(process: process))
      }
      return moves
    }

    /// Runs orders that seeds draw: a rank for each thread, and moments at which the current thread
    /// gets the lowest rank.
    ///
    /// Every second order has a kill or a suspension, of the others every second one a loss of
    /// notices. An order without a harm is run again with the failure of one of its calls.
    mutating func drawnOrders(_ count: Int, seed: UInt64, _ harm: Harm) throws -> Found? {
      var length = 60
      for number in stride(from: share.number, to: count, by: share.count) {
        if isOver { return nil }
        var dice = Dice(seed: seed, stream: UInt64(number))
        var schedule = Schedule(scenario: rounds.scenario, seed: 1)
        if let drawn = drawnHarm(harm, length, &dice) { schedule.entries = [drawn] }
        let ranks = Array(1...Turnstile.playerLimit).shuffled(using: &dice)
        let steps = (0..<dice.number(1..<6)).map { _ in dice.number(0..<length) }
        var violation = try rounds.run(schedule) { Turnstile.draw(ranks: ranks, steps: steps) }
        length = max(20, Turnstile.stepCount)
        if violation == nil, schedule.entries.isEmpty, harm.contains(.failures),
          let drawn = drawnFailure(&dice)
        {
          schedule.entries = [drawn]
          violation = try rounds.run(schedule) { Turnstile.draw(ranks: ranks, steps: steps) }
        }
        guard let violation else { continue }
        let explicit = Self.explicit(schedule)
        guard let again = try rounds.run(explicit) else {
          return Found(schedule: explicit, violation: "unrepeatable: \(violation)")
        }
        return Found(schedule: explicit, violation: again)
      }
      return nil
    }

    private func drawnHarm(
      _ harm: Harm, _ length: Int, _ dice: inout Dice
    ) -> Schedule.Entry? {
      let stops = !harm.isDisjoint(with: [.kills, .suspensions]) && dice.oneIn(2)
      guard stops || harm.contains(.losses) && dice.oneIn(2) else { return nil }
      let step = dice.number(0..<length)
      let process = dice.number(0..<rounds.scenario.processes - 1)
      guard stops else { return Schedule.Entry(step: step, move: .loseNotices(process: process)) }
      if harm.contains(.kills), rounds.scenario.mayKill(process), dice.oneIn(2) {
        return Schedule.Entry(step: step, move: .kill(process: process))
      }
      guard harm.contains(.suspensions) else { return nil }
      return Schedule.Entry(step: step, move: .suspend(process: process, Scenario.suspension))
    }

    /// Draws a call of the last round to fail: only a round shows which process makes which call.
    private func drawnFailure(_ dice: inout Dice) -> Schedule.Entry? {
      let calls = (0..<Turnstile.stepCount).filter { number in
        let choice = Turnstile.choice(at: number)
        guard choice.doing.failure != nil, choice.process < rounds.scenario.processes - 1 else {
          return false
        }
        return rounds.scenario.isHarmed(choice.process)
      }
      guard !calls.isEmpty else { return nil }
      let step = calls[dice.number(0..<calls.count)]
      let choice = Turnstile.choice(at: step)
      guard let error = choice.doing.failure else { return nil }
      return Schedule.Entry(step: step, move: .fail(process: choice.process, error))
    }

    /// The last round's order, with each of its turns as a move.
    private static func explicit(_ drawn: Schedule) -> Schedule {
      var schedule = drawn
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        let goesOn = choice.player >= 0 && choice.enabled & 1 << UInt64(choice.player) != 0
        let isUsual = goesOn ? choice.chosen == choice.player : choice.enabled.nonzeroBitCount == 1
        let isHarm = drawn.entries.contains { entry in
          switch entry.move {
          // The order decides who continues.
          case .suspend, .loseNotices: false
          case .go, .kill, .fail: entry.step == number
          }
        }
        if choice.chosen >= 0, !isUsual, !isHarm, schedule.entries.count < Turnstile.moveLimit {
          schedule = schedule.adding(.go(player: choice.chosen), at: number)
        }
      }
      return schedule
    }

    /// The longest time for shrinking an order: a long order has hundreds of moves.
    private static let shrinkTime = Duration.seconds(120)

    /// Leaves out moves for as long as a promise of the same kind breaks.
    mutating func shrink(_ found: Found) throws -> Found {
      var best = found
      // Without a move, most orders are astray.
      if found.violation.starts(with: "astray: ") { return found }
      let kind = found.violation.prefix { $0 != ":" }
      // An order without some of its turns is often astray, an order of harms alone never.
      var harms = best.schedule
      harms.entries.removeAll { if case .go = $0.move { true } else { false } }
      if let violation = try rounds.run(harms), violation.prefix(while: { $0 != ":" }) == kind {
        best = Found(schedule: harms, violation: violation)
      }
      var size = max(1, best.schedule.entries.count / 2)
      let end = Instant.now + Self.shrinkTime
      while true {
        var start = 0
        var isShorter = false
        while start < best.schedule.entries.count {
          guard Instant.now < end else { return best }
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

  extension Scenario {
    /// Whether a schedule may kill the process: its death breaks no promise to the other processes.
    func mayKill(_ process: Int) -> Bool {
      !replacements.contains { process == $0.by } && !(hasMachines && process == MachinePart.hub)
    }
  }
#endif
