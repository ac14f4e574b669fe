import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let schedules = Verb(
    "schedules", "run real processes in every order, step by step", [],
    [
      .scenario, .preemptions, .harm, .drawn, .budget, .jobs, .seed, .mutant, .complete, .whole,
      .traces,
    ],
    [
      "Real processes of the library run one thread at a time, and stop before each system call. "
        + "A schedule decides who goes on. Every order with at most the given number of "
        + "preemptions is run, and then orders that the seed draws, until the budget ends; with "
        + "--complete the command fails if it ends before. The clock is the schedule's, and "
        + "nothing waits in real time.",
      "An order that breaks a promise is run again, its moves are left out one by one for as "
        + "long as the promise breaks, and the rest is printed as a line for WORMHOLE_SCHEDULE "
        + "and as a table of steps. With WORMHOLE_SCHEDULE set, only that order is run.",
      "The program must have fault points, as debug builds have.",
    ],
    [
      Example("wormhole-stress schedules", "all scenarios"),
      Example("wormhole-stress schedules --scenario updaters --preemptions 2", "one of them"),
      Example(
        "wormhole-stress schedules --scenario takeover --mutant no-fence",
        "with a mechanism disabled"),
    ]
  ) { invocation in
    #if FAULT_POINTS
      return try invocation.runSchedules()
    #else
      throw Failure.usage("cannot run schedules: the program was built without fault points")
    #endif
  }
}

extension Option {
  fileprivate static let scenario = Option("scenario", .any("NAME"), "scenario to run, or all")
  fileprivate static let preemptions = Option(
    "preemptions", .any("N"), "most preemptions in an order; by default 2, 1 or 0, by scenario")
  fileprivate static let harm = Option(
    "harm", .any("KINDS"), "kills, suspensions, failures, losses, separated by commas")
  fileprivate static let drawn = Option(
    "drawn", .any("N"), "number of orders that the seed draws; 1000 by default")
  fileprivate static let budget = Option(
    "budget", .any("S"), "most seconds for all scenarios; 300 by default")
  fileprivate static let jobs = Option(
    "jobs", .any("N"), "number of searches at the same time; 4 by default")
  fileprivate static let complete = Option(
    "complete", nil, "fail if the budget ends before every order was run")
  fileprivate static let whole = Option("whole", nil, "run orders with equal results as well")
  fileprivate static let traces = Option("traces", nil, "count the orders that differ")
}

