import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeBridge

/// What a bridge states of queues, in heartbeats and in its status, without servers.
@Suite(.blocking) struct StatedQueueTests {
  private let folder: TemporaryDirectory
  private static let (first, second) = ("000000000000000a", "000000000000000b")

  init() throws { folder = try TemporaryDirectory() }

  private func home() throws -> UnconnectedBridge {
    let one = try UnconnectedBridge(folder.path + "/m")
    #expect(try Bridge.addQueue("jobs", of: one.container))
    one.look()
    return one
  }

  /// The workers of the other machine have ended, or the machine itself.
  @Test func whatNoWorkerHasAnyMoreIsLateNoMore() throws {
    let one = try home()
    let work = ["jobs": WorkerStatement(home: one.machine, room: 1, held: ["gone.1"])]
    let lender = QueueTraffic.Lender(queue: "jobs", machine: Self.first)
    try one.hear(Self.first, work: work)
    #expect(one.bridge.queues.late == [lender: ["gone.1"]])
    try one.hear(Self.second)
    #expect(one.bridge.queues.late == [lender: ["gone.1"]])
    try one.hear(Self.first)
    #expect(one.bridge.queues.late == [:])
    try one.hear(Self.first, work: work)
    #expect(one.bridge.queues.late == [lender: ["gone.1"]])
    one.bridge.showNobody()
    one.look()
    #expect(one.bridge.queues.late == [:])
  }
  @Test func theStatusNamesTheHomesAndTheirConflicts() throws {
    let one = try home()
    try one.hear(Self.first, queues: ["jobs": 0, "far": 0])
    try one.hear(Self.second, queues: ["far": 0])
    one.look()
    let own: PropertyListValue = [
      "home": .string(one.machine), "lent": 0, "refused": 0,
      "trouble": .string("its home is machine \(Self.first), too"),
    ]
    let far: PropertyListValue = [
      "home": .string(Self.first), "lent": 0,
      "trouble": .string(
        "the queue has more than one home: the machines \(Self.first) and \(Self.second)"),
    ]
    #expect(one.bridge.queueStatus == ["jobs": own, "far": far])
  }

  /// As after an error of the disk: what the files state stays unknown, and is not guessed.
  @Test func aDamagedFileHoldsUpItsOwnQueueOnly() throws {
    let words = Heard<String>()
    var options = Options()
    options.log = { words.add($0.text) }
    let one = try UnconnectedBridge(folder.path + "/m", options: options)
    #expect(try Bridge.addQueue("jobs", of: one.container))
    one.look()
    let files = try BridgeFolder([QueueList.folderName], of: one.container.storage)
    let damaged: [UInt8] = [1]
    for name in ["jobs", "late"] { try files.write("\(name).plist", damaged) }
    #expect(try Bridge.addQueue("far", of: one.container))
    for _ in 0..<3 { one.look() }
    #expect(one.bridge.queues.own == ["far", "jobs"], "what is known holds")
    #expect(one.bridge.queues.settled == ["far", "jobs"])
    let reason = "the file of the bridge is damaged"
    #expect(one.bridge.queues.unread.reasons == ["jobs": reason, "late": reason])
    #expect(one.bridge.queueStatus["late"]?["trouble"]?.stringValue == reason)
    #expect(words.all.count { $0.contains(reason) } == 2)
    // This machine may be the home.
    try one.hear(Self.first, queues: ["late": 0])
    #expect(one.home(of: "late") == nil)
    try files.remove("late.plist")
    try files.replace("jobs.plist", by: [:])
    one.look()
    #expect(one.bridge.queues.unread.reasons == [:] && one.bridge.queues.conflicts == [:])
    try one.hear(Self.first, queues: ["late": 0])
    #expect(one.home(of: "late") == Self.first)
  }
}
