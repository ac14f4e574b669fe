import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The options of sending, and their effects for the receiver.
@Suite struct MailOptionTests {
  /// A clock that a test advances.
  private final class Clock: Sendable {
    private let ahead = Monitor(Int64(0))
    func pass(_ seconds: Int64) { ahead.withLock { $0 += seconds * 1_000_000_000 } }
    var now: Int64 { Clocks.sinceEpoch + ahead.withLock { $0 } }
  }

  @Test func whatIsReceivedTooLateIsHandledByNobody() async throws {
    let clock = Clock()
    let pair = try Pair { $0.environment.sinceEpoch = { clock.now } }
    let late = try pair.send([1]) { $0.timeToLive = .seconds(60) }[0]
    let batch = try await pair.phone.send(
      contentsOf: [2, 3], .quick { $0.timeToLive = .seconds(60) })[0]
    try pair.send([4]) { $0.timeToLive = .seconds(600) }
    try pair.send([5])
    clock.pass(300)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try await heard.comes("the last") { $0.last?.number == 5 }
    #expect(heard.all == [Handed(4), Handed(5)])
    for sent in [late, batch] {
      #expect(try await sent.waitForStatus(within: patience) == .expired)
    }
    let error = try await failure { try await late.waitUntilDelivered() }
    #expect(error.code == .timedOut)
    try await eventuallyAsync("nothing is in hand") { try pair.files("claimed") == [] }
    receiving.stop()
  }

