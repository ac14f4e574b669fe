import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeBridge

/// Changes that a machine asks of the home of a channel, while its bridge is killed.
@Suite(.blocking) struct ChangeQueueTests {
  private let directory: TemporaryDirectory
  private let container: SharedContainer
  private let answers = Heard<String>()

  init() throws {
    directory = try TemporaryDirectory()
    container = try SharedContainer(directory: directory.path)
  }

  /// The queue of the next bridge.
  private func queue() throws -> ChangeQueue {
    try ChangeQueue(BridgeFolder(["changes"], of: container.storage), "seats")
  }

  private func change(_ operation: String) -> Carrier.ChannelChange {
    Carrier.ChannelChange(channel: "seats", operation: operation, expected: 1, value: 2)
  }

  private func add(_ operation: String, to queue: ChangeQueue) {
    queue.add(change(operation)) { [answers] answer in
      answers.add("\(operation): \(answer.result.rawValue) \(answer.version)")
    }
  }

  @Test func theNextBridgeAsksForTheChangeInProgressFirst() throws {
    let first = try queue()
    add("a", to: first)
    add("b", to: first)
    try first.begin(1)
    #expect(first.current?.change.operation == "a")
    let second = try queue()
    #expect(second.current?.change.operation == "a")
    // The programs ask again under the same IDs.
    add("b", to: second)
    add("a", to: second)
    try second.begin(2)
    #expect(second.current?.change.operation == "a", "one after the other")
    second.end(Carrier.ChannelAnswer(.made, version: 2))
    #expect(answers.all == ["a: made 2"])
    try second.begin(3)
    #expect(second.current?.change.operation == "b")
  }

  /// The reply to the program was lost with the bridge; the home knows only the last change.
  @Test func aChangeThatWasMadeIsKnownToTheNextBridge() throws {
    let first = try queue()
    for (number, operation) in ["a", "b"].enumerated() {
      add(operation, to: first)
      try first.begin(number + 1)
      first.end(Carrier.ChannelAnswer(.made, version: number + 2))
    }
    add("c", to: first)
    try first.begin(3)
    let second = try queue()
    add("a", to: second)
    add("b", to: second)
    #expect(answers.all == ["a: made 2", "b: made 3", "a: made 2", "b: made 3"])
    #expect(second.waiting.isEmpty && second.current?.change.operation == "c")
  }

  /// The file is not synced: after a power cut it may have any content.
  @Test func aDamagedFileHoldsNothingUp() throws {
    let first = try queue()
    add("a", to: first)
    try first.begin(1)
    try directory.write("torn", to: "bridge/changes/seats.plist")
    let second = try queue()
    add("b", to: second)
    try second.begin(2)
    #expect(second.current?.change.operation == "b")
  }

  /// The home has moved while its reply was on its way: the next change is another one.
  @Test func aLateReplyIsNoAnswerToTheNextChange() throws {
    let queue = try queue()
    add("a", to: queue)
    add("b", to: queue)
    try queue.begin(1)
    queue.isAsking = true
    queue.end(Carrier.ChannelAnswer(.unreachable, reason: "the home has moved"))
    #expect(!queue.isAsking, "the next change need not wait for the reply")
    #expect(!queue.takesReply(to: 1))
    try queue.begin(2)
    queue.isAsking = true
    #expect(!queue.takesReply(to: 1) && queue.isAsking)
    #expect(queue.takesReply(to: 2) && !queue.isAsking)
    #expect(queue.current?.change.operation == "b")
  }

  @Test func aRefusedChangeIsNotAskedAgain() throws {
    let first = try queue()
    add("a", to: first)
    try first.begin(1)
    first.end(Carrier.ChannelAnswer(.refused, reason: "no"))
    #expect(try queue().current == nil)
  }

  /// The file has no change in progress since the home has moved, and the disk is full by now.
  @Test func aChangeThatIsForgottenEndsOnAFullDisk() throws {
    let queue = try queue()
    add("a", to: queue)
    try queue.begin(1)
    try queue.forget()
    let rule = FaultRule(.rename, path: "changes/seats.plist", persistent: true, .fail(.noSpace))
    FaultPoints.with([rule]) {
      queue.end(Carrier.ChannelAnswer(.unreachable, reason: "the home has moved"))
    }
    #expect(answers.all.map { $0.prefix(14) } == ["a: unreachable"])
    #expect(queue.current == nil)
  }

  /// The file then has no change in progress, and still has those that were made before.
  @Test func aRefusedChangeLeavesTheEarlierOnesKnown() throws {
    let first = try queue()
    add("a", to: first)
    try first.begin(1)
    first.end(Carrier.ChannelAnswer(.made, version: 2))
    add("b", to: first)
    try first.begin(2)
    first.end(Carrier.ChannelAnswer(.refused, reason: "no"))
    let second = try queue()
    // The reply to the program was lost with the bridge.
    add("a", to: second)
    #expect(answers.all.filter { $0.hasPrefix("a") } == ["a: made 2", "a: made 2"])
    #expect(second.waiting.isEmpty && second.current == nil)
  }

  /// A bridge that took the changes for read would never ask for them again.
  @Test func theChangesOfAnEarlierBridgeAreReadAfterAFailure() throws {
    let earlier = try queue()
    add("a", to: earlier)
    try earlier.begin(1)
    let one = try UnconnectedBridge(directory.path)
    let rule = FaultRule(
      .open, path: "bridge/changes", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) { one.bridge.readChanges() }
    #expect(one.bridge.channels.queues.isEmpty)
    one.bridge.readChanges()
    #expect(one.bridge.channels.queues["seats"]?.current?.change.operation == "a")
  }
}
