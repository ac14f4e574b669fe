import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// A member whose listing of its messages or receipts the system refuses for a moment.
@Suite(.blocking) struct RefusedListingTests {
  @Test func aRefusedListingOfAnInboxIsRepeatedAfterASecond() throws {
    let (clock, logged) = (TestClock(), Heard<String>())
    let meeting = try Meeting {
      $0.clock = clock
      $0.log = { logged.add($0.text) }
    }
    let watch = try meeting.container.join(as: "watch")
    try meeting.another().peer("watch").send(1, .quick())
    let (mailbox, runner) = (watch.mailbox, Worker(on: WorkQueue()))
    let number = try mailbox.add(runner, kinds: nil)
    // No caller waits for the receiver, so that only this thread makes its steps.
    runner.begin(isAsked: { false }) {}
    func step() -> Mailbox.Step { mailbox.step(for: number, until: { false }) }
    let rule = FaultRule(.getdents, path: "watch/inbox", persistent: true, .fail(.inputOutput))
    var due: Int64?
    FaultPoints.with([rule]) { if case .idle(let moment) = step() { due = moment } }
    #expect(due == clock.present.nanoseconds + 1_000_000_000)
    #expect(logged.all.contains { $0.hasPrefix("cannot list the inbox of 'watch': ") })
    clock.advance(by: .milliseconds(999))
    guard case .idle(let again) = step() else {
      Issue.record("it is listed before the end of the pause")
      return
    }
    #expect(again == due)
    clock.advance(by: .milliseconds(1))
    guard case .work(.file(let file)) = step() else {
      Issue.record("the message does not come")
      return
    }
    let hand = BatchCursor(file)
    let message = try #require(hand.next())
    #expect(try Handed(message) == Handed(1))
    try message.acknowledge()
    runner.end()
    mailbox.remove(number)
    watch.leave()
  }

  /// The present values would be news, one by one.
  @Test(arguments: [
    FaultRule(.getdents, path: "/channels", .fail(.tooManyOpenFiles)),
    FaultRule(.open, path: "/value.plist", .fail(.tooManyOpenFiles)),
  ])
  func aWatchWithoutAnInitialCallDoesNotBeginWithoutTheValues(_ rule: FaultRule) throws {
    let meeting = try Meeting()
    try meeting.container.channel("seat", of: Int.self).put(1)
    let (container, heard) = (try meeting.another(), Heard<Int?>())
    var code: WormholeError.Code?
    try FaultPoints.with([rule]) {
      let error = try failure {
        _ = try container.watch(prefix: "s", of: Int.self, initial: false) { heard.add($0.value) }
      }
      code = error.code
    }
    #expect(code == .exhausted)
    let watching = try container.watch(prefix: "s", of: Int.self, initial: false) {
      heard.add($0.value)
    }
    try meeting.container.channel("seat", of: Int.self).put(2)
    try heard.waitForLast(2)
    #expect(heard.all == [2])
    watching.stop()
  }

  /// No notice of the receipt follows: only the repeated listing finds the receipt.
  @Test func aRefusedListingOfReceiptsIsRepeated() throws {
    let logged = Heard<String>()
    let pair = try Pair { $0.log = { logged.add($0.text) } }
    let sent = try pair.phone.send(1, .quick())
    try pair.watch.take(1)[0].acknowledge()
    try TestSupport.eventually("its receipt was read") { sent.hasEnded }
    let heard = Heard<String>()
    var watching: Subscription?
    let rule = FaultRule(.getdents, path: "phone/receipts", persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      watching = try pair.sender.watchOutcomes { heard.add($0.id) }
    }
    #expect(logged.all.contains { $0.hasPrefix("cannot list the receipts of 'phone': ") })
    try heard.wait("the outcome") { $0 == [sent.id] }
    watching?.stop()
  }

  /// The folder may be full: with an unknown number of files, the messages to a suspended process
  /// could fill the disk.
  @Test func aFolderThatCannotBeCountedIsNotTakenForEmpty() throws {
    let pair = try Pair()
    let rule = FaultRule(.getdents, path: "watch/live", persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { try pair.phone.sendImmediately(1, within: patience) }
      #expect(error.code == .system && error.operation == "send message to")
    }
    #expect(throws: Never.self) { try pair.phone.sendImmediately(2, within: patience) }
  }

