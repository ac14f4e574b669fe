import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeTesting

/// The state of a link when another process begins to use it, and lines that are no plans.
@Suite struct SharedLinkTests {
  /// The process hears of a cut from before its start, and of the repair.
  @Test func aCutFromBeforeTheStartHoldsInAnotherProcess() async throws {
    let container = try TemporaryContainer()
    let link = Link()
    link.cut(off: "watch")
    let process = try TestProcess(
      "TestPeer", PeerJob.linked("watch").arguments, in: container, link: link)
    try await process.waitForOutput("ready\n")
    // This member has no link: whatever is lost is lost in the other process.
    let watch = try await container.open().join(as: "tablet").peer("watch")
    _ = try await failure {
      _ = try await watch.request(1, as: Int.self, within: .milliseconds(300))
    }
    let sent = try await watch.send(40)
    #expect(try sent.state == .waiting)
    link.heal()
    #expect(try await sent.waitForStatus(within: .seconds(30)) == .delivered)
    try await process.waitForOutput("40\n")
    #expect(try await watch.request(1, as: Int.self, within: .seconds(30)) == 2)
    try process.kill()
  }

  /// Without the link's faults, the program would pass a test that it should not pass.
  @Test func aProgramWhosePlanCannotBeReadDoesNotRunWithoutIt() async throws {
    let container = try TemporaryContainer()
    let process = try TestProcess(
      "TestPeer", PeerJob.linked("watch").arguments, in: container, link: Link(),
      environment: ["WORMHOLE_TESTING_LINK_PLAN": "drop=2"])
    #expect(try await process.exitStatus() != .exited(0))
    #expect(try process.output == "")
    #expect(try process.standardError.contains("WORMHOLE_TESTING_LINK_PLAN is 'drop=2'"))
  }

  /// A name is in its escaped form, and no other form of it is taken.
  @Test(
    .blocking,
    arguments: [
      "to=%", "to=%4", "to=%zz", "to=%41", "to=a/b", "to=", "at=x:drop", "at=1:drop:1ms",
      "at=1:reorder:1ms", "at=-1:drop", "drop=nan", "delay=0.1:1ms", "delay=0.1:1ms-2ms-3ms",
      "window=-1ms", "rediscovery=1", "seed=-1", "seed=18446744073709551616",
    ])
  func aLineWithAnInvalidWordIsNoPlan(_ line: String) {
    #expect(LinkPlan(line) == nil)
    #expect(LinkPlan("seed=7 \(line) reorder=0.5") == nil)
  }

  @Test(.blocking) func theNameOfAReceiverIsUnescaped() {
    #expect(LinkPlan("to=my%20watch")?.receiver == "my watch")
    #expect(LinkPlan("to=a%2Fb")?.receiver == "a/b")
  }
}
