import TestSupport
import WormholeSyscalls

/// A trial of bridges: three machines, three servers, and everything dies.
///
/// No acknowledged message may be lost, none may arrive twice unmarked, and each receiver must have
/// the messages of a sender in their order.
final class Trial {
  /// How much is sent, and for how long faults happen.
  struct Plan {
    let messages: Int
    let mostLines: Int
    let time: Duration
    /// The milliseconds between two faults.
    let pause: ClosedRange<Int>
    /// How long everything may take to arrive after the last fault.
    let patience: Duration

    /// The larger the trial, the more messages are sent in a second.
    init(messages: Int) {
      self.messages = messages
      mostLines = max(10, messages / 220)
      time = .seconds(min(Double(messages) / 19, 25) + Double(max(0, messages - 480)) / 71)
      pause = messages > 2000 ? 200...1200 : 100...700
      patience = .seconds(messages > 2000 ? 600 : 240)
    }
  }

  struct Result {
    /// What was not as promised.
    let problems: [String]
    let summary: String
  }

  private let bridged: BridgedHub
  private let plan: Plan
  private let seed: UInt64
  private let cast: TrialCast
  private let faults: TrialFaults

  init(_ bridged: BridgedHub, _ plan: Plan, seed: UInt64) {
    (self.bridged, self.plan, self.seed) = (bridged, plan, seed)
    cast = TrialCast(bridged.machines)
    faults = TrialFaults(bridged, cast, seed: seed)
  }

  func run() throws -> Result {
    try cast.startReceivers()
    try bridged.waitUntilAllAreSeen()
    let start = Instant.now
    try disturb()
    try faults.proceed(isOver: true)
    let healed = Instant.now
    var problems: [String] = []
    if try !settle() { problems.append("not all is settled: \(try rest())") }
    problems += try check()
    let seconds = { (from: Instant, to: Instant) in Int((to - from) / .seconds(1)) }
    let drawn = faults.counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    let summary =
      "trial with seed \(seed): \(cast.started) messages, \(cast.acknowledged.count) acknowledged, "
      + "\(cast.killed) senders killed, \(cast.notified) waits notified, "
      + "\(seconds(start, healed)) s of faults and \(seconds(healed, .now)) s more; "
      + drawn.joined(separator: ", ")
    return Result(problems: problems, summary: summary)
  }

  /// Sends at an even pace, while one fault follows the other.
  private func disturb() throws {
    var random = SeededRandom(seed: seed &+ 1)
    let start = Instant.now
    var nextFault = start + .seconds(1)
    let share = plan.messages / cast.senders.count
    while true {
      let now = Instant.now
      let part = min(1, (now - start) / plan.time)
      // Senders wait while inboxes are full, so that the last ones may begin late.
      if part >= 1,
        cast.senders.allSatisfy({ $0.next > share }) || now > start + plan.time * 2
      {
        return
      }
      try cast.collect()
      try cast.startReceivers()
      try faults.proceed()
      for sender in cast.senders
      where sender.process == nil && sender.next <= Int(Double(share) * part) {
        let count = Int.random(in: 1...plan.mostLines, using: &random)
        let life = Int.random(in: 0..<120, using: &random)
        try cast.send(
          count, sender, syncs: Bool.random(using: &random),
          life: life < 40 ? .milliseconds(life) : nil)
      }
      if cast.waiters.count < 8, cast.waiting < Int(Double(share) * part) {
        let from = Int.random(in: 0..<3, using: &random)
        try cast.sendAndWait(from: from, to: (from + Int.random(in: 1...2, using: &random)) % 3)
      }
      if nextFault <= now {
        try faults.strike()
        nextFault = now + .milliseconds(Int.random(in: plan.pause, using: &random))
      }
      pause()
    }
  }

  private func pause() {
    let _: Void? = Monitor(()).wait(until: .now + .milliseconds(10)) { _ in nil }
  }

  /// Waits until all processes that send have ended, and nothing is on its way.
  private func settle() throws -> Bool {
    let end = Instant.now + plan.patience
    while Instant.now < end {
      try cast.collect()
      try cast.startReceivers()
      try faults.proceed()
      if cast.waiters.isEmpty, cast.senders.allSatisfy({ $0.process == nil }),
        try bridged.machines.allSatisfy({ try $0.pending().isEmpty })
      {
        return true
      }
      for _ in 0..<10 { pause() }
    }
    return false
  }

  private func rest() throws -> String {
    let pending = try bridged.machines.map { "\($0.node): \(try $0.pending().prefix(8))" }
    return pending.joined(separator: "\n") + "\n" + (try bridged.report())
  }

  private func check() throws -> [String] {
    var problems: [String] = []
    var arrived: Set<String> = []
    for number in cast.machines.indices {
      var last: [Substring: Int] = [:]
      for arrival in try cast.arrivals(at: number) {
        let parts = arrival.text.split(separator: ".")
        guard parts.count == 3, let count = Int(parts[2]) else {
          problems.append("'\(arrival.text)' was never sent")
          continue
        }
        if parts[1] != "\(number)" { problems.append("\(arrival.text) is at \(number)") }
        guard arrived.insert(arrival.text).inserted else {
          if !arrival.isMarked { problems.append("\(arrival.text) arrived twice") }
          continue
        }
        // Each process that waits is a sender of its own.
        guard arrival.text.first == "l" else { continue }
        if count <= last[parts[0]] ?? 0 { problems.append("\(arrival.text) arrived too late") }
        last[parts[0]] = count
      }
    }
    let lost = cast.acknowledged.subtracting(arrived)
    if !lost.isEmpty { problems.append("lost: \(lost.sorted())") }
    // Otherwise the trial shows nothing.
    if cast.acknowledged.count <= cast.started / (plan.messages < 480 ? 5 : 2) {
      problems.append("only \(cast.acknowledged.count) of \(cast.started) were acknowledged")
    }
    if cast.notified == 0 { problems.append("no process was notified") }
    return problems + cast.failures + faults.failures
  }
}
