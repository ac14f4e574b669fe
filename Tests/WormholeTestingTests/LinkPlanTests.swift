import TestTraits
import Testing
import Wormhole
import WormholeTesting

/// Plans, and their line.
@Suite struct LinkPlanTests {
  @Test(.blocking) func planIsReadFromItsLine() throws {
    var plan = LinkPlan(seed: 18_446_744_073_709_551_615)
    #expect(plan.description == "seed=18446744073709551615")
    plan.drop = 0.1
    plan.delay = 0.25
    plan.delays = .microseconds(1500) ... .seconds(2)
    plan.duplicate = 1e-3
    plan.reorder = 0.5
    plan.receiver = "my watch"
    plan.rediscovery = .nanoseconds(7)
    plan.window = .seconds(60)
    plan.faults = [3: .drop, 1: .delay(.milliseconds(5)), 2: .duplicate, 12: .reorder]
    #expect(LinkPlan(plan.description) == plan)
    #expect(plan.description.contains("delay=0.25:1500us-2s"))
    #expect(plan.description.hasSuffix("at=1:delay:5ms,2:duplicate,3:drop,12:reorder"))
    #expect(!plan.description.contains("\n"))
    #expect(LinkPlan("") == LinkPlan())
  }

  /// Their binary fractions have a sum of a little more than 1.
  @Test(.blocking) func sharesOfTogetherOneAreRead() {
    var plan = LinkPlan()
    (plan.drop, plan.delay, plan.duplicate, plan.reorder) = (0.05, 0.55, 0.3, 0.1)
    #expect(plan.drop + plan.delay + plan.duplicate + plan.reorder > 1)
    #expect(LinkPlan(plan.description) == plan)
    #expect(LinkPlan("drop=0.5 reorder=0.500001") == nil)
  }

  @Test(
    .blocking,
    arguments: [
      "seed=x", "seed", "drop=2", "drop=-1", "drop=0.6 delay=0.6:1ms-2ms", "delay=0.1",
      "delay=0.1:2ms-1ms", "delay=0.1:1-2", "at=0:drop", "at=1:vanish", "at=1", "at=1:delay",
      "colour=red", "window=1h", "window=99999999999999999999s",
    ])
  func otherLinesAreNone(_ line: String) {
    #expect(LinkPlan(line) == nil)
  }

  /// The faults in a run of twenty immediate messages.
  private func log(_ line: String) async throws -> [String] {
    let two = try await TwoMembers(plan: try #require(LinkPlan(line)), clock: TestClock())
    let heard = Heard<Int>()
    let watching = two.second.receiveImmediate { message in
      heard.add((try? message.value(as: Int.self)) ?? 0)
    }
    for number in 1...20 { try await two.toSecond.sendImmediately(number) }
    try await eventually("all to be heard or held up") {
      heard.count + two.link.log.count == 20
    }
    watching.stop()
    return two.link.log
  }

  @Test func sameSeedMakesTheSameFaults() async throws {
    let line = "seed=7 drop=0.2 reorder=0.1 delay=0.2:10ms-500ms"
    let log = try await log(line)
    #expect(log.count > 2)
    #expect(log.count < 18)
    #expect(try await self.log(line) == log)
    #expect(try await self.log("seed=8 drop=0.2 reorder=0.1 delay=0.2:10ms-500ms") != log)
    #expect(try await self.log("seed=7 drop=1 to=phone") == [])
  }
}
