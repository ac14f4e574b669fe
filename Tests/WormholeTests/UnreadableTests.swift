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

  /// Thousands of receipts may wait for a listener, and are not listed at each attempt.
  @Test func aReceiptThatCannotBeReadIsTriedAgainAlone() throws {
    try withUnreadReceipt { phone, sent, heard, attempt in
      // An overflow, which another test may have caused, makes a run list all receipts.
      let isAlone = (0..<20).contains { _ in !attempt().contains { $0.hasPrefix("getdents") } }
      #expect(isAlone)
      #expect(!sent.hasEnded)
    }
  }

  /// A program has cleared the outcomes, which are not reported then.
  @Test func anUnreadReceiptThatIsClearedIsNotReported() throws {
    try withUnreadReceipt { phone, sent, heard, attempt in
      let cleared = try phone.container.peer("phone").removePendingOutcomes()
      #expect(cleared == 1)
      // The file can be read by now: the attempt finds none.
      phone.outbox.worker.run()
      #expect(!sent.hasEnded)
      #expect(heard.all == [])
    }
  }

  /// Calls a body while a receipt, whose content a sender wants, could not be read.
  ///
  /// The body gets a closure that makes the next attempt, which fails too, and returns its calls.
  private func withUnreadReceipt(
    _ body: (Member, Sent, Heard<String>, () -> [String]) throws -> Void
  ) throws {
    let (heard, gate) = (Heard<String>(), Gate())
    let (phone, receipt, sent) = try pair.reportedToNextIncarnation()
    // No other thread reads the receipt.
    phone.container.background.soon { gate.pass() }
    try gate.waitForSomebody()
    try phone.outbox.expect(sent)
    let rule = FaultRule(.open, path: receipt.text, persistent: true, .fail(.inputOutput))
    var watching: Subscription?
    try FaultPoints.with([rule]) { watching = try phone.watchOutcomes { heard.add($0.id) } }
    try body(phone, sent, heard) { FaultPoints.with([rule]) { phone.outbox.worker.run() } }
    gate.open()
    watching?.stop()
    phone.leave()
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

extension Pair {
  /// Sends a message that is handled after its sender has left; returns the next member with the
  /// sender's name, and the message with its receipt.
  func reportedToNextIncarnation() throws -> (phone: Member, receipt: ReceiptName, sent: Sent) {
    try phone.send("hello", .quick())
    let message = try watch.take(1)[0]
    sender.leave()
    try message.acknowledge()
    let next = try meeting.another().join(as: "phone")
    let file = try #require(try meeting.names("members/phone/receipts").first)
    let receipt = try #require(ReceiptName(file))
    let sent = Sent(SentName(receipt.name), to: watch.home, next.container, next.outbox)
    return (next, receipt, sent)
  }
}