  /// The message was received in time, and a failure afterwards does not make it late.
  @Test func whatWasReceivedInTimeDoesNotExpireBetweenTwoAttempts() async throws {
    let clock = Clock()
    let pair = try Pair {
      $0.environment.sinceEpoch = { clock.now }
      $0.mailbox.retryDelay = .milliseconds(1)
    }
    let sent = try pair.send([1]) { $0.timeToLive = .seconds(60) }[0]
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      heard.add(try Handed(message))
      clock.pass(300)
      if message.attempt == 1 { throw Refusal() }
    }
    #expect(try await sent.waitForStatus(within: patience) == .delivered)
    #expect(heard.all == [Handed(1), Handed(1, 2)])
    receiving.stop()
  }

  @Test(.blocking) func urgentComesFirst() throws {
    let pair = try Pair()
    try pair.send(1...2)
    try pair.send([101, 102]) { $0.isUrgent = true }
    try pair.send([3])
    let (heard, areUrgent) = (Heard<Handed>(), Heard<Bool>())
    let receiving = try pair.watch.receive { message in
      areUrgent.add(message.isUrgent)
      heard.add(try Handed(message))
    }
    try heard.wait("all") { $0.count == 5 }
    #expect(heard.all == [101, 102, 1, 2, 3].map { Handed($0) })
    #expect(areUrgent.all == [true, true, false, false, false])
    receiving.stop()
  }

  @Test(.blocking) func anIdIsRefusedWhileItIsOnItsWay() throws {
    let pair = try Pair()
    func send(_ number: Int) throws { try pair.send([number]) { $0.id = "ticket 7/8" } }
    try send(1)
    #expect(try failure { try send(2) }.code == .conflict)
    // Another sender's ids are separate, and so are this sender's ids at another receiver.
    try pair.meeting.container.peer("watch").send(3, .quick { $0.id = "ticket 7/8" })
    try pair.sender.peer("tv").send(4, .quick { $0.id = "ticket 7/8" })
    let messages = try pair.watch.take(2)
    #expect(messages.map(\.id) == ["ticket 7/8", "ticket 7/8"])
    #expect(messages.map(\.from) == ["phone", nil])
    #expect(try failure { try send(2) }.code == .conflict, "in hand")
    for message in messages { try message.acknowledge() }
    try send(5)
    #expect(try pair.phone.pendingMessages[0].cancel() == .cancelled)
    try send(6)
  }

  /// However many independent senders there are, the limit holds, and no sender counts at each
  /// message.
  @Test(.blocking) func manySendersKeepToOneBound() throws {
    let pair = try Pair()
    let bound = 400
    let counts = Heard<Int>()
    let threads = try (0..<20).map { number in
      let container = try pair.meeting.another { $0.mailbox.maximumQueuedMessages = bound }
      return try Thread("sender") {
        let peer = container.peer("watch", from: "s\(number)")
        var count = 0
        while (try? peer.send(count, .quick())) != nil { count += 1 }
        counts.add(count)
      }
    }
    for thread in threads { thread.join() }
    let sum = counts.all.reduce(0, +)
    #expect(try pair.files("inbox").count == sum)
    #expect(sum >= bound)
    #expect(sum <= bound + bound / 10, "\(counts.all)")
    // When the queue has space again, all senders can use it, refused senders included.
    let heard = Heard<Int>()
    let receiving = try pair.watch.receive(Int.self) { value, _ in heard.add(value) }
    try heard.wait("all") { $0.count == sum }
    receiving.stop()
    let container = try pair.meeting.another { $0.mailbox.maximumQueuedMessages = bound }
    for number in 0..<bound { try container.peer("watch").send(number, .quick()) }
    #expect(try failure { try container.peer("watch").send(0, .quick()) }.code == .full)
  }

  /// A process that sends a message does not list all waiting messages.
  @Test(.blocking) func oneMessageCostsNoLookAtAllOthers() throws {
    let pair = try Pair()
    try pair.send(1...3)
    // The count is trusted, so the file now stands for a thousand sent messages.
    let room = try Descriptor.open(
      path: pair.meeting.path + "/members/watch/files/room", [.writeOnly])
    try room.truncate(to: 1000)
    let container = try pair.meeting.another { $0.mailbox.maximumQueuedMessages = 1001 }
    try container.peer("watch").send(4, .quick())
    #expect(try room.status().size == 1001)
    // Now the queue seems to be full, and the messages are counted.
    try container.peer("watch").send(5, .quick())
    let counted = try pair.meeting.folder("members/watch/files").status(of: "room")
    #expect(counted.size == 5)
  }

  /// If several senders send under the same id at the same time, exactly one succeeds.
  @Test(.blocking) func anIdIsGivenOnce() throws {
    let pair = try Pair()
    let holes = try (0..<8).map { _ in try pair.meeting.another() }
    for round in 1...20 {
      let (sent, gate) = (Heard<WormholeError.Code?>(), Gate())
      let threads = try holes.map { container in
        try Thread("sender") {
          gate.pass()
          do throws(WormholeError) {
            try container.peer("watch", from: "till").send(round, .quick { $0.id = "ticket" })
            sent.add(nil)
          } catch {
            sent.add(error.code)
          }
        }
      }
      gate.open()
      for thread in threads { thread.join() }
      #expect(sent.all.count { $0 == nil } == 1, "\(sent.all)")
      #expect(sent.all.count { $0 == .conflict } == 7)
      if round % 2 == 0 {
        #expect(try pair.meeting.container.peer("watch").cancel(id: "ticket") == .cancelled)
      } else {
        for message in try pair.watch.take(1) { try message.acknowledge() }
      }
      #expect(try pair.files("files") == [])
    }
  }

  /// An id is free again if its message has ended and the process died before removing the id; a
  /// message on its way keeps its id.
  @Test(.blocking) func anIdThatWasLeftBehindIsFree() throws {
    let pair = try Pair()
    let options = SendOptions.quick { $0.id = "ticket" }
    try pair.phone.send(1, options)
    let messages = try pair.watch.take(1)
    // The state after a process that ended the message and died directly afterwards.
    let claimed = try pair.meeting.folder("members/watch/claimed")
    let name = try #require(try claimed.names().first)
    #expect(try failure { try pair.phone.send(2, options) }.code == .conflict)
    try claimed.unlink(name)
    #expect(try pair.files("files") == ["id,ticket,phone"])
    try pair.phone.send(3, options)
    #expect(try failure { try pair.phone.send(4, options) }.code == .conflict)
    // The end of the first message is not the end of the second.
    #expect(try failure { try messages[0].acknowledge() }.code == .superseded)
    #expect(try failure { try pair.phone.send(5, options) }.code == .conflict)
    #expect(try pair.phone.pendingMessages[0].cancel() == .cancelled)
    #expect(try pair.files("files") == [])
    // An id without a message is removed when the receiver joins.
    try pair.phone.send(6, options)
    try pair.meeting.folder("members/watch/inbox").unlink(
      try #require(try pair.files("inbox").first))
    pair.watch.leave()
    _ = try pair.meeting.another().join(as: "watch")
    #expect(try pair.files("files") == [])
  }

  /// An explicit id in the form of a generated id is protected nevertheless.
  @Test(.blocking) func anIdOfSixteenDigitsIsGivenOnce() throws {
    let pair = try Pair()
    let options = SendOptions.quick { $0.id = "00112233445566ff" }
    for number in 1...3 {
      try pair.phone.send(number, options)
      #expect(try failure { try pair.phone.send(0, options) }.code == .conflict)
      for message in try pair.watch.take(1) { try message.acknowledge() }
    }
  }

  @Test(.blocking) func anIdThatIsNoneIsRefused() throws {
    let pair = try Pair()
    for id in ["", String(repeating: "x", count: 37), String(repeating: "/", count: 13)] {
      #expect(try failure { try pair.send([1]) { $0.id = id } }.code == .invalidName)
    }
    try pair.send([1]) { $0.id = String(repeating: "x", count: 36) }
    let many = Array(1...65)
    let error = try failure { try pair.phone.send(contentsOf: many, .quick { $0.id = "x" }) }
    #expect(error.code == .tooLarge)
    #expect(try pair.phone.pendingMessages.count == 1)
  }

  @Test(.blocking) func whatNobodyWantsWaits() throws {
    let pair = try Pair()
    try pair.send([1, 3]) { $0.kind = "odd" }
    try pair.send([2, 4]) { $0.kind = "even" }
    try pair.phone.send(contentsOf: [6, 8], .quick { $0.kind = "even" })
    let (odd, even) = (Heard<Handed>(), Heard<Handed>())
    let first = try pair.watch.note(odd, kinds: ["odd", "other"])
    try pair.send([5]) { $0.kind = "odd" }
    try odd.wait("the odd") { $0.count == 3 }
    #expect(try pair.files("inbox").count == 3)
    let second = try pair.watch.note(even, kinds: ["even"])
    try even.wait("the even") { $0.count == 4 }
    #expect(even.all == [2, 4, 6, 8].map { Handed($0) })
    try pair.send([7]) { $0.kind = "odd" }
    try pair.send([10]) { $0.kind = "even" }
    try odd.wait("seven") { $0.last?.number == 7 }
    try even.wait("ten") { $0.last?.number == 10 }
    #expect(odd.all == [1, 3, 5, 7].map { Handed($0) })
    first.stop()
    try pair.send([9]) { $0.kind = "odd" }
    let all = Heard<Handed>()
    let third = try pair.watch.note(all)
    try all.wait("what waited") { $0 == [Handed(9)] }
    second.stop()
    third.stop()
  }

  @Test(.blocking) func receiversTakeTurns() throws {
    let pair = try Pair()
    let gates = (0..<3).map { _ in Gate() }
    let heard = Heard<Int>()
    let receivers = try gates.map { gate in
      try pair.watch.receive(Int.self) { value, _ in
        heard.add(value)
        gate.pass()
      }
    }
    for number in 1...3 {
      try pair.send([number])
      try heard.wait("\(number)") { $0.count == number }
    }
    // All three receivers hold a message, so no receiver is free for the fourth message.
    try pair.send([4])
    for gate in gates { try gate.waitForSomebody() }
    #expect(heard.all == [1, 2, 3])
    gates[1].open()
    try heard.wait("the fourth") { $0.count == 4 }
    for gate in gates { gate.open() }
    for receiver in receivers { receiver.stop() }
  }

  @Test(.blocking, arguments: [false, true])
  func whatFailsHoldsUpTheOthersOnlyIfAsked(_ isStrict: Bool) throws {
    let pair = try Pair {
      $0.mailbox.keepsOrderOnRetry = isStrict
      $0.mailbox.retryDelay = .milliseconds(30)
      $0.mailbox.attempts = 1000
    }
    try pair.send(1...3)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      let handed = try Handed(message)
      let last = heard.all.contains { $0.number == 3 }
      heard.add(handed)
      // In strict order, message 1 fails only twice, because later messages wait for it; otherwise
      // it fails until message 3 has arrived.
      if handed.number == 1, isStrict ? handed.attempt < 3 : !last { throw Refusal() }
    }
    if isStrict {
      try heard.wait("all") { $0.count == 5 }
      #expect(heard.all == [Handed(1), Handed(1, 2), Handed(1, 3), Handed(2), Handed(3)])
    } else {
      try heard.wait("all, and the first again") { heard in
        heard.last { $0.number == 3 } != nil && heard.last?.number == 1
      }
      #expect(heard.all.filter { $0.number != 1 } == [Handed(2), Handed(3)])
      let first = heard.all.filter { $0.number == 1 }
      #expect(first == (1...first.count).map { Handed(1, $0) })
    }
    receiving.stop()
  }

  @Test(.blocking, arguments: [Acknowledgement.automatic, .explicit])
  func strictOrderHoldsWithinABatch(_ acknowledgement: Acknowledgement) throws {
    let pair = try Pair {
      $0.mailbox.keepsOrderOnRetry = true
      $0.mailbox.retryDelay = .milliseconds(5)
      $0.mailbox.attempts = 2
    }
    try pair.phone.send(contentsOf: Array(1...4), .quick())
    try pair.send([5])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive(acknowledging: acknowledgement) { message in
      let handed = try Handed(message)
      heard.add(handed)
      // The second message is refused once, the third at each attempt.
      if handed.number == 2 && handed.attempt == 1 || handed.number == 3 { throw Refusal() }
      if acknowledgement == .explicit { try message.acknowledge() }
    }
    try heard.wait("the last") { $0.last?.number == 5 }
    #expect(
      heard.all == [
        Handed(1), Handed(2), Handed(2, 2), Handed(3), Handed(3, 2), Handed(4), Handed(5),
      ])
    receiving.stop()
  }

  @Test(.blocking) func aMemberThatNeverJoinedFindsWhatWasSentToIt() throws {
    let pair = try Pair()
    let tv = pair.sender.peer("tv")
    let sent = try tv.send("hello")
    #expect(try sent.state == .waiting)
    #expect(try tv.pendingMessages.map(\.id) == [sent.id])
    #expect(try pair.sender.peer("nobody").pendingMessages.isEmpty)
    let heard = Heard<String>()
    let member = try pair.meeting.another().join(as: "tv")
    let receiving = try member.receive(String.self) { value, _ in heard.add(value) }
    try heard.waitForLast("hello")
    receiving.stop()
  }

  @Test(.blocking, .notSanitized("as a small message, and slow"))
  func aHugeMessageArrivesAndALargerOneIsRefused() throws {
    let pair = try Pair { $0.maximumValueBytes = 1 << 20 }
    let huge = (0..<(7 << 17)).map { UInt8(truncatingIfNeeded: $0) }
    let text = String(decoding: huge.map { $0 & 0x3f | 0x40 }, as: UTF8.self)
    try pair.phone.send(text, .quick())
    let error = try failure { try pair.phone.send(text + text, .quick()) }
    #expect(error.code == .tooLarge)
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, _ in heard.add(value) }
    try heard.waitForLast(text)
    receiving.stop()
    #expect(try pair.files("inbox") == [])
  }

  @Test(.blocking) func aLargeBatchIsSplitBySize() throws {
    let pair = try Pair()
    let part = String(repeating: "x", count: 400_000)
    let texts = (1...5).map { "\($0)" + part }
    let sent = try pair.phone.send(contentsOf: texts, .quick())
    #expect(sent.map(\.count).reduce(0, +) == 5)
    #expect(sent.count == 3)
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, _ in heard.add(value) }
    try heard.wait("all") { $0.count == 5 }
    #expect(heard.all == texts)
    #expect(try pair.phone.send(contentsOf: [Int]()).isEmpty)
    receiving.stop()
  }

  @Test func whoIsNoMemberCannotBeToldHowItEnded() async throws {
    let pair = try Pair()
    let stranger = pair.meeting.container.peer("watch")
    #expect(
      try failure { try stranger.send(1, .quick { $0.wantsOutcome = true }) }.code == .notFound)
    let sent = try await stranger.send(1, .quick())
    #expect(try await failure { _ = try await sent.waitForStatus() }.code == .notFound)
    let quiet = try pair.send([2]) { $0.wantsOutcome = false }[0]
    #expect(try await failure { _ = try await quiet.waitForStatus() }.code == .notFound)
    #expect(try quiet.cancel() == .cancelled)
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try await heard.comes("the stranger's") { $0 == [Handed(1)] }
    try await eventuallyAsync("nothing is left") { try sent.state == .ended }
    #expect(try pair.files("receipts", of: "phone") == [])
    receiving.stop()
  }
}
