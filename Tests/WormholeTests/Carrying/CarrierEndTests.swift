import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Ends of messages between machines that meet a request, or a refusal by the system.
@Suite(.blocking) struct CarrierEndTests {
  private let meeting: Meeting
  private let peer: Peer
  private let carrier: Carrier
  private let printer: Proxy

  init() throws {
    meeting = try Meeting()
    peer = try meeting.container.join(as: "phone").peer("printer")
    carrier = try Carrier(meeting.another())
    printer = try carrier.proxy(of: .member("printer"), on: "0123456789abcdef")
  }

  /// A request that stays would be sent for ever, and would cancel the message if it is retried.
  @Test func aMessageThatIsGivenUpLeavesNoRequestToCancelIt() throws {
    let sent = try peer.send(1, .quick { $0.wantsOutcome = true })
    let name = try #require(try printer.waiting().first)
    #expect(try printer.claim(name))
    #expect(try sent.cancel() == .requested)
    #expect(try printer.cancellations() == [name])
    try printer.giveUp(name, "it is too large")
    #expect(sent.waitForEnd(until: .now + patience) == .deadLettered(reason: "it is too large"))
    #expect(try printer.cancellations() == [])
    #expect(try meeting.names("members/printer/claimed") == [])
    #expect(try peer.deadLetters.map(\.id) == [sent.id])
  }

  /// A machine was given up, or the container has become another machine: the message would wait
  /// again without the request, and somebody would receive it.
  @Test func aMessageThatIsPutBackIsCancelledOnRequest() throws {
    let sent = try peer.send(1, .quick { $0.wantsOutcome = true })
    let name = try #require(try printer.waiting().first)
    #expect(try printer.claim(name))
    #expect(try sent.cancel() == .requested)
    try printer.putBack(name)
    #expect(sent.waitForEnd(until: .now + patience) == .cancelled)
    #expect(try printer.waiting() == [])
    #expect(try meeting.names("members/printer/claimed") == [])
  }

  /// A power cut may damage a message that was sent without a sync.
  ///
  /// The message must hold up neither the end of a lost machine nor a container that becomes
  /// another machine.
  @Test func aDamagedMessageThatIsPutBackIsADeadLetter() throws {
    try peer.send(1, .quick())
    let name = try #require(try printer.waiting().first)
    #expect(try printer.claim(name))
    try meeting.overwrite("members/printer/claimed/\(name.text)~1", Array("damaged".utf8))
    try printer.putBack(name)
    #expect(try printer.waiting() == [])
    #expect(try meeting.names("members/printer/claimed") == [])
    #expect(try meeting.names("members/printer/dead").contains(name.text))
  }

  /// The receiver's home has moved, and the request comes while the message is taken back.
  @Test func aRequestThatComesWhileAMessageIsTakenBackCounts() throws {
    let sent = try peer.send(1, .quick { $0.wantsOutcome = true })
    let name = try #require(try printer.waiting().first)
    #expect(try printer.claim(name))
    let (pause, isRequested) = (FaultPause(), Monitor(false))
    let sender = try Thread("sender") {
      try? eventually("the message is about to wait") { pause.isReached }
      let answer = try? sent.cancel()
      isRequested.withLock { $0 = answer == .requested }
      pause.open()
    }
    let rule = FaultRule(.rename, path: "printer/inbox", .pause(pause))
    try FaultPoints.with([rule]) { try printer.takeBack(name) }
    sender.join()
    #expect(isRequested.withLock { $0 })
    #expect(sent.waitForEnd(until: .now + patience) == .cancelled)
    #expect(try printer.waiting() == [])
    #expect(try meeting.names("members/printer/claimed") == [])
  }

  /// The other machine's worker has handled the message: no refusal makes this a failed attempt.
  @Test func anEndOfALentMessageThatTheSystemRefusesIsRepeated() throws {
    let meeting = try Meeting { $0.mailbox.attempts = 1 }
    let jobs = meeting.container.queue("jobs", of: Int.self)
    let lent = try LentQueue("jobs", meeting.container) {}
    try jobs.send(1, .quick())
    lent.setRoom(1)
    let job = try eventually("it is claimed") { lent.fresh.first }
    lent.bound([job.id])
    lent.setRoom(0)
    var error: WormholeError?
    try FaultPoints.with([FaultRule(.unlink, path: "claimed/", .fail(.inputOutput))]) {
      error = try failure { _ = try lent.end(job.id, .acknowledged) }
    }
    #expect(error?.errno == Errno.inputOutput.rawValue)
    #expect(try lent.end(job.id, .acknowledged))
    #expect(try jobs.messages.isEmpty)
    #expect(try jobs.deadLetters.map(\.reason) == [])
    lent.stop()
  }

  /// A clock that the test moves, and whose alarms do not ring.
  private final class MovedClock: MailClock {
    private let start = Instant.now
    private let moved = Monitor(Duration.zero)

    var present: Instant { start + moved.withLock { $0 } }
    var sinceBoot: Int64 { Clocks.sinceBoot }

    func ring(at moment: Instant, _ body: @escaping @Sendable () -> Void) {}

    func advance(by duration: Duration) { moved.withLock { $0 += duration } }
  }

  /// The workers of the queue return claims that are late by this clock.
  @Test func aLentMessageIsRenewedByTheClockOfMessages() throws {
    let clock = MovedClock()
    let meeting = try Meeting { $0.clock = clock }
    let lent = try LentQueue("jobs", meeting.container) {}
    try meeting.container.queue("jobs", of: Int.self).send(1, .quick())
    lent.setRoom(1)
    let job = try eventually("it is claimed") { lent.fresh.first }
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    func claims() throws -> [String] {
      try home.workers().flatMap { worker in try worker.claimedNames().map(\.text) }
    }
    let before = try claims()
    lent.renew([job.id])
    #expect(try claims() == before)
    clock.advance(by: LentQueue.deadline / 5)
    lent.renew([job.id])
    #expect(try claims() != before)
    lent.stop()
  }

  /// The tasks of the earlier room end at any later time.
  @Test func aRoomThatComesBackIsUsedAtOnce() throws {
    let meeting = try Meeting()
    let jobs = meeting.container.queue("jobs", of: Int.self)
    let lent = try LentQueue("jobs", meeting.container) {}
    for room in [4, 0, 4] { lent.setRoom(room) }
    for number in 1...4 { try jobs.send(number, .quick()) }
    try eventually("four messages are claimed") { lent.fresh.count == 4 }
    lent.stop()
  }
}
