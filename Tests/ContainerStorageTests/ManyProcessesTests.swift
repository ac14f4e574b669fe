import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// P2 and P3 among eight processes that all want the same lock all the time.
@Suite(.serialized, .blocking, .notSanitized("many processes at once"))
struct ManyProcessesTests {
  private static let size = 8
  private static let isLong = TestRun.isLong

  /// No update is lost or doubled, and every process gets its share.
  @Test func eightProcessesLoseNothingAndShare() throws {
    var best = 0.0
    for _ in 0..<3 where best < 0.2 {
      let crowd = try Crowd(Self.size, for: Self.isLong ? .seconds(30) : .seconds(2))
      let shares = try crowd.shares()
      let counts = shares.map(\.count)
      let total = counts.reduce(0, +)
      #expect(total > 100, "they came to add at all")
      #expect(try crowd.sum() == total)
      #expect(crowd.acknowledged().sorted() == Array(1...total))
      let fairness = Double(counts.min()!) / Double(counts.max()!)
      best = max(best, fairness)
      let longest = shares.map(\.longest).max()!
      try say("\(total) updates, least to most served \(fairness), longest wait \(longest)")
    }
    #expect(best >= 0.2, "the least served of eight gets a fifth of the most served")
  }

  /// A process that has just unlocked is faster than the waiter that its unlock wakes, and lets the
  /// waiter go first all the same.
  ///
  /// The best of three, because on a busy machine one process may not run at all for a while.
  @Test func twoThatAddInALoopTakeTurns() throws {
    var best = 0.0
    for _ in 0..<3 where best < 0.5 {
      let crowd = try Crowd(2, for: .seconds(1))
      let counts = try crowd.shares().map(\.count)
      let fairness = Double(counts.min()!) / Double(counts.max()!)
      best = max(best, fairness)
      try say("two made \(counts[0]) and \(counts[1]) updates")
    }
    #expect(best >= 0.5, "the one gets half of the other's turns at least")
  }

  /// A stopped or killed process holds up no other process, and loses nothing but its own update.
  ///
  /// No run may lose an update. The longest wait is taken from the best of three runs, because a
  /// busy machine also makes processes wait without a stopped holder.
  @Test func stoppedAndKilledProcessesHoldUpNobody() throws {
    var seed = TestRun.seed
    var excess = Duration.seconds(1)
    for _ in 0..<3 where excess > .zero {
      try say("replay: WORMHOLE_SEED=\(seed) swift test --filter \(#function.dropLast(2))")
      var random = SeededRandom(seed: seed)
      excess = min(excess, try disturbedRun(&random))
      seed = random.next()
    }
    #expect(excess <= .zero, "beyond lease, bystander's delay and 150 ms")
  }

  /// Stops and kills half of the processes; returns by how much the other processes waited too
  /// long.
  private func disturbedRun(_ random: inout SeededRandom) throws -> Duration {
    let crowd = try Crowd(Self.size, for: Self.isLong ? .seconds(60) : .seconds(3))
    // Half of the processes are left alone: their waits are waits for other processes.
    let victims = 0..<Self.size / 2
    let bystander = try Bystander()
    let (stops, kills) = try disturb(crowd, victims, &random)
    let shares = try crowd.shares()
    let delay = bystander.allowance()
    let sums = crowd.acknowledged()
    let sum = try crowd.sum()
    #expect(stops + kills > 0)
    #expect(Set(sums).count == sums.count, "each acknowledged update counts once")
    #expect(sums.allSatisfy { (1...max(1, sum)).contains($0) })
    #expect((sums.count...sums.count + kills).contains(sum), "nothing is lost or doubled")
    for share in shares[victims.upperBound...] { #expect(share.count > 10, "it went on") }
    let longest = shares[victims.upperBound...].map(\.longest).max()!
    let limit = Crowd.lease + .milliseconds(150) + delay
    try say(
      "\(sum) updates, \(stops) stops, \(kills) kills, longest wait of the others \(longest), "
        + "limit \(limit)")
    return longest - limit
  }

  private func disturb(
    _ crowd: Crowd, _ victims: Range<Int>, _ random: inout SeededRandom
  ) throws -> (stops: Int, kills: Int) {
    var (stops, kills) = (0, 0)
    var next = crowd.start + .milliseconds(100)
    while next + .milliseconds(300) < crowd.end {
      wait(until: next)
      let victim = Int.random(in: victims, using: &random)
      if Bool.random(using: &random) {
        try crowd.replace(victim)
        kills += 1
      } else {
        // A process that has ended on its own reports the reason when its outcome is read.
        let child = crowd.members[victim].child
        try? child.send(.stop)
        wait(until: .now + .milliseconds(Int.random(in: 10...200, using: &random)))
        try? child.send(.go)
        stops += 1
      }
      // Far enough apart that a wait can fall victim to one disturbance, not to several.
      next = max(next, .now) + .milliseconds(Int.random(in: 100...200, using: &random))
    }
    return (stops, kills)
  }

  private func wait(until moment: Instant) {
    let _: Void? = Monitor(()).wait(until: moment) { _ in nil }
  }

  private func say(_ words: String) throws {
    try StandardStream.output.write("many processes: \(words)\n")
  }
}
