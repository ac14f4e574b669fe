import TestSupport
import TestTraits
import Testing
import WormholeRelay
import WormholeSyscalls

/// The client against a server that drops, delays, repeats, cuts, and states untruths.
@Suite(.blocking) struct LyingServerTests {
  /// Longer than all time limits of the client that may follow one another.
  static let bound = Duration.seconds(60)

  @Test func anHonestServerIsServedWithoutTrouble() throws {
    let round = try LyingRound(seed: 1, messages: 1200, lies: .none)
    try round.run("all messages are read", within: .seconds(10)) { round.isComplete }
    #expect(round.reader?.restarts == 0)
    #expect(round.server.counts.connections == 1 && round.server.counts.consumers == 1)
    #expect(round.server.counts.pulls == 3)
    // For an hour nothing happens.
    let pulls = round.server.counts.pulls
    let end = round.now + .seconds(3600)
    try round.run("an hour passes", within: .seconds(3700)) { round.now >= end }
    #expect(round.server.counts.connections == 1 && round.server.counts.consumers == 1)
    #expect(round.server.counts.pulls - pulls <= 121)
    try round.finish()
  }

  @Test func liesChangeNothing() throws {
    let seed = TestRun.seed
    var deaths = 0
    var restarts = 0
    for number in 0..<UInt64(TestRun.isLong ? 10_000 : 300) {
      let round = try LyingRound(seed: seed &+ number)
      do {
        let end = round.now + .seconds(15)
        try round.run("lies", within: .seconds(16)) { round.now >= end }
        restarts += round.reader?.restarts ?? 0
        round.server.isHonest = true
        try round.run("all messages are read", within: Self.bound) { round.isComplete }
        try round.finish()
      } catch {
        Issue.record("round \(number), WORMHOLE_SEED=\(seed): \(error)")
        if deaths == 0 { break }
      }
      deaths += round.closeReasons.count
    }
    #expect(deaths > 100 && restarts > 100, "the lies had an effect")
  }
}
