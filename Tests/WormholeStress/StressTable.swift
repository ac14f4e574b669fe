import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Table {
  /// The verbs and options of `wormhole-stress`.
  static let stress = Table(
    "wormhole-stress", "0.1.0", "try to break the promises of Wormhole with many processes",
    synopsis: "[--json]",
    purpose: "Tries to break the promises of Wormhole with many processes and many faults.",
    details: [
      "Processes change channels and send messages, files and requests to each other, while they "
        + "are killed and suspended and their calls fail. The journal of each process is "
        + "compared with the promises."
    ],
    options: [.json, .quiet, .verbose], variables: [],
    statuses: [
      ("0", "every promise was kept"), ("1", "a promise was broken"),
      ("64", "the command line is invalid"),
    ],
    verbs: [
      ("run", { .run }), ("explore", { .explore }), ("schedules", { .schedules }),
      ("manual", { .manual(of: "wormhole-stress") }),
      ("help", { .help(of: "wormhole-stress", example: "run") }),
    ])
}

extension Verb {
  fileprivate static let run = Verb(
    "run", "run plans that seeds decide, and check all promises", [],
    [.seed, .seeds, .processes, .duration, .on, .noFaults, .noErrors, .mutant, .keep],
    [
      "Each plan has a container of its own. Processes act as the seed decides, and are killed, "
        + "suspended and started again. Then the remaining work is completed, and the journals "
        + "of all processes are checked: whether each channel's history could have happened in "
        + "some order, whether every sent message has arrived, in order, once or marked as "
        + "redelivered, whether any process waited too long, and whether anything is left over.",
      "The seed decides the actions of each process and its faults; the machine decides the "
        + "exact times. A failed run may therefore need several tries to fail again.",
      "With --on, each seed runs on other kinds of machine, in turn: ext4, xfs, btrfs, tmpfs, "
        + "overlay and fuse are file systems made for the run; with pids and users, half of the "
        + "processes are in namespaces of their own; all stands for every kind. Needs root; a "
        + "kind that cannot be made is skipped, with a message. The mounts are invisible to "
        + "other processes, and end with the program.",
      "Calls fail at fault points only if the program was built with fault points: in a debug "
        + "build, or with the trait FaultPoints.",
    ],
    [
      Example("wormhole-stress", "ten seconds, with a random seed"),
      Example("wormhole-stress run --seed 7 --seeds 20", "twenty plans, from seed 7 on"),
      Example("wormhole-stress run --mutant no-fence", "with a mechanism disabled"),
    ]
  ) { invocation in
    let first = try invocation.value(.seed).map { text throws(Failure) in
      guard let seed = UInt64(text) else {
        throw Failure.usage("cannot use --seed \(text): not a number")
      }
      return seed
    }
    let count = try invocation.number(.seeds, least: 1) ?? 1
    let begin = first ?? UInt64.random(in: 0..<1_000_000)
    let seeds = begin..<(begin + UInt64(count))
    var sums = Sums()
    let kinds = try invocation.machines()
    if let kinds {
      if !Machine.isInside {
        if let status = invocation.runInside(kinds) { return status }
        return 0
      }
      for kind in kinds { try invocation.run(seeds, on: kind, &sums) }
    } else {
      for seed in seeds { try invocation.run(seed: seed, on: nil, &sums) }
    }
    if sums.seeds > 1, !invocation.output.isJSON { try invocation.output.write(line: sums.line) }
    return sums.violations == 0 ? 0 : ExitCode.no.rawValue
  }
}

extension Invocation {
  /// Returns the kinds that `--on` names; nil without the option.
  fileprivate func machines() throws -> [Machine.Kind]? {
    guard let text = value(.on) else { return nil }
    if text == "all" { return Machine.Kind.allCases }
    return try text.split(separator: ",").map { name in
      guard let kind = Machine.Kind(rawValue: String(name)) else {
        let names = Machine.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        throw Failure.usage("cannot run on '\(name)': the kinds are \(names) and all")
      }
      return kind
    }
  }