#if FAULT_POINTS
  extension Invocation {
    /// The orders that a search runs.
    private enum Part: String { case every, drawn }

    /// For the processes that search: the number of the search, how many there are, the scenario,
    /// the part, the milliseconds, and the folder.
    private static let share = "WORMHOLE_SCHEDULES_SHARE"
    private static let line = "WORMHOLE_SCHEDULE"

    fileprivate func runSchedules() throws -> Int32 {
      if let name = value(.mutant), Plan.mutant(name) == nil {
        throw Failure.usage("cannot disable '\(name)': no mutant has this name")
      }
      if let words = Processes.environment(Self.share)?.split(separator: " "), words.count == 6,
        let scenario = Scenario(rawValue: String(words[2])),
        let part = Part(rawValue: String(words[3]))
      {
        return try runShare(
          (Int(words[0]) ?? 0, Int(words[1]) ?? 1), scenario, part,
          for: .milliseconds(Int(words[4]) ?? 0), in: "\(words[5])/\(words[0])")
      }
      let folder = try Self.makeFolder()
      defer { try? StressFolder.remove(folder) }
      if let text = Processes.environment(Self.line) {
        guard let schedule = Schedule(text) else {
          throw Failure.usage("cannot replay '\(text)': it is no schedule")
        }
        let place = try Self.makeFolder(for: schedule.scenario, in: folder)
        return try spawn(0, of: 1, schedule.scenario, .every, in: place).wait().code
      }
      var isKept = true
      let (all, budget) = (try scenarios(), try seconds(.budget) ?? .seconds(300))
      let end = Instant.now + budget
      for scenario in all { _ = try harm(scenario) }
      // Drawn orders get the time that is left when every order was run.
      for (scenario, result) in try everyOrder(all, until: end, in: folder) {
        if has(.complete), result.report.isEmpty, !result.isComplete {
          output.tell(
            "cannot run every order of '\(scenario.rawValue)' within \(Int(budget / .seconds(1))) "
              + "s: raise --budget, lower --preemptions, or make the scenario smaller")
          isKept = false
        }
        if !result.report.isEmpty { isKept = false }
      }
      for (index, scenario) in all.enumerated() where try isKept && draws(scenario) > 0 {
        let share = (end - Instant.now) / Double(all.count - index)
        if try !drawnOrders(scenario, for: share, in: folder).report.isEmpty { isKept = false }
      }
      return isKept ? 0 : ExitCode.no.rawValue
    }

    /// Runs this command once more, with the same addresses and hashes in each run.
    private func spawn(
      _ number: Int, of count: Int, _ scenario: Scenario, _ part: Part,
      for time: Duration = .zero, in folder: String
    ) throws -> Child {
      _ = try StressFolder.make("\(folder)/\(number)")
      var settings = [
        "\(Self.share)=\(number) \(count) \(scenario.rawValue) \(part.rawValue) "
          + "\(Int(time / .milliseconds(1))) \(folder)",
        "SWIFT_DETERMINISTIC_HASHING=1",
        // Each player would look up the functions of the libraries again.
        "LD_BIND_NOW=1",
      ]
      if let mutant = value(.mutant) { settings.append("WORMHOLE_MUTANT=\(mutant)") }
      let arguments = Processes.arguments.map { String(cString: $0) }
      return try Child.spawn(
        "setarch", ["-R", try Processes.ownProgram()] + arguments,
        environment: Processes.environment(setting: settings))
    }

    /// Makes a folder whose path has the same length in each run.
    private static func makeFolder() throws -> String {
      let parent = (try? Descriptor.open(path: "/dev/shm", [.path])) == nil ? "/tmp" : "/dev/shm"
      let digits = String(Processes.current)
      let zeros = String(repeating: "0", count: max(0, 10 - digits.utf8.count))
      return try StressFolder.make("\(parent)/wormhole-schedules.\(zeros)\(digits)")
    }

    private static func makeFolder(
      for scenario: Scenario, _ part: Part = .every, in parent: String
    ) throws -> String {
      // Of one length: all paths have the same length in each run.
      return try StressFolder.make("\(parent)/\(scenario.rawValue).\(part.rawValue)")
    }

    private func scenarios() throws -> [Scenario] {
      guard let name = value(.scenario), name != "all" else { return Scenario.allCases }
      guard let scenario = Scenario(rawValue: name) else {
        let names = Scenario.allCases.map(\.rawValue).joined(separator: ", ")
        throw Failure.usage("cannot run '\(name)': the scenarios are \(names)")
      }
      return [scenario]
    }

    private func harm(_ scenario: Scenario) throws -> ScheduleSearch.Harm {
      guard let text = value(.harm) else { return scenario.harm }
      return try text.split(separator: ",").reduce(into: []) { harm, word in
        switch word {
        case "none": break
        case "kills": harm.insert(.kills)
        case "suspensions": harm.insert(.suspensions)
        case "failures": harm.insert(.failures)
        case "losses": harm.insert(.losses)
        default:
          throw Failure.usage(
            "cannot do '\(word)': the kinds are kills, suspensions, failures and losses")
        }
      }
    }

    // MARK: The searches

    private func searches() throws -> Int { try number(.jobs, least: 1) ?? 4 }

    /// Runs every order of the scenarios, of some at the same time, and writes what was found.
    ///
    /// Each scenario has one search. Searches that share a scenario would have to derive the same
    /// orders, and no check could show that.
    private func everyOrder(
      _ all: [Scenario], until end: Instant, in parent: String
    ) throws -> [(Scenario, SearchResult)] {
      let (waiting, ends) = (
        // The longest searches begin first: one of them would otherwise run alone at the end.
        Monitor(all.reversed().sorted { $0.preemptions > $1.preemptions }),
        Monitor<[(Scenario, Result<SearchResult, any Error>)]>([])
      )
      // A child stays on one processor, which it gets by its number.
      let lanes = try (0..<min(try searches(), all.count)).map { lane in
        try Thread("lane") {
          while let scenario = waiting.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) {
            let result = Result {
              let folder = try Self.makeFolder(for: scenario, .every, in: parent)
              let child = try spawn(
                lane, of: 1, scenario, .every, for: end - Instant.now, in: folder)
              return try Self.result(of: child, lane, scenario, in: folder)
            }
            ends.withLock { $0.append((scenario, result)) }
          }
        }
      }
      for lane in lanes { lane.join() }
      return try ends.withLock { $0 }.map { scenario, result in
        let result = try result.get()
        try write(result, result.line(scenario, limit(scenario)))
        return (scenario, result)
      }
    }

    /// Runs the searches of a scenario at the same time, and writes what they found.
    private func drawnOrders(
      _ scenario: Scenario, for time: Duration, in parent: String
    ) throws -> SearchResult {
      let count = try searches()
      let folder = try Self.makeFolder(for: scenario, .drawn, in: parent)
      let children = try (0..<count).map {
        try spawn($0, of: count, scenario, .drawn, for: time, in: folder)
      }
      var sum = SearchResult()
      for (number, child) in children.enumerated() {
        sum.add(try Self.result(of: child, number, scenario, in: folder))
      }
      try write(sum, sum.drawnLine(scenario))
      return sum
    }

    /// Waits for a search.
    private static func result(
      of child: Child, _ number: Int, _ scenario: Scenario, in folder: String
    ) throws -> SearchResult {
      let status = try child.wait()
      let text = try? ScheduledRounds.text(of: "\(folder)/\(number)/result")
      if let result = text.flatMap(SearchResult.init) { return result }
      var result = SearchResult()
      result.isComplete = false
      result.report = ["\(scenario.rawValue) 1", "  crash: a search has ended: \(status)"]
      return result
    }

    private func write(_ result: SearchResult, _ line: String) throws {
      try output.write(line: line)
      guard let again = result.report.first else { return }
      for line in result.report.dropFirst() { try output.write(line: line) }
      output.tell("again: WORMHOLE_SCHEDULE='\(again)' wormhole-stress schedules")
    }

    private func limit(_ scenario: Scenario) throws -> Int {
      try number(.preemptions, least: 0) ?? scenario.preemptions
    }
    private func draws(_ scenario: Scenario) throws -> Int {
      try (number(.drawn, least: 0) ?? 1000) / scenario.drawnShare
    }

    // MARK: One search

    private func runShare(
      _ share: (number: Int, count: Int), _ scenario: Scenario, _ part: Part,
      for time: Duration, in folder: String
    ) throws -> Int32 {
      if let schedule = Processes.environment(Self.line).flatMap({ Schedule($0) }) {
        return try replay(schedule, in: folder)
      }
      Turnstile.pin(share.number)
      let result = try search(scenario, share, part, for: time, in: folder)
      let file = try Descriptor.open(path: "\(folder)/result", .writeOnlyNew, mode: 0o600)
      let bytes = Array(result.lines.map { $0 + "\n" }.joined().utf8)
      // What is missing counts as a crash.
      try? file.writeFully(bytes)
      return result.report.isEmpty ? 0 : ExitCode.no.rawValue
    }

    private func search(
      _ scenario: Scenario, _ share: (number: Int, count: Int), _ part: Part,
      for budget: Duration, in folder: String
    ) throws -> SearchResult {
      let rounds = try ScheduledRounds(scenario, in: folder)
      let begin = Instant.now
      var search = ScheduleSearch(
        rounds, share: share, until: begin + budget, leavesOut: !has(.whole),
        wantsTraces: has(.traces))
      var (result, harm) = (SearchResult(), try harm(scenario))
      let found: ScheduleSearch.Found?
      switch part {
      case .every:
        found = try search.everyOrder(try limit(scenario), seed: 1, harm)
        (result.orders, result.equal) = (search.orders, search.equalOrders)
        (result.isComplete, result.traces) = (search.isComplete, search.traces)
      case .drawn:
        if value(.harm) == nil { harm.formUnion(scenario.drawnHarm) }
        let seed = UInt64(try number(.seed, least: 0) ?? 1)
        found = try search.drawnOrders(try draws(scenario), seed: seed, harm)
        result.orders = rounds.count
      }
      result.time = Instant.now - begin
      result.steps = rounds.steps * result.orders / max(1, rounds.count)
      guard let found else { return result }
      rounds.stopOthers()
      result.report = try report(try search.shrink(found), shrunkFrom: found, rounds)
      return result
    }

    private func report(
      _ found: ScheduleSearch.Found, shrunkFrom first: ScheduleSearch.Found,
      _ rounds: ScheduledRounds
    ) throws -> [String] {
      let title =
        "  \(found.violation), after \(found.schedule.entries.count) of "
        + "\(first.schedule.entries.count) moves"
      _ = try rounds.run(found.schedule)
      return [found.schedule.description, title] + table(of: found.schedule)
    }

    private func replay(_ schedule: Schedule, in folder: String) throws -> Int32 {
      let rounds = try ScheduledRounds(schedule.scenario, in: folder)
      let violation = try rounds.run(schedule)
      for line in table(of: schedule) { try output.write(line: line) }
      let print = String(Turnstile.fingerprint, radix: 16)
      try output.write(line: "\(violation ?? "every promise was kept"); the steps: \(print)")
      return violation == nil ? 0 : ExitCode.no.rawValue
    }

    /// The steps of the last round: number, process, thread, call, file, and moves.
    private func table(of schedule: Schedule) -> [String] {
      (0..<Turnstile.stepCount).map { number in
        let step = Turnstile.step(at: number)
        let moves = schedule.entries.filter { $0.step == number }
        let doing =
          switch step.doing {
          case .call(let call): call.rawValue
          case .wait: "waits"
          case .end: "ends"
          case .begin: "begins"
          }
        let words = [
          "\(number)", step.process.map { "process \($0)" } ?? "-", step.thread, doing, step.path,
          moves.isEmpty ? "" : "<- \(Schedule(scenario: schedule.scenario, entries: moves).moves)",
        ]
        return words.joined(separator: "\t")
      }
    }
  }

  extension Schedule {
    /// The moves alone.
    fileprivate var moves: String {
      description.split(separator: " ").dropFirst(2).joined(separator: " ")
    }
  }
#endif
