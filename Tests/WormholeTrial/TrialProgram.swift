import TestSupport
import WormholeCommandLine
import WormholeSyscalls

/// The program behind `wormhole bridge trial`, a program of its own since the command has no use
/// for servers, certificates and networks.
@main enum TrialProgram {
  static func main() { Table.trial.main(defaulting: "run") }
}

extension Table {
  /// The verbs and options of the program.
  fileprivate static let trial = Table(
    "WormholeTrial", "0.1.0", "try bridges between machines over servers that die",
    synopsis: "[--quiet]",
    purpose: "Tries the promises of 'wormhole bridge' while machines and servers die.",
    details: ["'wormhole bridge trial' runs this program."],
    options: [.quiet],
    variables: [("WORMHOLE_NATS_SERVER", "the server's program, if it is not in PATH")],
    statuses: [
      ("0", "every promise was kept"), ("1", "a promise was broken"),
      ("64", "the command line is invalid"), ("69", "a program is missing"),
      ("77", "the user may not make network namespaces"),
    ],
    verbs: [
      ("run", { .run }), ("help", { .help(of: "WormholeTrial", example: "run") }),
    ])
}

extension Option {
  fileprivate static let messages = Option(
    "messages", .any("N"), "number of messages; 480 by default")
  fileprivate static let seed = Option("seed", .any("N"), "seed of the trial; random by default")
}

extension Verb {
  fileprivate static let run = Verb(
    "run", "run one trial", [], [.messages, .seed],
    ["Starts three servers and three machines, and compares what arrives with what was sent."],
    [Example("WormholeTrial --messages 20000", "about six minutes")]
  ) { invocation in
    let plan = Trial.Plan(messages: try invocation.number(.messages, least: 60) ?? 480)
    let seed = try invocation.value(.seed).map { text throws(Failure) in
      guard let seed = UInt64(text) else {
        throw Failure.usage("cannot use --seed \(text): not a number")
      }
      return seed
    }
    try Needs.check()
    let running = Monitor<TestHub?>(nil)
    try Interruption.prepare(cleanUp: { running.withLock { $0 }?.stop() })
    let chosen = seed ?? UInt64.random(in: 1 ... .max)
    invocation.output.tell(
      "starting three servers and three machines; the same again: --messages \(plan.messages) "
        + "--seed \(chosen)")
    guard let hub = try TestHub.start(TestHub.Options(machines: 3), for: "the trial") else {
      throw Needs.missing("nats-server")
    }
    running.withLock { $0 = hub }
    defer { hub.stop() }
    guard hub.network != nil else { throw Needs.noNetwork }
    invocation.output.tell(
      "messages are sent while machines and servers die, for about "
        + "\(Int(plan.time / .seconds(1))) s")
    let result = try Trial(BridgedHub(hub), plan, seed: chosen).run()
    for problem in result.problems { try invocation.output.write(line: "problem: \(problem)") }
    try invocation.output.write(line: result.summary)
    return result.problems.isEmpty ? 0 : ExitCode.no.rawValue
  }
}

/// What a trial needs of the machine.
private enum Needs {
  static func check() throws(Failure) {
    let given = Processes.environment("WORMHOLE_NATS_SERVER") ?? ""
    let server = given.isEmpty ? Programs.installed("nats-server") : given
    guard let server, isProgram(server) else {
      throw missing(given.isEmpty ? "nats-server" : given)
    }
    guard isProgram(Programs.built("wormhole")) else { throw missing("wormhole") }
    for program in ["ip", "nsenter", "openssl"] where Programs.installed(program) == nil {
      throw missing(program)
    }
    guard Processes.effectiveUser == 0 else { throw noNetwork }
  }

  private static func isProgram(_ path: String) -> Bool {
    (try? Processes.checkProgram(path)) != nil
  }

  static func missing(_ program: String) -> Failure {
    let hint =
      switch program {
      case "wormhole": "put the command beside this program"
      case "nats-server": "install it, or name it in WORMHOLE_NATS_SERVER"
      default: "install it"
      }
    return Failure(
      .unavailable, "trial",
      "cannot try bridges between machines: there is no program '\(program)'; \(hint)")
  }

  static let noNetwork = Failure(
    .refused, "trial",
    "cannot try bridges between machines: this user may not make the network namespaces that "
      + "stand for machines; run the command as root, outside of a container")
}