  /// Runs this command once more in namespaces of its own; returns nil if namespaces are not
  /// possible.
  fileprivate func runInside(_ kinds: [Machine.Kind]) -> Int32? {
    do {
      return try Machine.runInside()
    } catch {
      for kind in kinds { Self.skip(kind, error) }
      return nil
    }
  }

  private static func skip(_ kind: Machine.Kind, _ error: any Error) {
    try? StandardStream.error.write("SKIPPED: the stress on \(kind.rawValue): \(error)\n")
  }

  fileprivate func run(
    _ seeds: Range<UInt64>, on kind: Machine.Kind, _ sums: inout Sums
  ) throws {
    let folder = try Self.makeDirectory(in: Self.temporary)
    let machine: Machine
    do {
      machine = try Machine(kind, in: folder)
    } catch {
      Self.skip(kind, error)
      try StressFolder.remove(folder)
      return
    }
    let before = sums.kept
    for seed in seeds { try run(seed: seed, on: machine, &sums) }
    machine.unmount()
    // The folder may contain a stored run.
    if sums.kept == before || kind.isFileSystem { try StressFolder.remove(folder) }
  }

  private static var temporary: String { Processes.environment("TMPDIR") ?? "/tmp" }

  /// Runs the plan of one seed.
  fileprivate func run(seed: UInt64, on machine: Machine?, _ sums: inout Sums) throws {
    let directory = try Self.makeDirectory(in: machine?.path ?? Self.temporary)
    var plan = Plan(seed: seed, directory: directory)
    plan.processes = try number(.processes, least: 2) ?? plan.processes
    plan.duration = try seconds(.duration) ?? plan.duration
    plan.hasFaults = !has(.noFaults)
    plan.hasErrors = !has(.noErrors)
    plan.mutant = value(.mutant)
    if let name = plan.mutant, Plan.mutant(name) == nil {
      let names = Mutants.allCases.map(\.name).joined(separator: ", ")
      throw Failure.usage("cannot disable '\(name)': the mutants are \(names)")
    }
    plan.machine = machine?.kind
    // A quarter of the seeds, with each focus among them.
    let isSmall = seed % 4 == 1 && plan.machine?.isFileSystem != true
    let disk = isSmall ? SmallDisk(at: plan.small) : nil
    plan.isSmall = disk != nil
    if isSmall, disk == nil {
      output.tell("seed \(seed): the disk is never full: no file system can be mounted here")
    }
    let run = Run(plan)
    let begin = Instant.now
    let bar = StressProgress(output, plan)
    try run.run { bar.show($0) }
    bar.clear()
    let verdict = try Verdict(plan, run)
    try output.write(verdict, of: plan, run.harm, took: Instant.now - begin)
    sums.add(verdict, run.harm)
    let isKept = verdict.violations.isEmpty
    disk?.remove(keepingIn: isKept && !has(.keep) ? nil : directory)
    if isKept, !has(.keep) {
      try StressFolder.remove(directory)
    } else {
      sums.kept += 1
      var place = directory
      if let machine, machine.kind.isFileSystem {
        place = try Self.makeDirectory(in: Self.temporary)
        try machine.copy(directory, to: place)
      }
      output.tell("the container and the journals are in \(place)")
    }
  }

  private static func makeDirectory(in parent: String) throws -> String {
    var dice = SystemRandomNumberGenerator()
    return try StressFolder.make("\(parent)/wormhole-stress." + String(dice.next(), radix: 16))
  }
}

