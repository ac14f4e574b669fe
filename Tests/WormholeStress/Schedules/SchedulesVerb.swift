import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let schedules = Verb(
    "schedules", "run real processes in every order, step by step", [],
    [.scenario, .preemptions, .harm, .drawn, .budget, .jobs, .seed, .mutant],
    [
      "Real processes of the library run one thread at a time, and stop before each system call. "
        + "A schedule decides who goes on. Every order with at most the given number of "
        + "preemptions is run, and then orders that the seed draws. The clock is the schedule's, "
        + "and nothing waits in real time.",
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
    "preemptions", .any("N"), "most preemptions in an order; 2 by default")
  fileprivate static let harm = Option(
    "harm", .any("KINDS"), "kills, suspensions, failures, losses, separated by commas")
  fileprivate static let drawn = Option(
    "drawn", .any("N"), "number of orders that the seed draws; 1000 by default")
  fileprivate static let budget = Option(
    "budget", .any("S"), "most seconds for all scenarios; 300 by default")
  fileprivate static let jobs = Option(
    "jobs", .any("N"), "number of searches at the same time; 4 by default")
}

#if FAULT_POINTS
  extension Invocation {
    /// For the processes that search: the number of the search, how many there are, the scenario,
    /// the milliseconds, and the folder.
    private static let share = "WORMHOLE_SCHEDULES_SHARE"
    private static let line = "WORMHOLE_SCHEDULE"

    fileprivate func runSchedules() throws -> Int32 {
      if let name = value(.mutant), Plan.mutant(name) == nil {
        throw Failure.usage("cannot disable '\(name)': no mutant has this name")
      }
      if let words = Processes.environment(Self.share)?.split(separator: " "), words.count == 5,
        let scenario = Scenario(rawValue: String(words[2]))
      {
        return try runShare(
          (Int(words[0]) ?? 0, Int(words[1]) ?? 1), scenario,
          for: .milliseconds(Int(words[3]) ?? 0), in: "\(words[4])/\(words[0])")
      }
      let folder = try Self.makeFolder()
      defer { _ = try? Child.spawn("rm", ["-rf", "--", folder]).wait() }
      if let text = Processes.environment(Self.line) {
        guard let schedule = Schedule(text) else {
          throw Failure.usage("cannot replay '\(text)': it is no schedule")
        }
        let place = try Self.makeFolder(for: schedule.scenario, in: folder)
        return try spawn(0, of: 1, schedule.scenario, in: place).wait().code
      }
      var isKept = true
      let (all, end) = (try scenarios(), Instant.now + (try seconds(.budget) ?? .seconds(300)))
      for scenario in all { _ = try harm(scenario) }
      for (index, scenario) in all.enumerated() {
        // What a small scenario leaves of its share, the following ones get.
        let share = (end - Instant.now) / Double(all.count - index)
        if try !search(scenario, for: share, in: folder) { isKept = false }
      }
      return isKept ? 0 : ExitCode.no.rawValue
    }

    /// Runs this command once more, with the same addresses and hashes in each run.
    private func spawn(
      _ number: Int, of count: Int, _ scenario: Scenario, for time: Duration = .zero,
      in folder: String
    ) throws -> Child {
      try Descriptor.open(following: folder, [.readOnly, .directory])
        .makeDirectory("\(number)", mode: 0o700)
      var settings = [
        "\(Self.share)=\(number) \(count) \(scenario.rawValue) "
          + "\(Int(time / .milliseconds(1))) \(folder)",
        "SWIFT_DETERMINISTIC_HASHING=1",
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
      let name = "wormhole-schedules.\(zeros)\(digits)"
      try Descriptor.open(following: parent, [.readOnly, .directory])
        .makeDirectory(name, mode: 0o700)
      return "\(parent)/\(name)"
    }

    private static func makeFolder(for scenario: Scenario, in parent: String) throws -> String {
      try Descriptor.open(following: parent, [.readOnly, .directory])
        .makeDirectory(scenario.rawValue, mode: 0o700)
      return "\(parent)/\(scenario.rawValue)"
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
      guard let text = value(.harm) else {
        return scenario == .takeover ? .suspensions : []
      }
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

    /// Runs the searches of a scenario at the same time, and writes what they found.
    private func search(
      _ scenario: Scenario, for time: Duration, in parent: String
    ) throws -> Bool {
      let count = try number(.jobs, least: 1) ?? 4
      let folder = try Self.makeFolder(for: scenario, in: parent)
      let children = try (0..<count).map {
        try spawn($0, of: count, scenario, for: time, in: folder)
      }
      var sum = SearchResult()
      for (number, child) in children.enumerated() {
        let status = try child.wait()
        let text = try? ScheduledRounds.text(of: "\(folder)/\(number)/result")
        guard let result = text.flatMap(SearchResult.init) else {
          sum.isComplete = false
          sum.report = ["\(scenario.rawValue) 1", "  crash: a search has ended: \(status)"]
          continue
        }
        sum.add(result)
      }
      try output.write(line: sum.line(scenario, try limit()))
      guard let again = sum.report.first else { return true }
      for line in sum.report.dropFirst() { try output.write(line: line) }
      output.tell("again: WORMHOLE_SCHEDULE='\(again)' wormhole-stress schedules")
      return false
    }

    private func limit() throws -> Int { try number(.preemptions, least: 0) ?? 2 }

    // MARK: One search

    private func runShare(
      _ share: (number: Int, count: Int), _ scenario: Scenario, for time: Duration,
      in folder: String
    ) throws -> Int32 {
      if let schedule = Processes.environment(Self.line).flatMap({ Schedule($0) }) {
        return try replay(schedule, in: folder)
      }
      Turnstile.pin(share.number)
      let result = try search(scenario, share, for: time, in: folder)
      let file = try Descriptor.open(path: "\(folder)/result", .writeOnlyNew, mode: 0o600)
      let bytes = Array(result.lines.map { $0 + "\n" }.joined().utf8)
      // What is missing counts as a crash.
      _ = bytes.withUnsafeBytes { try? file.writeFully($0) }
      return result.report.isEmpty ? 0 : ExitCode.no.rawValue
    }

    private func search(
      _ scenario: Scenario, _ share: (number: Int, count: Int), for budget: Duration,
      in folder: String
    ) throws -> SearchResult {
      let rounds = try ScheduledRounds(scenario, in: folder)
      let begin = Instant.now
      let seed = UInt64(try number(.seed, least: 0) ?? 1)
      let harm = try harm(scenario)
      let draws = try number(.drawn, least: 0) ?? 1000
      // The drawn orders have a quarter of the time, or more.
      let end = begin + (draws > 0 ? budget * 3 / 4 : budget)
      var search = ScheduleSearch(rounds, share: share, until: end)
      var found = try search.everyOrder(try limit(), seed: 1, harm)
      var result = SearchResult()
      (result.orders, result.equal) = (rounds.count, search.equalOrders)
      (result.isComplete, result.time) = (search.isComplete, Instant.now - begin)
      (result.users, result.relied) = (search.footprint.users, search.relied)
      search.deadline = begin + budget
      if found == nil {
        let more: ScheduleSearch.Harm = value(.harm) == nil ? [.kills, .suspensions] : []
        found = try search.drawnOrders(draws, seed: seed, harm.union(more))
      }
      (result.drawn, result.steps) = (rounds.count - result.orders, rounds.steps)
      result.drawnTime = Instant.now - begin - result.time
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
