import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// A file that cannot be read for a moment, for lack of a resource, is neither gone nor damaged.
@Suite(.blocking) struct UnreadableTests {
  private let pair: Pair
  private let rule = FaultRule(
    .open, path: "context/phone,next", persistent: true, .fail(.tooManyOpenFiles))

  init() throws { pair = try Pair() }

  /// The context might be compared with the wrong previous context, count as equal, and never
  /// arrive.
  @Test func aContextIsToldAgainIfTheLastCannotBeRead() throws {
    let heard = Heard<Int>()
    let watching = try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try pair.phone.setContext(1)
    try heard.wait("the first") { $0 == [1] }
    watching.stop()
    try pair.phone.setContext(2)
    var isTold = false
    try FaultPoints.with([rule]) { isTold = try pair.phone.setContext(1) }
    #expect(isTold)
    try pair.watch.watchContexts { heard.add((try? $0.value()) ?? -1) }
    try heard.wait("the last") { $0 == [1, 1] }
  }

  @Test func whatWaitsIsNotLeftOutOfWhatIsToldOfIt() throws {
    try pair.phone.setContext(1)
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try pair.phone.sentContext }
      #expect(throws: WormholeError.self) { try pair.phone.pendingContexts }
    }
    try pair.phone.send(1, .quick())
    try pair.watch.take(1)[0].acknowledge()
    let end = FaultRule(.open, path: "receipts/", persistent: true, .fail(.tooManyOpenFiles))
    let sender = pair.meeting.container.peer("phone")
    FaultPoints.with([end]) {
      #expect(throws: WormholeError.self) { try sender.pendingOutcomes }
    }
    #expect(try sender.pendingOutcomes.map(\.status) == [.delivered])
  }

  @Test func anEndIsToldWithWhatWasSentOnceItCanBeRead() throws {
    try pair.phone.send(1, .quick())
    pair.sender.leave()
    try pair.watch.take(1)[0].acknowledge()
    let sender = try Running(
      .outcomes(pair.meeting.path, "phone", count: 1),
      environment: ["WORMHOLE_FAULTS=open~receipts/1,@1:before:fail=EMFILE"])
    let output = try sender.outcome().output
    #expect(output.hasSuffix(" delivered of Int\n"))
    #expect(output.split(separator: "\n").count == 1)
  }

  /// Each subscriber plans a retry, and one retry serves all subscribers.
  @Test func howeverManyFindThatSomethingCannotBeDoneItIsTriedOnceASecond() throws {
    for round in 0..<20 {
      let rescans = Watcher.shared.rescanCount
      let time = try timeForThreeMore("till\(round)")
      // After an overflow, which another test may have caused, all watches rescan.
      guard Watcher.shared.rescanCount == rescans else { continue }
      #expect(time >= .milliseconds(1990))
      return
    }
    Issue.record("others have looked again all the time")
  }

  /// The time until twenty failed subscriptions are followed by three more failed tries.
  ///
  /// The first of them may be a run that was requested before, and had not begun.
  private func timeForThreeMore(_ name: String) throws -> Duration {
    let failed = Heard<LogEntry>()
    let till = try pair.meeting.another { $0.log = { failed.add($0) } }.join(as: name)
    try pair.watch.peer(name).setContext(1)
    let contexts = try pair.meeting.folder("members/\(name)/context")
    try contexts.makeDirectory("watch,taking", mode: 0o700)
    let begin = Instant.now
    for _ in 0..<20 { try till.watchContexts { _ in } }
    till.contexts.settle()
    let early = failed.count
    try failed.wait("three more") { $0.count >= early + 3 }
    let time = Instant.now - begin
    try contexts.removeDirectory("watch,taking")
    till.leave()
    return time
  }

}
