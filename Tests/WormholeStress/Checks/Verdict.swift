import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The journals of a run, compared with the promises.
struct Verdict: Sendable {
  private(set) var violations: [Violation] = []
  private(set) var operations = 0
  private(set) var histories = 0
  private(set) var messages = 0
  private(set) var duplicates = 0
  /// The number of accesses to files, and the number of accesses that were taken over.
  private(set) var accesses = 0
  private(set) var takeovers = 0
  /// The longest call, and its duration without the time for which its process was suspended.
  private(set) var longest: (call: String, nanoseconds: Int64) = ("", 0)

  /// A call may wait for the lease of each other process, and for a busy host.
  private static let longestCall: Int64 = 20_000_000_000

  init(_ plan: Plan, _ run: Run) throws {
    violations = run.violations
    let journals = try (0..<plan.processes).map { try Journal.read(plan.journal($0)) }
    var channels: [String: ChannelHistory] = [:]
    var counters: [String: CounterHistory] = [:]
    var mail = MailHistory()
    mail.mayFail = plan.isSmall
    mail.lost = run.losses.last.map { (plan.name(plan.bereft), $0.upperBound) }
    var jobs = JobHistory()
    var accesses = AccessHistory()
    for (worker, entries) in journals.enumerated() {
      let calls = MadeCall.calls(of: worker, in: entries)
      accesses.add(entries, calls: calls)
      var idle = Int64.min
      for call in calls {
        // The end of the previous call.
        let since = idle
        idle = call.end == .max ? call.begin : call.end
        operations += 1
        mail.add(call)
        jobs.add(call)
        look(at: call, run.pauses[worker])
        switch call.operation {
        case .put(let name, _, _), .clear(let name), .read(let name):
          channels[name, default: ChannelHistory(name)].add(call, since: since)
        case .add(let name): counters[name, default: CounterHistory(name)].add(call)
        default: break
        }
      }
    }
    for (worker, entries) in journals.enumerated() {
      mail.receive(entries, as: plan.name(worker))
      jobs.handle(entries, as: plan.name(worker))
      violations += HoldingHistory(worker, entries).violations
    }
    mail.close()
    jobs.close()
    violations += mail.violations + jobs.violations
    (messages, duplicates) = (mail.count + jobs.count, mail.duplicates)
    histories = channels.count + counters.count + accesses.files.count
    violations += accesses.violations(last: run.lastContents)
    (self.accesses, takeovers) = (accesses.count, accesses.takeovers)
    // The repair comes first: if it removes too much, the checks below report the loss.
    violations += try Self.leftovers(plan) + plan.files.leftovers()
    try judge(plan, channels, counters)
  }

  private mutating func judge(
    _ plan: Plan, _ channels: [String: ChannelHistory], _ counters: [String: CounterHistory]
  ) throws {
    let container = try SharedContainer(directory: plan.container, options: Plan.options())
    try judgeStray(container)
    for (name, history) in channels.sorted(by: { $0.key < $1.key }) {
      let latest = try container.channel(name, of: Payload.self).latest
      var history = history
      let now = Instant.now.nanoseconds
      history.add(
        MadeCall(
          worker: -1, operation: .read(channel: name), begin: now, end: now,
          result: .version(latest?.metadata.version ?? 0, latest?.value?.token ?? "-")))
      violations += history.violations()
    }
    for (name, history) in counters.sorted(by: { $0.key < $1.key }) {
      let last = try container.channel(name, of: Int.self).value ?? 0
      violations += history.violations(last: last)
    }
  }

  /// Checks that values are put and read as before in the channel whose directory was removed and
  /// replaced.
  private mutating func judgeStray(_ container: SharedContainer) throws {
    let channel = container.channel(Plan.stray, of: Payload.self)
    try channel.put(Payload("last"))
    if try channel.value?.token != "last" {
      violations.append(Violation(.lost, "'\(channel.name)' does not hold what was put last"))
    }
  }

  private mutating func look(at call: MadeCall, _ pauses: [ClosedRange<Int64>]) {
    guard call.end != .max else { return }
    let time = call.time(without: pauses)
    if time > longest.nanoseconds { longest = (call.operation.words[0], time) }
    if time > Self.longestCall {
      violations.append(
        Violation(
          .stuck,
          "worker \(call.worker) waited \(time / 1_000_000) ms for '\(call.operation.words[0])'"))
    }
  }

  /// Returns the remains in the container after all processes have ended.
  private static func leftovers(_ plan: Plan) throws -> [Violation] {
    let container = try SharedContainer(directory: plan.container, options: Plan.options())
    _ = try container.storage.repair()
    _ = container.sweepFiles(isLooking: false)
    let findings =
      try container.storage.inspect() + container.inspectMail()
      + container.sweepFiles(isLooking: true)
    // A small disk has little space on purpose.
    var found = findings.filter { $0.severity == .problem && !($0.subject == "file system") }
      .map { Violation(.leak, "\($0.subject): \($0.what)") }
    for name in try Descriptor.open(path: plan.container + "/staging", [.readOnly, .directory])
      .names()
    where try isFile(name, in: plan.container + "/staging") {
      found.append(Violation(.leak, "'\(name)' is left in staging"))
    }
    return found
  }

  private static func isFile(_ name: String, in path: String) throws -> Bool {
    let directory = try Descriptor.open(path: path, [.readOnly, .directory])
    return try directory.status(of: name).kind == .regular
  }
}
