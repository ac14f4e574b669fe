import Foundation
import WormholeSyscalls

/// The program `wormhole-bench`.
@main enum Benchmarks {
  static let all: [any Benchmark.Type] = [
    EncodeMessage.self, DecodeMessage.self, EncodeArray.self, DecodeArray.self, EncodeValue.self,
    DecodeValue.self, Lock.self, AccessAlone.self, AccessPresented.self, Update.self,
    PutToWatch.self, AsyncSequences.self, PassToListen.self, SetDefault.self, SendOne.self,
    SendBatch.self, SendFile.self, DeliverFile.self, RequestRoundTrip.self, MessageWithReply.self,
    UserInfos.self, QueueSleeping.self, QueueComputing.self, QueueEmpty.self, QueueKeyed.self,
    PutRarely.self, FanOut.self, Fairness.self, AccessesWaiting.self, Senders.self, Backlog.self,
    Idle.self, Start.self,
  ]

  static let usage = """
    usage: wormhole-bench [--small | --large] [--json] [--gate | --once] [--plot FILE.svg]
                          [--compare SYSTEM] [--command PATH] [workload ...]

    Measures the library against a baseline in the same run; all workloads in both sizes by default.

      --small, --large   only this size
      --json             one object per line
      --ours             the library without the baseline, for a profiler
      --plot FILE.svg    also draw the medians of both sides
      --compare SYSTEM   beside redis, nats or sqlite; starts the server itself, and binds it to
                         the last processor; NATS on a port of the loopback, because its server
                         has no listener on a socket of the file system
      --command PATH     the command that 'start' measures, as one that is linked statically
      --gate             repeat what has a required ratio or a limit, and exit 1 if one is missed
      --once             one operation for each figure: whether the workloads run, not how fast

    workloads:

    """ + all.map { "  \($0.name)  \($0.summary)" }.joined(separator: "\n")

  /// The processes of the workloads, by their hidden arguments.
  private static let processes: [String: @Sendable ([String]) throws -> Void] = [
    UpdateProcess.argument: UpdateProcess.run, EchoProcess.argument: EchoProcess.run,
    RequestProcess.argument: RequestProcess.run, WorkingProcess.argument: WorkingProcess.run,
    WatchingProcess.argument: WatchingProcess.run, MailProcess.argument: MailProcess.run,
    DrainingProcess.argument: DrainingProcess.run, IdleProcess.argument: IdleProcess.run,
    RivalProcess.argument: RivalProcess.run, SendingProcess.argument: SendingProcess.run,
    CountingProcess.argument: CountingProcess.run,
    SubscribedProcess.argument: SubscribedProcess.run,
  ]

  static func main() {
    do {
      let arguments = Array(CommandLine.arguments.dropFirst())
      if let first = arguments.first, let run = processes[first] {
        return try run(Array(arguments.dropFirst()))
      }
      let options = try Options(arguments)
      if options.wantsHelp {
        print(usage)
        return
      }
      exit(try run(options) ? 0 : 1)
    } catch let error as Options.Failure {
      complain("cannot run '\(error.argument)': \(error.reason)\n\(usage)")
      exit(64)
    } catch {
      complain("cannot measure: \(error)")
      exit(70)
    }
  }

  /// Measures the requested workloads; returns false if the gate fails.
  private static func run(_ options: Options) throws -> Bool {
    var report = Report(machine: Machine.line)
    if !options.wantsJSON { print("\(report.machine)\n\(Report.heading)") }
    for type in options.benchmarks {
      for size in options.sizes {
        if options.isProfiled {
          try Outcome.run(type, size)
          continue
        }
        show("measuring \(type.name), \(size.rawValue)")
        let outcome: Outcome
        do {
          outcome = try Outcome.of(type, size, repetitions: options.isGate ? 5 : 1)
        } catch BenchmarkError.absent(let what) {
          complain("skipped \(type.name), \(size.rawValue): the machine has no '\(what)'")
          continue
        }
        show("")
        report.outcomes.append(outcome)
        if !options.wantsJSON { print(Report.lines(outcome)) }
      }
    }
    if options.wantsJSON { print(try report.json()) }
    if let path = options.plot {
      try Data(Plot(report).svg.utf8).write(to: URL(fileURLWithPath: path))
    }
    return !options.isGate || !report.outcomes.contains { $0.isMissed }
  }

  /// Shows the present work on standard error, if that is a terminal; nothing removes the line.
  private static func show(_ words: String) {
    guard StandardStream.error.isTerminal else { return }
    try? StandardStream.error.write("\r\u{1B}[K\(words)")
  }

  private static func complain(_ text: String) {
    FileHandle.standardError.write(Data((text + "\n").utf8))
  }
}

/// The options of the command line.
struct Options {
  struct Failure: Error {
    var argument: String
    var reason: String
  }

  static let once = "--once"
  static let command = "--command"

  var benchmarks: [any Benchmark.Type] = []
  var sizes = Size.allCases
  var wantsJSON = false
  var isGate = false
  var isProfiled = false
  var wantsHelp = false
  /// The path of the picture.
  var plot: String?

  init(_ arguments: [String]) throws {
    var arguments = arguments[...]
    while let argument = arguments.popFirst() {
      switch argument {
      case "--small": sizes = [.small]
      case "--large": sizes = [.large]
      case "--json": wantsJSON = true
      case "--ours": isProfiled = true
      case "--gate": isGate = true
      // `Measurement.isOnce` reads this option.
      case Self.once: break
      case "--plot":
        guard let path = arguments.popFirst(), path.hasSuffix(".svg") else {
          throw Failure(argument: argument, reason: "a path that ends in .svg is missing")
        }
        plot = path
      case "--compare":
        guard let name = arguments.popFirst(), let rival = Rival(rawValue: name) else {
          throw Failure(argument: argument, reason: "'redis', 'nats' or 'sqlite' is missing")
        }
        benchmarks += rival.benchmarks
      case Self.command:
        // `Start` reads the path.
        guard let path = arguments.popFirst(), FileManager.default.isExecutableFile(atPath: path)
        else { throw Failure(argument: argument, reason: "the path of a program is missing") }
      case "-h", "--help": wantsHelp = true
      default:
        guard !argument.hasPrefix("-") else {
          throw Failure(argument: argument, reason: "there is no such option")
        }
        guard let type = Benchmarks.all.first(where: { $0.name == argument }) else {
          throw Failure(argument: argument, reason: "there is no such workload")
        }
        benchmarks.append(type)
      }
    }
    if isGate, Measurement.isOnce {
      throw Failure(argument: Self.once, reason: "a gate needs more than one operation")
    }
    if benchmarks.isEmpty {
      benchmarks = isGate ? Benchmarks.all.filter { $0.isGated } : Benchmarks.all
    }
  }
}
