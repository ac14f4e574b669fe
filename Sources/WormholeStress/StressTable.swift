import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Table {
  /// What `wormhole-stress` takes.
  static let stress = Table(
    "wormhole-stress", "0.1.0", "try to break the promises of Wormhole with many processes",
    synopsis: "[--json]",
    purpose: "Tries to break what Wormhole promises: many processes, and all that may befall them.",
    details: [
      "Processes change channels, send messages and files to each other and ask each other, while "
        + "they are killed and stopped and their calls fail. What each has done and seen is held "
        + "against what was promised."
    ],
    options: [.json, .quiet, .verbose], variables: [],
    statuses: [
      ("0", "every promise was kept"), ("1", "one was not"), ("64", "the command line is wrong"),
    ],
    verbs: [
      ("run", { .run }), ("explore", { .explore }), ("manual", { .manual(of: "wormhole-stress") }),
      ("help", { .help(of: "wormhole-stress", example: "run") }),
    ])
}

extension Verb {
  fileprivate static let run = Verb(
    "run", "run plans that seeds decide, and look whether all promises were kept", [],
    [.seed, .seeds, .processes, .duration, .on, .noFaults, .noErrors, .mutant, .keep],
    [
      "Each plan has a container of its own. Processes do what the seed says, are killed, stopped "
        + "and started again; then what is left comes to its end, and the journals of all are "
        + "looked through: whether each channel's history could have happened in some order, "
        + "whether every message that was sent has come, in its turn, once or marked, whether "
        + "nobody had to wait for too long, and whether nothing is left over.",
      "The seed decides what each process does and what befalls it; when exactly, the machine "
        + "does. So a run that failed may need some tries to fail again.",
      "With --on each seed runs on machines of other kinds, one after the other: ext4, xfs, btrfs, "
        + "tmpfs, overlay and fuse are file systems made for it, and with pids and users half of "
        + "the processes are in namespaces of their own; all is every one of them. It needs root; "
        + "what cannot be made is left out, and said. Whatever is mounted is seen by nobody else, "
        + "and goes with the program.",
      "Calls fail at fault points only where the program was built with them: in a debug build, or "
        + "with the trait FaultPoints.",
    ],
    [
      Example("wormhole-stress", "ten seconds, with a seed of its own"),
      Example("wormhole-stress run --seed 7 --seeds 20", "twenty plans, the first of seed 7"),
      Example("wormhole-stress run --mutant no-fence", "with a mechanism taken out"),
    ]
  ) { invocation in
    let first = try invocation.value(.seed).map { text throws(Failure) in
      guard let seed = UInt64(text) else {
        throw Failure.usage("cannot use --seed \(text): it is no number")
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
  /// The kinds that `--on` names; nil without it.
  fileprivate func machines() throws -> [Machine.Kind]? {
    guard let text = value(.on) else { return nil }
    if text == "all" { return Machine.Kind.allCases }
    return try text.split(separator: ",").map { name in
      guard let kind = Machine.Kind(rawValue: String(name)) else {
        let names = Machine.Kind.allCases.map(\.rawValue).joined(separator: ", ")
        throw Failure.usage("cannot run on '\(name)': there are \(names), and all of them as all")
      }
      return kind
    }
  }

  /// Runs this command once more in namespaces of its own; nil where there cannot be any.
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
      try Self.remove(folder)
      return
    }
    let before = sums.kept
    for seed in seeds { try run(seed: seed, on: machine, &sums) }
    machine.unmount()
    // What is kept may be in it.
    if sums.kept == before || kind.isFileSystem { try Self.remove(folder) }
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
      let names = Mutants.named.map(\.name).joined(separator: ", ")
      throw Failure.usage("cannot take out '\(name)': there are \(names)")
    }
    plan.machine = machine?.kind
    // Of each kind of run some.
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
      try Self.remove(directory)
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
    let name = "wormhole-stress." + String(dice.next(), radix: 16)
    do throws(Errno) {
      try Descriptor.open(following: parent, [.readOnly, .directory])
        .makeDirectory(name, mode: 0o700)
    } catch {
      throw WormholeError(error, "make directory", "\(parent)/\(name)")
    }
    return "\(parent)/\(name)"
  }

  private static func remove(_ directory: String) throws {
    let child = try Child.spawn("rm", ["-rf", "--", directory])
    _ = try child.wait()
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
          + "(\(verdict.duplicates) came again), \(verdict.accesses) accesses "
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

/// How far a run has come, for whoever looks on at a terminal.
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
  static let seed = Option("seed", .any("N"), "the first seed; a random one otherwise")
  fileprivate static let seeds = Option("seeds", .any("N"), "how many seeds, one after the other")
  fileprivate static let processes = Option("processes", .any("N"), "how many processes; 6")
  fileprivate static let duration = Option("duration", .any("S"), "seconds for each seed; 10")
  fileprivate static let on = Option(
    "on", .any("KINDS"), "run on these kinds of machine, with commas between")
  fileprivate static let noFaults = Option("no-faults", nil, "kill and stop only")
  fileprivate static let noErrors = Option("no-errors", nil, "let no call fail at fault points")
  static let mutant = Option("mutant", .any("NAME"), "take that mechanism out")
  fileprivate static let keep = Option("keep", nil, "leave the container and the journals there")
}
