import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

@testable import WormholeBridge

/// Queues of other machines whose proxies are opened again after a failure, without servers.
@Suite(.blocking) struct ReopenedQueueTests {
  private let folder: TemporaryDirectory
  private static let home = "000000000000000a"

  init() throws { folder = try TemporaryDirectory() }

  /// The home's heartbeat comes before the bridge looks at its queues.
  @Test func theDirectoryThatReplacesARemovedOneIsUsed() throws {
    let one = try UnconnectedBridge(folder.path + "/m")
    try one.hear(Self.home, queues: ["jobs": 0])
    try #require(try one.names("queues/jobs").contains("away"))
    let outside = try Descriptor.open(path: folder.path, [.readOnly, .directory])
    try Descriptor.open(path: one.path + "/queues", [.readOnly, .directory])
      .rename("jobs", to: outside, "lost")
    try one.bridge.residents.reopen(Self.home)
    #expect(one.home(of: "jobs") == nil)
    try one.hear(Self.home, queues: ["jobs": 0])
    one.look()
    #expect(one.home(of: "jobs") == Self.home)
    #expect(try one.names("queues/jobs").contains("away"))
  }

  /// The system refuses the directories of some queues, and each of these has the reason.
  @Test func aQueueThatCannotBeOpenedHoldsUpNoOther() throws {
    let one = try UnconnectedBridge(folder.path + "/m")
    let closed = (0..<15).map { "closed\($0)" }
    var stated = ["jobs": 0]
    for name in closed { stated[name] = 0 }
    let rules = closed.map {
      FaultRule(.open, path: "queues/\($0)/away", persistent: true, .fail(.accessDenied))
    }
    try one.hear(Self.home, queues: stated)
    try one.bridge.residents.reopen(Self.home)
    FaultPoints.with(rules) { one.look() }
    #expect(Set(one.bridge.queues.worked.keys) == ["jobs"])
    #expect(Set(one.bridge.queues.conflicts.keys) == Set(closed))
    one.look()
    #expect(Set(one.bridge.queues.worked.keys) == Set(stated.keys))
    #expect(one.bridge.queues.conflicts.isEmpty)
  }

  /// Each failure of the flow opens the proxies again: the home is not heard anew by that.
  @Test func theSilenceOfTheHomeCountsOn() throws {
    let one = try UnconnectedBridge(folder.path + "/m")
    try one.hear(Self.home, queues: ["jobs": 0])
    let first = try #require(one.bridge.queues.worked["jobs"])
    try one.bridge.residents.reopen(Self.home)
    one.look()
    let second = try #require(one.bridge.queues.worked["jobs"])
    #expect(second.queue !== first.queue)
    #expect(second.queue.proxy === one.bridge.residents[.queue("jobs")])
    #expect(second.heard == first.heard)
  }
}
