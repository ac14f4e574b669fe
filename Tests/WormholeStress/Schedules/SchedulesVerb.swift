import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let schedules = Verb(
    "schedules", "run real processes in every order, step by step", [],
    [.scenario, .preemptions, .harm, .drawn, .budget, .seed, .mutant],
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
    "budget", .any("S"), "most seconds for each scenario; 60 by default")
}

#if FAULT_POINTS
  extension Invocation {
    private static let mark = "WORMHOLE_SCHEDULES_INSIDE"
    private static let line = "WORMHOLE_SCHEDULE"

    fileprivate func runSchedules() throws -> Int32 {
      if let name = value(.mutant), Plan.mutant(name) == nil {
        throw Failure.usage("cannot disable '\(name)': no mutant has this name")
      }
      guard Processes.environment(Self.mark) != nil else { return try runInside() }
      let folder = try Self.makeFolder()
      defer { _ = try? Child.spawn("rm", ["-rf", "--", folder]).wait() }
      if let text = Processes.environment(Self.line) {
        guard let schedule = Schedule(text) else {
          throw Failure.usage("cannot replay '\(text)': it is no schedule")
        }
        return try replay(schedule, in: folder)
      }
      var isKept = true
      for scenario in try scenarios() where try !search(scenario, in: folder) { isKept = false }
      return isKept ? 0 : ExitCode.no.rawValue
    }

    /// Runs this command once more, with the same addresses and hashes in each run.
    private func runInside() throws -> Int32 {
      var settings = ["\(Self.mark)=1", "SWIFT_DETERMINISTIC_HASHING=1"]
      if let mutant = value(.mutant) { settings.append("WORMHOLE_MUTANT=\(mutant)") }
      let arguments = Processes.arguments.map { String(cString: $0) }
      let child = try Child.spawn(
        "setarch", ["-R", try Processes.ownProgram()] + arguments,
        environment: Processes.environment(setting: settings))
      return try child.wait().code
    }

    private static func makeFolder() throws -> String {
      let parent = (try? Descriptor.open(path: "/dev/shm", [.path])) == nil ? "/tmp" : "/dev/shm"
      let name = "wormhole-schedules.\(Processes.current)"
      try Descriptor.open(following: parent, [.readOnly, .directory])
        .makeDirectory(name, mode: 0o700)
      return "\(parent)/\(name)"
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

    // MARK: The search

    private func search(_ scenario: Scenario, in folder: String) throws -> Bool {
      let rounds = try ScheduledRounds(scenario, in: folder)
      let (begin, budget) = (Instant.now, try seconds(.budget) ?? .seconds(60))
      let limit = try number(.preemptions, least: 0) ?? 2
      let seed = UInt64(try number(.seed, least: 0) ?? 1)
      let harm = try harm(scenario)
      let draws = try number(.drawn, least: 0) ?? 1000
      // The drawn orders have a third of the time, or more.
      var search = ScheduleSearch(rounds, until: begin + (draws > 0 ? budget * 2 / 3 : budget))
      var found = try search.everyOrder(limit, seed: 1, harm)
      let (orders, time) = (rounds.count, Instant.now - begin)
      search.deadline = begin + budget
      if found == nil {
        found = try search.drawnOrders(draws, seed: seed, harm.union(.suspensions))
      }
      let all = Instant.now - begin
      let rate = Double(rounds.count) / max(all / .seconds(1), 0.001)
      try output.write(
        line: "\(scenario.rawValue): \(orders) orders with at most \(limit) preemptions"
          + (search.isComplete ? ", all there are, " : ", not all, ")
          + "in \(Int(time / .milliseconds(1))) ms; \(rounds.count - orders) drawn ones; "
          + "\(rounds.steps / max(1, rounds.count)) steps each; \(Int(rate)) orders a second: "
          + scenario.purpose)
      guard let found else { return true }
      try report(try search.shrink(found), shrunkFrom: found, rounds)
      return false
    }

    private func report(
      _ found: ScheduleSearch.Found, shrunkFrom first: ScheduleSearch.Found,
      _ rounds: ScheduledRounds
    ) throws {
      try output.write(
        line: "  \(found.violation), after \(found.schedule.entries.count) of "
          + "\(first.schedule.entries.count) moves")
      _ = try rounds.run(found.schedule, tellsPaths: true)
      try writeSteps(found.schedule)
      output.tell("again: WORMHOLE_SCHEDULE='\(found.schedule)' wormhole-stress schedules")
    }

    private func replay(_ schedule: Schedule, in folder: String) throws -> Int32 {
      let rounds = try ScheduledRounds(schedule.scenario, in: folder)
      let violation = try rounds.run(schedule, tellsPaths: true)
      try writeSteps(schedule)
      let print = String(Turnstile.fingerprint, radix: 16)
      try output.write(line: "\(violation ?? "every promise was kept"); the steps: \(print)")
      return violation == nil ? 0 : ExitCode.no.rawValue
    }

    private func writeSteps(_ schedule: Schedule) throws {
      for number in 0..<Turnstile.stepCount {
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
        try output.write(line: words.joined(separator: "\t"))
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
