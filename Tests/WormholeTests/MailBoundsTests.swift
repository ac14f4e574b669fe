import Foundation
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Delays stay with their cause: each limit applies to the sender or receiver that reaches it.
@Suite(.blocking) struct MailBoundsTests {
  // MARK: Names

  /// The shortest name has an id of one letter and no sender.
  @Test func allLengthsOfNamesAreRead() throws {
    for count in 1...MessageName.longestIdentifier {
      for sender in ["", "~0123456789abcdef", "p", String(repeating: "p", count: 100)] {
        let name = MessageName(
          isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 2), wantsReceipt: false, count: 1,
          id: String(repeating: "i", count: count), from: sender)
        #expect(MessageName(name.text) == name)
        #expect(ClaimedName("\(name.text)~7") == ClaimedName(name, attempt: 7))
        #expect(ReceiptName("\(name.text).ok") == ReceiptName(name, .ok))
        #expect(MessageName.messages(ofFile: name.fileName)?.contains(name.text) == true)
      }
    }
  }

  @Test(arguments: [1, 2, 36])
  func anIdOfAnyLengthArrives(_ count: Int) throws {
    let pair = try Pair()
    let id = String(repeating: "x", count: count)
    let nobody = pair.meeting.container.peer("watch")
    let longest = pair.meeting.container.peer("watch", from: String(repeating: "p", count: 60))
    for (number, peer) in [nobody, longest, pair.phone].enumerated() {
      try peer.send(number, .quick { $0.id = id })
    }
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("all") { $0.count == 3 }
    #expect(heard.all == (0...2).map { Handed($0) })
    receiving.stop()
  }

  // MARK: One cause, and the others

  /// A sender whose receipts cannot be written delays its own messages, and no more.
  @Test func aSenderThatCannotBeToldHoldsUpNobody() throws {
    let pair = try Pair()
    try pair.send(1...200)
    let phone = try pair.meeting.folder("members/phone")
    try phone.rename("receipts", to: phone, "away")
    _ = try phone.open("receipts", [.writeOnly, .create], mode: 0o600)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("those of the one") { $0.count == 200 }
    try pair.meeting.container.peer("watch").send(201, .quick())
    try heard.wait("that of another") { $0.count == 201 }
    #expect(heard.all == (1...201).map { Handed($0) }, "each once")
    try phone.rename("away", to: phone, "receipts", .exchanging)
    try phone.unlink("away")
    try eventually("all have ended") { try pair.files("claimed") == [] }
    receiving.stop()
    #expect(heard.count == 201)
  }

  /// Batches with one failing message, without space among the dead letters.
  @Test(arguments: [false, true])
  func manyThatFailHoldUpNobody(_ isDeadFull: Bool) throws {
    let pair = try Pair {
      $0.mailbox.maximumDeadLetters = isDeadFull ? 1 : 1000
      $0.mailbox.attempts = 2
      $0.mailbox.retryDelay = isDeadFull ? .milliseconds(1) : .seconds(100)
    }
    for number in 0..<300 { try pair.phone.send(contentsOf: [-1, number], .quick()) }
    try pair.send([300])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      let handed = try Handed(message)
      guard handed.number >= 0 else { throw Refusal() }
      heard.add(handed)
    }
    try heard.wait("all that can be handled") { $0.count == 301 }
    #expect(heard.all == (0...300).map { Handed($0) })
    receiving.stop()
  }

  /// A receiver holds no batch whose unfinished messages all wait to be tried again.
  ///
  /// Otherwise it would wait with as many batches as it may hold, and would get no other message.
  /// The acknowledgement of a closure's return takes the next message in the same step, and the
  /// call in the closure does not.
  @Test(arguments: [Acknowledgement.automatic, .explicit])
  func batchesWhoseMessagesWaitAreNotHeld(_ acknowledgement: Acknowledgement) throws {
    let limit = MailboxMachine.Settings().inHand
    let pair = try Pair { $0.mailbox.retryDelay = .seconds(100) }
    for number in 0..<limit { try pair.phone.send(contentsOf: [-1, number], .quick()) }
    try pair.send([limit])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive(acknowledging: acknowledgement) { message in
      let handed = try Handed(message)
      guard handed.number >= 0 else { throw Refusal() }
      heard.add(handed)
      if acknowledgement == .explicit { try message.acknowledge() }
    }
    try heard.wait("all that can be handled") { $0.count == limit + 1 }
    #expect(heard.all == (0...limit).map { Handed($0) })
    receiving.stop()
    #expect(pair.watch.mailbox.state.withLock { $0.machine.inHand } == 0)
  }

  /// The number of claimed messages without acknowledgement is limited, for each receiver alone.
  @Test func oneThatHoldsWhatItGetsHoldsUpNoOther() throws {
    let limit = MailboxMachine.Settings().inHand
    let pair = try Pair()
    try pair.send(0..<limit + 10)
    let held = Monitor<[Message]>([])
    let hoarding = try pair.watch.receive(acknowledging: .explicit) { message in
      held.withLock { $0.append(message) }
    }
    try eventually("it has as many as it may") { held.withLock { $0.count } == limit }
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("the others") { $0.count == 10 }
    #expect(heard.all == (limit..<limit + 10).map { Handed($0) })
    #expect(held.withLock { $0.count } == limit)
    // After an acknowledgement, the receiver gets more messages.
    receiving.stop()
    try held.withLock({ $0.removeFirst() }).acknowledge()
    try pair.send([-1])
    try eventually("another") { held.withLock { $0.count } == limit }
    hoarding.stop()
    for message in held.withLock({ $0 }) { try message.acknowledge() }
  }

  /// Without a further notice: the message has been in the inbox since the start.
  @Test func anAcknowledgementAloneLetsTheNextMessageArrive() throws {
    let limit = MailboxMachine.Settings().inHand
    let pair = try Pair()
    try pair.send(0...limit)
    let held = Monitor<[Message]>([])
    let receiving = try pair.watch.receive(acknowledging: .explicit) { message in
      held.withLock { $0.append(message) }
    }
    try eventually("it has as many as it may") { held.withLock { $0.count } == limit }
    try held.withLock({ $0.removeFirst() }).acknowledge()
    #expect(throws: Never.self) {
      try eventually("the last message") { held.withLock { $0.count } == limit }
    }
    receiving.stop()
    for message in held.withLock({ $0 }) { try message.acknowledge() }
  }

  // MARK: The state machine alone

  private func name(_ time: Int64, from: String = "phone", urgent: Bool = false) -> MessageName {
    MessageName(
      isUrgent: urgent, MessageStamp(epoch: 1, nanoseconds: time), wantsReceipt: true, count: 1,
      id: "m\(time)", from: from)
  }

  private let start = MessageStamp(epoch: 1, nanoseconds: 1000)

  private func machine(
    _ kinds: [Set<String>?], _ change: (inout MailboxMachine.Settings) -> Void = { _ in }
  ) -> MailboxMachine {
    var settings = MailboxMachine.Settings()
    change(&settings)
    var machine = MailboxMachine(settings)
    for (index, kinds) in kinds.enumerated() { machine.add(index + 1, kinds: kinds) }
    #expect(machine.next(for: 1, now: 0) == .recover)
    machine.recovered([])
    #expect(machine.next(for: 1, now: 0, isHeard: true) == .list)
    return machine
  }

  @Test func ofOneSenderNoMoreFailsThanMay() {
    var machine = machine([nil]) { $0.waiting = 2 }
    let names = [name(1), name(2), name(3), name(4, from: "tv"), name(5)]
    machine.listed(names, before: start, listAgain: .max)
    for time in [1, 2] as [Int64] {
      #expect(machine.next(for: 1, now: 0) == .claim(name(time)))
      let claimed = ClaimedName(name(time), attempt: 1)
      _ = machine.failed(claimed, kind: "n", attempt: 1, by: 1, now: time)
    }
    // The third and the fifth message stay in the inbox.
    #expect(machine.next(for: 1, now: 2) == .claim(name(4, from: "tv")))
    machine.finished(by: 1)
    #expect(machine.next(for: 1, now: 2) == .wait(until: 100_000_001))
    #expect(machine.next(for: 1, now: 100_000_001) == .reclaim(ClaimedName(name(1), attempt: 1)))
    machine.finished(by: 1)
    // All skipped messages are listed again, before any message of a notice.
    machine.arrived([name(2000)], now: 100_000_001)
    #expect(machine.next(for: 1, now: 100_000_001, isHeard: true) == .list)
    machine.listed([name(3), name(5), name(2000)], before: start.advanced(by: 2000))
    #expect(machine.next(for: 1, now: 100_000_001) == .claim(name(3)))
  }

  @Test func whatIsHeardOfIsTakenWithoutListing() {
    var machine = machine([["A"]])
    let unwanted = (1...100).map { name($0) }
    machine.listed(unwanted, before: start, listAgain: 50)
    for _ in unwanted {
      guard case .peek(let name) = machine.next(for: 1, now: 0) else { break }
      do {
        let isMine = machine.peeked(name, kind: "B", by: 1)
        #expect(!isMine)
      }
    }
    #expect(machine.next(for: 1, now: 0) == .wait(until: nil))
    for time in 2000..<2010 as Range<Int64> {
      machine.arrived([name(time)], now: 10)
      #expect(machine.next(for: 1, now: 10) == .peek(name(time)))
      do {
        let isMine = machine.peeked(name(time), kind: "A", by: 1)
        #expect(isMine)
      }
      machine.finished(by: 1)
    }
    // From time to time the inbox is listed all the same, and unwanted messages are not read again.
    machine.arrived([name(3000)], now: 50)
    #expect(machine.next(for: 1, now: 50, isHeard: true) == .list)
    var listing = InboxListing(window: 10, skipping: machine.skipping)
    for name in unwanted + [name(3000)] { name.text.withCString { listing.add($0) } }
    #expect(listing.shown == 101)
    let names = listing.finish()
    #expect(names == [name(3000)])
    machine.listed(names, before: start.advanced(by: 3000), shown: listing.shown)
    #expect(machine.next(for: 1, now: 50) == .peek(name(3000)))
    // A new receiver of this kind gets the unwanted messages, in order.
    do {
      let isMine = machine.peeked(name(3000), kind: "B", by: 1)
      #expect(!isMine)
    }
    machine.add(2, kinds: ["B"])
    #expect(machine.next(for: 2, now: 50, isHeard: true) == .list)
    listing = InboxListing(window: 1000, skipping: machine.skipping)
    for name in unwanted + [name(3000)] { name.text.withCString { listing.add($0) } }
    machine.listed(listing.finish(), before: start.advanced(by: 3000), shown: listing.shown)
    for name in unwanted + [name(3000)] {
      #expect(machine.next(for: 2, now: 50) == .peek(name))
      do {
        let isMine = machine.peeked(name, kind: "B", by: 2)
        #expect(isMine)
      }
      machine.finished(by: 2)
    }
  }

  /// A stamp a little ahead of the clock is awaited, without repeated listings.
  @Test func aStampThatIsALittleAheadIsAwaited() {
    var machine = machine([nil])
    let now = start.advanced(by: 10)
    let ahead = name(1000 + 500_000_000)
    let awaited = machine.listed([ahead, name(1)], before: start, now: now)
    #expect(awaited == ahead.stamp)
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    #expect(machine.next(for: 1, now: 0) == .wait(until: nil))
  }

  @Test func aMessageOfAClockThatIsAheadArrives() throws {
    let pair = try Pair()
    try pair.send([1])
    let inbox = try pair.meeting.folder("members/watch/inbox")
    let form = try pair.files("inbox")[0]
    let stamp = UInt64(form.dropFirst(7).prefix(15), radix: 16)! + 300_000_000
    let digits = String(stamp, radix: 16)
    let ahead =
      form.prefix(7) + String(repeating: "0", count: 15 - digits.count) + digits
      + form.dropFirst(22)
    try inbox.rename(form, to: inbox, String(ahead))
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("it comes") { $0.count == 1 }
    receiving.stop()
  }

  /// If the names exceed the window, the first names are taken, then the rest.
  @Test func ofManyNamesTheFirstAreKnown() {
    var machine = machine([nil]) { $0.window = 4 }
    var names = (1...20).map { name(Int64($0)) }
    var order: [MessageName] = []
    var listings = 0
    var random = SeededRandom(seed: TestRun.seed)
    while order.count < 20 {
      var listing = InboxListing(window: 4)
      for name in names.shuffled(using: &random) { name.text.withCString { listing.add($0) } }
      listings += 1
      machine.listed(
        listing.finish(), before: start, end: listing.end, shown: listing.shown, listAgain: .max)
      // Until all names are known, earlier names than this arrival may be unknown.
      if listing.end != nil { machine.arrived([name(900)], now: 0) }
      while case .claim(let name) = machine.next(for: 1, now: 0, isHeard: true) {
        order.append(name)
        names.removeAll { $0 == name }
        machine.finished(by: 1)
        if order.count == 20 { break }
      }
    }
    #expect(order == (1...20).map { name(Int64($0)) })
    #expect(listings <= 6)
  }

  /// A million messages that wait take a receiver less than 64 MB.
  @Test(.notSanitized("it measures memory")) func manyThatWaitTakeLittleMemory() throws {
    let isLong = TestRun.isLong
    let count = isLong ? 1_000_000 : 10_000
    let meeting = try Meeting {
      $0.mailbox.maximumQueuedMessages = 10_000_000
      $0.mailbox.maximumQueueBytes = 1 << 40
    }
    let beyondTheFirstListing = 140_000
    let peer = meeting.container.peer("watch", from: "phone")
    for number in 0..<count { try peer.send(number, .quick()) }
    let receiver = try Running(
      .drain(meeting.path, "watch", count: min(count, beyondTheFirstListing)))
    let outcome = try receiver.outcome(within: .seconds(isLong ? 1200 : 200))
    #expect(outcome.status == .exited(0))
    let figures = outcome.output.split(separator: " ").compactMap { Int($0.trimmed) }
    #expect(figures.last! < (TestRun.isSanitized ? 128 : 64) << 10, "KiB: \(figures)")
  }
}

extension Substring {
  fileprivate var trimmed: String { trimmingCharacters(in: .whitespacesAndNewlines) }
}
