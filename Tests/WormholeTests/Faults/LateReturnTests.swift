import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// Messages that a receiver puts back after their time to live, or keeps after their last attempt
/// or their expiry.
@Suite(.blocking) struct LateReturnTests {
  /// No receiver ever comes again: the sender would wait for ever.
  @Test func aMessageThatIsPutBackAfterItsTimeExpires() throws {
    let (clock, epoch) = (TestClock(), Monitor(Clocks.sinceEpoch))
    let meeting = try Meeting {
      $0.clock = clock
      $0.environment.sinceEpoch = { epoch.withLock { $0 } }
    }
    func pass(_ seconds: Int64) {
      epoch.withLock { $0 += seconds * 1_000_000_000 }
      clock.advance(by: .seconds(seconds))
    }
    let phone = try meeting.container.join(as: "phone")
    let sent = try phone.peer("watch").send(1, .quick { $0.timeToLive = .seconds(60) })
    // The deadline is an alarm of this clock; all further steps depend on the alarm.
    try #require(clock.alarms > 0)
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    let claimed = ClaimedName(sent.name, attempt: 1)
    #expect(try home.claim(claimed))
    pass(61)
    try TestSupport.eventually("the sender is to look again") { clock.alarms > 0 }
    #expect(sent.status == nil)
    #expect(try home.move(claimed.text, from: .claimed, .inbox, as: sent.name.text))
    try TestSupport.eventually("the message has expired") {
      pass(2)
      return sent.status == .expired
    }
    #expect(try meeting.names("members/watch/claimed") == [])
    phone.leave()
  }

  /// The outcome cannot be written: the message has expired all the same, and is no dead letter.
  @Test func anExpiredMessageOfAQueueIsNoDeadLetter() throws {
    let (epoch, logged) = (Monitor(Clocks.sinceEpoch), Heard<String>())
    let meeting = try Meeting {
      $0.environment.sinceEpoch = { epoch.withLock { $0 } }
      $0.log = { logged.add($0.text) }
    }
    let queue = meeting.container.queue("jobs", of: Int.self)
    let sender = try meeting.container.join(as: "phone")
    try sender.queue("jobs", of: Int.self).send(1, .quick { $0.timeToLive = .seconds(60) })
    sender.leave()
    epoch.withLock { $0 += 61_000_000_000 }
    let phone = try meeting.folder("members/phone")
    try phone.rename("receipts", to: phone, "away")
    _ = try phone.open("receipts", [.writeOnly, .create], mode: 0o600)
    let working = try queue.work { _, _ in logged.add("handled") }
    try logged.wait("the refusal") { $0.contains { $0.contains("cannot acknowledge") } }
    // The stop waits for the step in progress.
    working.stop()
    #expect(try queue.deadLetters.isEmpty)
    try phone.rename("away", to: phone, "receipts", .exchanging)
    try phone.unlink("away")
    let next = try queue.work { _, _ in logged.add("handled") }
    try TestSupport.eventually("the message has expired") {
      try meeting.names("members/phone/receipts").map { $0.hasSuffix(".expired") } == [true]
    }
    next.stop()
    #expect(!logged.all.contains("handled"))
  }

  /// There is no space for another dead letter at the last attempt, and later there is.
  @Test func aDeadLetterThatIsWrittenLaterHasTheReasonOfItsAttempt() throws {
    let (clock, logged, heard) = (TestClock(), Heard<String>(), Heard<Handed>())
    let pair = try Pair {
      $0.clock = clock
      $0.log = { logged.add($0.text) }
      $0.mailbox.attempts = 1
      $0.mailbox.maximumDeadLetters = 1
    }
    try pair.send([1, 2])
    let receiving = try pair.watch.receive { message in
      heard.add(try Handed(message))
      throw Refusal()
    }
    try logged.wait("the limit") { $0.contains { $0.contains("which is the limit") } }
    let peer = pair.meeting.container.peer("watch")
    let first = try #require(try peer.deadLetters.first)
    #expect(try peer.discard(id: first.id))
    try TestSupport.eventually("the other one is a dead letter") {
      clock.advance(by: .seconds(30))
      return try peer.deadLetters.count == 1
    }
    receiving.stop()
    #expect(try peer.deadLetters.map(\.reason) == ["\(Refusal())"])
    #expect(heard.all == [Handed(1), Handed(2)])
  }

  /// A message that was handled in part never expires, and is not looked for any more.
  @Test func aMessageOfALaterAttemptIsLeftAlone() throws {
    let meeting = try Meeting()
    let peer = meeting.container.peer("watch")
    let (first, second) = (try peer.send(1, .quick()), try peer.send(2, .quick()))
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    #expect(try home.claim(ClaimedName(first.name, attempt: 1)))
    #expect(try home.claim(ClaimedName(second.name, attempt: 2)))
    #expect(try Expiry.mayComeBack(first.identity, to: home))
    #expect(try !Expiry.mayComeBack(second.identity, to: home))
  }

  /// The sender of a delayed message knows the message by its id, which a retry keeps.
  @Test func aRetriedDeadLetterThatWasDelayedNeverExpires() throws {
    let epoch = Monitor(Clocks.sinceEpoch)
    let meeting = try Meeting {
      $0.environment.sinceEpoch = { epoch.withLock { $0 } }
      $0.mailbox.attempts = 1
    }
    let peer = meeting.container.peer("watch")
    let sent = try peer.send(
      1,
      .quick {
        $0.delay = .seconds(60)
        $0.timeToLive = .seconds(60)
      })
    try #require(sent.identity.since != nil)
    epoch.withLock { $0 += 61_000_000_000 }
    let watch = try meeting.another {
      $0.environment.sinceEpoch = { epoch.withLock { $0 } }
      $0.mailbox.attempts = 1
    }.join(as: "watch")
    let receiving = try watch.receive { _ in throw Refusal() }
    try TestSupport.eventually("it is dead") { try !peer.deadLetters.isEmpty }
    receiving.stop()
    #expect(try peer.retry(id: sent.id))
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    let senders = SenderHomes(meeting.container.storage)
    #expect(try !Expiry.end(sent.identity, at: home, senders, meeting.container))
    #expect(try !Expiry.mayComeBack(sent.identity, to: home))
    #expect(try peer.queue.map(\.id) == [sent.id])
    watch.leave()
  }

  /// The message would be forgotten though no receiver has it any more.
  @Test func aMessageThatComesBackAfterTheSearchIsLookedForAgain() throws {
    let meeting = try Meeting()
    let sent = try meeting.container.peer("watch").send(1, .quick())
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    let senders = SenderHomes(meeting.container.storage)
    let claimed = ClaimedName(sent.name, attempt: 1)
    #expect(try home.claim(claimed))
    #expect(try !Expiry.end(sent.identity, at: home, senders, meeting.container))
    #expect(try home.move(claimed.text, from: .claimed, .inbox, as: sent.name.text))
    #expect(try Expiry.mayComeBack(sent.identity, to: home))
    #expect(try Expiry.end(sent.identity, at: home, senders, meeting.container))
    #expect(try !Expiry.mayComeBack(sent.identity, to: home))
  }
}