extension Output {
  fileprivate func write(
    _ verdict: Verdict, of plan: Plan, _ harm: Run.Harm, took time: Duration
  ) throws {
    var words = ["wormhole-stress", "run", "--seed", "\(plan.seed)"]
    words += ["--processes", "\(plan.processes)"]
    words += ["--duration", "\(plan.duration / .seconds(1))"]
    if let machine = plan.machine { words += ["--on", machine.rawValue] }
    if !plan.hasFaults { words.append("--no-faults") }
    if !plan.hasErrors { words.append("--no-errors") }
    if let mutant = plan.mutant { words += ["--mutant", mutant] }
    let line = words.joined(separator: " ")
    if isJSON {
      try write([
        "seed": .integer(Int64(plan.seed)), "processes": .integer(Int64(plan.processes)),
        "operations": .integer(Int64(verdict.operations)), "kills": .integer(Int64(harm.kills)),
        "stops": .integer(Int64(harm.stops)), "lives": .integer(Int64(harm.lives)),
        "fullDisks": .integer(Int64(harm.fills)), "floods": .integer(Int64(harm.floods)),
        "removals": .integer(Int64(harm.removals)), "on": .string(plan.machine?.rawValue ?? "here"),
        "lostInboxes": .integer(Int64(harm.inboxes)),
        "lostStagings": .integer(Int64(harm.stagings)),
        "accesses": .integer(Int64(verdict.accesses)),
        "takeovers": .integer(Int64(verdict.takeovers)), "clocks": .integer(Int64(harm.clocks)),
        "messages": .integer(Int64(verdict.messages)),
        "duplicates": .integer(Int64(verdict.duplicates)),
        "histories": .integer(Int64(verdict.histories)),
        "longestCall": .real(Double(verdict.longest.nanoseconds) / 1e6),
        "violations": .array(verdict.violations.prefix(100).map { .string($0.description) }),
        "replay": .string(line),
      ])
    } else {
      let longest = verdict.longest
      try write(
        line: (plan.machine.map { "\($0.rawValue): " } ?? "")
          + "seed \(plan.seed): \(verdict.operations) calls, \(harm.lives) lives, "
          + "\(harm.kills) kills, \(harm.stops) stops, \(harm.others), "
          + "\(verdict.messages) messages "
          + "(\(verdict.duplicates) redelivered), \(verdict.accesses) accesses "
          + "(\(verdict.takeovers) taken over), \(verdict.histories) histories; "
          + "longest call \(longest.nanoseconds / 1_000_000) ms (\(longest.call))")
      for violation in verdict.violations.prefix(20) { try write(line: "  \(violation)") }
      let rest = verdict.violations.dropFirst(20)
      if !rest.isEmpty {
        let kinds = Set(rest.map(\.kind.rawValue)).sorted().joined(separator: ", ")
        try write(line: "  and \(rest.count) more: \(kinds)")
      }
    }
    if !verdict.violations.isEmpty { tell("again: \(line)") }
  }
}

/// The progress of a run, for a viewer at a terminal.
private final class StressProgress {
  private let isShown: Bool
  private let plan: Plan
  private let begin = Instant.now
  private var shown = Instant(nanoseconds: 0)

  init(_ output: Output, _ plan: Plan) {
    isShown = !output.isQuiet && !output.isJSON && StandardStream.error.isTerminal
    self.plan = plan
  }

  func show(_ harm: Run.Harm) {
    guard isShown, Instant.now - shown > .milliseconds(500) else { return }
    shown = .now
    let seconds = Int((shown - begin) / .seconds(1))
    try? StandardStream.error.write(
      "\rseed \(plan.seed), \(seconds) s: \(harm.kills) kills, \(harm.stops) stops")
  }

  func clear() { if isShown { try? StandardStream.error.write("\r\u{1B}[K") } }
}

extension Option {
  static let seed = Option("seed", .any("N"), "first seed; random by default")
  fileprivate static let seeds = Option("seeds", .any("N"), "number of seeds, run in turn")
  fileprivate static let processes = Option(
    "processes", .any("N"), "number of processes; 6 by default")
  fileprivate static let duration = Option(
    "duration", .any("S"), "seconds for each seed; 10 by default")
  fileprivate static let on = Option(
    "on", .any("KINDS"), "kinds of machine to run on, separated by commas")
  fileprivate static let noFaults = Option("no-faults", nil, "kill and suspend only")
  fileprivate static let noErrors = Option("no-errors", nil, "let no call fail at fault points")
  static let mutant = Option("mutant", .any("NAME"), "mechanism to disable")
  fileprivate static let keep = Option("keep", nil, "keep the container and the journals")
}
