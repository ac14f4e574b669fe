import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// P2 and P3 through the module that users import: eight processes, ten thousand updates each in a
/// long run.
@Suite(.serialized, .blocking, .notSanitized("many processes at once"))
struct EightProcessesTests {
  private let meeting: Meeting
  private let sum: Channel<Int>
  private let times = TestRun.isLong ? 10_000 : 1_000

  init() throws {
    meeting = try Meeting()
    sum = meeting.container.channel("sum", of: Int.self)
  }

  private func counters(_ number: Int) throws -> [Running] {
    try (0..<number).map { _ in try Running(.count(meeting.path, "sum", times: times)) }
  }

  private func waitForAll(_ processes: [Running]) throws {
    for process in processes {
      let outcome = try process.outcome(within: .seconds(TestRun.isLong ? 1200 : 240))
      #expect(outcome.status == .exited(0), "\(outcome.errors)")
    }
  }

  @Test func theSumIsExact() throws {
    try waitForAll(try counters(8))
    #expect(try sum.value == 8 * times)
    #expect(try sum.latest?.version == 8 * times)
  }

  /// Seven processes count, and one of them is suspended in the middle for five seconds.
  ///
  /// In place of the eighth, a new process is killed every tenth of a second.
  @Test func theSumIsExactWhileOneIsStoppedAndOneIsKilled() throws {
    // One process suspends itself, because the process might end before a signal.
    let stopped = try Running(
      .count(meeting.path, "sum", times: times),
      environment: ["WORMHOLE_FAULTS=rename~sum/value.plist@100:before:stop"])
    let counting = try [stopped] + counters(6)
    let pause = Monitor(())
    func wait(_ time: Duration) { let _: Void? = pause.wait(until: .now + time) { _ in nil } }
    try stopped.waitUntilStopped()
    var said = 0
    var kills = 0
    let end = Instant.now + .seconds(5)
    // On a busy machine a process may not come to its first update in so short a time.
    while Instant.now < end || said == 0 && kills < 100 {
      let victim = try Running(.countAloud(meeting.path, "sum"))
      wait(.milliseconds(said == 0 ? 100 + 10 * kills : 100))
      try victim.child.send(.kill)
      said += try victim.outcome().output.split(separator: "\n").count
      kills += 1
    }
    try stopped.child.send(.go)
    try waitForAll(counting)
    let total = try #require(try sum.value)
    #expect(said > 0)
    // A killed process may have made an update that it had no time to print.
    #expect((7 * times + said...7 * times + said + kills).contains(total))
    #expect(try sum.latest?.version == total)
  }
}