  /// A full disk may refuse either; a member on a full disk receives no requests.
  @Test(arguments: [
    FaultRule(.getdents, path: "watch/live", persistent: true, .fail(.noSpace)),
    FaultRule(.rmdir, persistent: true, .fail(.noSpace)),
  ])
  func aRefusedSweepOfEarlierIncarnationsIsRepeated(_ rule: FaultRule) throws {
    let pair = try Pair()
    pair.watch.leave()
    let earlier = "0123456789abcdef"
    let folder = try pair.meeting.folder("members/watch/live")
    try folder.makeDirectory(earlier, mode: 0o700)
    let again = try pair.meeting.another()
    var joined: Member?
    try FaultPoints.with([rule]) { joined = try again.join(as: "watch") }
    let watch = try #require(joined)
    #expect(try pair.meeting.names("members/watch/live").contains(earlier))
    let responding = watch.respond(to: Int.self) { $0 * 2 }
    #expect(try pair.phone.request(1, as: Int.self, within: patience) == 2)
    try TestSupport.eventually("the earlier folder is removed") {
      try pair.meeting.names("members/watch/live") == [watch.incarnation.rawValue]
    }
    responding.stop()
    watch.leave()
  }

  /// The receipt of an earlier incarnation's message is removed after the report, and the sender
  /// asks for the message's value afterwards.
  @Test func aReceiptThatCannotBeReadForAMomentKeepsItsContent() throws {
    let pair = try Pair()
    let (phone, receipt, sent) = try pair.reportedToNextIncarnation()
    try phone.outbox.expect(sent)
    let heard = Heard<String>()
    var watching: Subscription?
    let rule = FaultRule(.open, path: receipt.text, persistent: true, .fail(.tooManyOpenFiles))
    try FaultPoints.with([rule]) { watching = try phone.watchOutcomes { heard.add($0.id) } }
    try heard.wait("the outcome") { $0 == [receipt.name.id] }
    try TestSupport.eventually("the receipt is removed") {
      try pair.meeting.names("members/phone/receipts").isEmpty
    }
    #expect(sent.status == .delivered)
    #expect(try sent.value(as: String.self) == "hello")
    watching?.stop()
    phone.leave()
  }

  /// As on a failing disk: each listener that begins has the receipt read again, on this thread.
  @Test func aReceiptThatStaysUnreadableDelaysTheEndForAMinute() throws {
    let (clock, heard, gate) = (TestClock(), Heard<String>(), Gate())
    let pair = try Pair { $0.clock = clock }
    try pair.phone.send("hello", .quick())
    let message = try pair.watch.take(1)[0]
    pair.sender.leave()
    try message.acknowledge()
    let phone = try pair.meeting.another { $0.clock = clock }.join(as: "phone")
    let file = try #require(try pair.meeting.names("members/phone/receipts").first)
    let receipt = try #require(ReceiptName(file))
    let sent = Sent(SentName(receipt.name), to: pair.watch.home, phone.container, phone.outbox)
    try phone.outbox.expect(sent)
    // No other thread reads the receipt.
    phone.container.background.soon { gate.pass() }
    try gate.waitForSomebody()
    var watching: [Subscription] = []
    let rule = FaultRule(.open, path: file, persistent: true, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      for pause in [Duration.zero, Outbox.patience - .seconds(1), .seconds(1)] {
        #expect(!sent.hasEnded)
        clock.advance(by: pause)
        watching.append(try phone.watchOutcomes { heard.add($0.id) })
      }
      #expect(sent.hasEnded)
    }
    gate.open()
    #expect(sent.status == .delivered)
    for one in watching { one.stop() }
    phone.leave()
  }

