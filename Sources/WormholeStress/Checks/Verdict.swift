import SharedContainer
import Syscalls
import Wormhole

/// What the journals of a run say, held against what was promised.
struct Verdict: Sendable {
  private(set) var violations: [Violation] = []
  private(set) var operations = 0
  private(set) var histories = 0
  private(set) var messages = 0
  private(set) var duplicates = 0
  /// Accesses to files, and how many of them others took over.
  private(set) var accesses = 0
  private(set) var takeovers = 0
  /// How long the longest call took, without the time for which its process was stopped, and which
  /// it was.
  private(set) var longest: (call: String, nanoseconds: Int64) = ("", 0)

  /// A call may wait for the lease of each of the others, and for a busy machine.
  private static let longestCall: Int64 = 20_000_000_000

  init(_ plan: Plan, _ run: Run) throws {
    violations = run.violations
    let journals = try (0..<plan.processes).map { try Journal.read(plan.journal($0)) }
    var channels: [String: ChannelHistory] = [:]
    var counters: [String: CounterHistory] = [:]
    var mail = MailHistory()
    mail.mayFail = plan.isSmall
    mail.lost = run.losses.last.map { (plan.name(plan.bereft), $0.upperBound) }
    var accesses = AccessHistory()
    for (worker, entries) in journals.enumerated() {
      let calls = MadeCall.calls(of: worker, in: entries)
      accesses.add(entries, calls: calls)
      var idle = Int64.min
      for call in calls {
        // When the call before it had ended.
        let since = idle
        idle = call.end == .max ? call.begin : call.end
        operations += 1
        mail.add(call)
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
      violations += HoldingHistory(worker, entries).violations
    }
    mail.close()
    violations += mail.violations
    (messages, duplicates) = (mail.count, mail.duplicates)
    histories = channels.count + counters.count + accesses.files.count
    violations += accesses.violations(last: run.lastContents)
    (self.accesses, takeovers) = (accesses.count, accesses.takeovers)
    // First, so that what it takes too much is missed.
    violations += try Self.leftovers(plan) + plan.files.leftovers()
    try judge(plan, channels, counters)
  }

  private mutating func judge(
    _ plan: Plan, _ channels: [String: ChannelHistory], _ counters: [String: CounterHistory]
  ) throws {
    let hole = try Wormhole(directory: plan.container, options: Plan.options())
    try judgeStray(hole)
    for (name, history) in channels.sorted(by: { $0.key < $1.key }) {
      let latest = try hole.channel(name, of: Payload.self).latest
      var history = history
      let now = Instant.now.nanoseconds
      history.add(
        MadeCall(
          worker: -1, operation: .read(channel: name), begin: now, end: now,
          result: .version(latest?.metadata.version ?? 0, latest?.value?.token ?? "-")))
      violations += history.violations()
    }
    for (name, history) in counters.sorted(by: { $0.key < $1.key }) {
      let last = try hole.channel(name, of: Int.self).value ?? 0
      violations += history.violations(last: last)
    }
  }

  /// Where the directory was removed and replaced, values are put and read as before.
  private mutating func judgeStray(_ hole: Wormhole) throws {
    let channel = hole.channel(Plan.stray, of: Payload.self)
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

  /// What lies in the container when nobody uses it any more.
  private static func leftovers(_ plan: Plan) throws -> [Violation] {
    let hole = try Wormhole(directory: plan.container, options: Plan.options())
    _ = try hole.container.repair()
    _ = hole.sweepFiles(isLooking: false)
    let findings =
      try hole.container.inspect() + hole.inspectMail() + hole.sweepFiles(isLooking: true)
    // A small disk has little room, as it is meant to.
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
