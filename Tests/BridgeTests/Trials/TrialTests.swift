import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Three machines, three servers, and everything dies: no acknowledged message is lost, none
/// arrives twice unmarked, and each receiver has the messages of a sender in their order.
@Suite(.blocking, .serialized, .notSanitized("about processes")) struct TrialTests {
  private struct Plan {
    let messages: Int
    let mostLines: Int
    let time: Duration
    let pause: ClosedRange<Int>
    let patience: Duration

    static let short = Plan(
      messages: 480, mostLines: 10, time: .seconds(25), pause: 100...700, patience: .seconds(240))
    static let long = Plan(
      messages: 20_000, mostLines: 90, time: .seconds(300), pause: 200...1200,
      patience: .seconds(600))
  }

  @Test(.enabled(if: TestRun.hasTime, "WORMHOLE_EXAMPLE=1 lets it run"))
  func whateverDiesNothingIsLostRepeatedOrReordered() throws {
    let plan = TestRun.isLong ? Plan.long : .short
    let what = "a trial of three machines"
    guard let bridged = try BridgedHub.start(3, for: what) else { return }
    let seed = TestRun.seed
    let cast = TrialCast(bridged.machines)
    try cast.startReceivers()
    try bridged.waitUntilAllAreSeen()
    let faults = TrialFaults(bridged, cast, seed: seed)
    let start = Instant.now
    try disturb(cast, faults, plan, seed)
    try faults.proceed(isOver: true)
    let healed = Instant.now
    let isSettled = try settle(bridged, cast, faults, plan)
    let rest = isSettled ? "" : try rest(bridged)
    #expect(isSettled, "seed \(seed): not settled: \(rest)")
    try check(cast, faults, "seed \(seed)")
    let seconds = { (from: Instant, to: Instant) in Int((to - from) / .seconds(1)) }
    let drawn = faults.counts.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value)" }
    print(
      "trial with seed \(seed): \(cast.started) messages, \(cast.acknowledged.count) acknowledged, "
        + "\(cast.killed) senders killed, \(cast.notified) waits notified, "
        + "\(seconds(start, healed)) s of faults and \(seconds(healed, .now)) s more; "
        + drawn.joined(separator: ", "))
  }

  /// Sends at an even pace, while one fault follows the other.
  private func disturb(
    _ cast: TrialCast, _ faults: TrialFaults, _ plan: Plan, _ seed: UInt64
  ) throws {
    var random = SeededRandom(seed: seed &+ 1)
    let start = Instant.now
    var nextFault = start + .seconds(1)
    let share = plan.messages / cast.senders.count
    while true {
      let now = Instant.now
      let part = min(1, (now - start) / plan.time)
      // Senders wait while inboxes are full, so that the last ones may begin late.
      if part >= 1,
        cast.senders.allSatisfy({ $0.next > share })
          || now > start + plan.time * 2
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
  private func settle(
    _ bridged: BridgedHub, _ cast: TrialCast, _ faults: TrialFaults, _ plan: Plan
  ) throws -> Bool {
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

  private func rest(_ bridged: BridgedHub) throws -> String {
    let pending = try bridged.machines.map { "\($0.node): \(try $0.pending().prefix(8))" }
    return pending.joined(separator: "\n") + "\n" + (try bridged.report())
  }

  private func check(_ cast: TrialCast, _ faults: TrialFaults, _ place: String) throws {
    var arrived: Set<String> = []
    for number in cast.machines.indices {
      var last: [Substring: Int] = [:]
      for arrival in try cast.arrivals(at: number) {
        let parts = arrival.text.split(separator: ".")
        guard parts.count == 3, let count = Int(parts[2]) else {
          Issue.record("\(place): '\(arrival.text)' was never sent")
          continue
        }
        #expect(parts[1] == "\(number)", "\(place): \(arrival.text) is at \(number)")
        guard arrived.insert(arrival.text).inserted else {
          #expect(arrival.isMarked, "\(place): \(arrival.text) arrived twice")
          continue
        }
        // Each process that waits is a sender of its own.
        guard arrival.text.first == "l" else { continue }
        #expect(count > last[parts[0]] ?? 0, "\(place): \(arrival.text) arrived too late")
        last[parts[0]] = count
      }
    }
    let lost = cast.acknowledged.subtracting(arrived)
    #expect(lost == [], "\(place): lost")
    #expect(cast.acknowledged.count > cast.started / 2, "\(place): too few were acknowledged")
    #expect(cast.notified > 0, "\(place): no process was notified")
    #expect(cast.failures == [], "\(place)")
    #expect(faults.failures == [], "\(place)")
  }
}