  /// The peer has replied and ended, and the end is noticed while the reply cannot be taken.
  @Test(arguments: [
    FaultRule(.getdents, path: "phone/live", persistent: true, .fail(.inputOutput)),
    FaultRule(.open, path: "phone/live", persistent: true, .fail(.tooManyOpenFiles)),
  ])
  func aReplyThatCannotBeTakenForAMomentIsNotLost(_ rule: FaultRule) throws {
    let (pair, heard, gate) = (try Pair(), Heard<String>(), Gate())
    let live = try requester(pair)
    try expect("1", in: live, heard)
    try place(try answerName("1", to: live), in: live, pair)
    // The next look waits for the expectation, however late that is.
    live.container.background.soon { gate.pass() }
    try gate.waitForSomebody()
    FaultPoints.with([rule]) { live.peers.look(after: Self.address) }
    #expect(heard.all == [])
    gate.open()
    try heard.wait("the reply") { $0 == ["1 has its reply"] }
    live.close()
  }

  /// As on a failing disk: the second request has no reply.
  @Test func aReplyThatCannotBeReadHoldsUpNoOtherRequest() throws {
    let (pair, heard, gate) = (try Pair(), Heard<String>(), Gate())
    let live = try requester(pair)
    for id in ["1", "2"] { try expect(id, in: live, heard) }
    let name = try answerName("1", to: live)
    try place(name, in: live, pair)
    let rule = FaultRule(.open, path: name.text, persistent: true, .fail(.inputOutput))
    // The next look waits for the expectation, however late that is.
    live.container.background.soon { gate.pass() }
    try gate.waitForSomebody()
    FaultPoints.with([rule]) { live.peers.look(after: Self.address) }
    #expect(heard.all == ["2 failed"])
    gate.open()
    try heard.wait("the reply") { $0 == ["2 failed", "1 has its reply"] }
    live.close()
  }

  /// No later read of a directory succeeds.
  @Test func aDirectoryWithTheNameOfAReplyIsNoReply() throws {
    let (pair, heard) = (try Pair(), Heard<String>())
    let live = try requester(pair)
    try expect("1", in: live, heard)
    let name = try answerName("1", to: live)
    try folder(of: live, pair).makeDirectory(name.text, mode: 0o700)
    live.peers.look(after: Self.address)
    #expect(heard.all == ["1 failed"])
    live.close()
  }

  /// The peer, of which another incarnation runs.
  private static let address = LiveAddress(folder: .members, name: "watch")

  /// Returns a requester without a watch: no other thread takes the replies.
  private func requester(_ pair: Pair) throws -> LiveMailbox {
    let (container, home) = (pair.sender.container, pair.sender.home)
    let incarnation = try #require(Incarnation(rawValue: "0123456789abcdef"))
    try pair.meeting.folder("members/phone/live")
      .makeDirectory(incarnation.rawValue, mode: 0o700)
    let folder = try #require(try home.live(incarnation))
    let live = LiveMailbox(container, home, folder, incarnation, mark: "phone")
    live.peers.beforeLoss.withLock {
      $0 = ReplyTaker { [weak live] in live?.takeAnswers() ?? .allRead }
    }
    return live
  }

  /// The name of a request has sixteen digits.
  private static func identifier(_ digit: String) -> String {
    String(repeating: "0", count: 15) + digit
  }

  private func expect(_ digit: String, in live: LiveMailbox, _ heard: Heard<String>) throws {
    let (storage, id) = (live.container.storage, Self.identifier(digit))
    let question = PendingReplies.Entry(
      peer: Self.address, incarnation: live.incarnation, storage: storage,
      file: LiveName(try MessageStamp(storage), .question, id: id),
      deadline: .now + patience * 2, timeout: patience * 2, sight: Monitor(.unseen)
    ) { heard.add((try? $0.get()) == nil ? "\(digit) failed" : "\(digit) has its reply") }
    #expect(live.asking.expect(question, again: false))
    #expect(live.asking.notePlaced(id))
  }

  private func answerName(_ digit: String, to live: LiveMailbox) throws -> LiveName {
    LiveName(
      try MessageStamp(live.container.storage), .answer, id: Self.identifier(digit))
  }

  private func folder(of live: LiveMailbox, _ pair: Pair) throws -> Descriptor {
    try pair.meeting.folder("members/phone/live/\(live.incarnation)")
  }

  private func place(_ name: LiveName, in live: LiveMailbox, _ pair: Pair) throws {
    let reply = try LiveAnswer(7, limits: live.container.options.limits).bytes()
    let folder = try #require(try pair.sender.home.live(live.incarnation))
    try live.container.storage.addFile(reply, to: folder, as: name.text)
  }
}
