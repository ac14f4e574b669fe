import TestSupport
import WormholeSyscalls

/// The senders and receivers of a trial, and what they have said.
///
/// All of them are processes of the command, which the trial kills at any moment. A number is never
/// sent twice: whether a killed sender has sent a message is unknown.
final class TrialCast {
  /// One message as its receiver printed it.
  struct Arrival {
    let text: String
    let isMarked: Bool
  }

  /// Sends lines from one machine to a member of another one, one process after the other.
  final class LineSender {
    let (from, to): (Int, Int)
    var next = 1
    var process: Running?
    /// The numbers that the process sends.
    var range = 0..<0
    /// When the process is killed, if it still runs then.
    var end: Instant?

    init(_ from: Int, _ to: Int) { (self.from, self.to) = (from, to) }

    func text(_ number: Int) -> String { "l\(from).\(to).\(number)" }
  }

  /// Sends a message as a guest, and waits for its outcome.
  final class Waiter {
    let (from, to): (Int, Int)
    let text: String
    let process: Running

    init(_ from: Int, _ to: Int, _ text: String, _ process: Running) {
      (self.from, self.to, self.text, self.process) = (from, to, text, process)
    }
  }

  let machines: [BridgedHub.Machine]
  let senders: [LineSender]
  var waiters: [Waiter] = []
  var receivers: [Running?]
  private var printed: [[Arrival]]
  /// The messages whose command has reported that they are sent, or delivered.
  private(set) var acknowledged: Set<String> = []
  private(set) var notified = 0
  private(set) var started = 0
  /// How many messages were sent by processes that wait.
  private(set) var waiting = 0
  /// How many senders of lines were killed.
  private(set) var killed = 0
  /// Commands that ended in another way than they should.
  private(set) var failures: [String] = []

  init(_ machines: [BridgedHub.Machine]) {
    self.machines = machines
    let numbers = machines.indices
    senders = numbers.flatMap { from in
      numbers.filter { $0 != from }.map { LineSender(from, $0) }
    }
    receivers = machines.map { _ in nil }
    printed = machines.map { _ in [] }
  }

  private func command(_ machine: Int, _ words: [String], input: String = "") throws -> Running {
    try Running(
      Programs.built("wormhole"), ["--container", machines[machine].path, "--json"] + words,
      input: input)
  }

  // MARK: Receivers

  /// Starts each receiver that does not run.
  func startReceivers() throws {
    for (number, process) in receivers.enumerated() {
      if let process {
        guard process.hasEnded else { continue }
        let outcome = try process.outcome()
        if outcome.status != .signalled(9) { failures.append("receiver: \(outcome)") }
        printed[number] += Self.arrivals(outcome.output)
      }
      receivers[number] = try command(number, ["receive", "--as", machines[number].member])
    }
  }

  /// Everything that the receiver of a machine has printed.
  func arrivals(at number: Int) throws -> [Arrival] {
    try printed[number] + Self.arrivals(receivers[number]?.output ?? "")
  }

  /// A line without its end was not acknowledged.
  private static func arrivals(_ output: String) -> [Arrival] {
    output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { line in
      guard let start = line.firstRange(of: "\"value\":\"")?.upperBound,
        let end = line[start...].firstIndex(of: "\"")
      else { return nil }
      return Arrival(
        text: String(line[start..<end]), isMarked: line.contains("\"redelivered\":true"))
    }
  }

  // MARK: Senders

  /// Notes what the senders that have ended have reported.
  func collect() throws {
    for sender in senders {
      guard let process = sender.process else { continue }
      if let end = sender.end, end <= .now {
        try? process.child.send(.kill)
        sender.end = nil
      }
      guard process.hasEnded else { continue }
      sender.process = nil
      let outcome = try process.outcome()
      switch outcome.status {
      case .exited(0): acknowledged.formUnion(sender.range.map(sender.text))
      case .signalled(9):
        killed += 1
        let count = Self.counts(outcome.output).reduce(0, +)
        acknowledged.formUnion(sender.range.prefix(count).map(sender.text))
      default: failures.append("send --lines: \(outcome)")
      }
    }
    for waiter in waiters where waiter.process.hasEnded {
      let outcome = try waiter.process.outcome()
      switch outcome.status {
      case .exited(0):
        notified += 1
        acknowledged.insert(waiter.text)
      case .signalled(9): break
      default: failures.append("send --wait \(waiter.text): \(outcome)")
      }
    }
    waiters.removeAll { $0.process.hasEnded }
  }

  private static func counts(_ output: String) -> [Int] {
    output.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { line in
      guard let start = line.firstRange(of: "\"count\":")?.upperBound else { return nil }
      return Int(line[start...].prefix { $0.isNumber })
    }
  }

  /// Starts a process that sends the next lines.
  ///
  /// - Parameter life: how long it may take until it is killed.
  func send(
    _ count: Int, _ sender: LineSender, syncs: Bool, life: Duration? = nil
  ) throws {
    sender.end = life.map { .now + $0 }
    sender.range = sender.next..<sender.next + count
    sender.next += count
    started += count
    let input = sender.range.map { sender.text($0) + "\n" }.joined()
    sender.process = try command(
      sender.from,
      ["send", "--lines", "--to", machines[sender.to].member, "--from", "s\(sender.from)"]
        + (syncs ? [] : ["--no-sync"]), input: input)
  }

  /// Starts a process that waits for the outcome of its message.
  func sendAndWait(from: Int, to: Int) throws {
    (started, waiting) = (started + 1, waiting + 1)
    let text = "w\(from).\(to).\(waiting)"
    let process = try command(
      from, ["send", text, "--to", machines[to].member, "--wait", "--timeout", "900"])
    waiters.append(Waiter(from, to, text, process))
  }
}
