import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Messages that expire while no receiver runs.
@Suite struct ExpiryTests {
  private static let soon = SendOptions.quick { $0.timeToLive = .milliseconds(20) }
  private static let never = SendOptions.quick { $0.timeToLive = .seconds(3600) }

  @Test func whoWaitsIsToldWithoutAReceiver() async throws {
    let pair = try Pair()
    let single = try await pair.phone.send(1, Self.soon)
    let batch = try await pair.phone.send(contentsOf: [2, 3], Self.soon)[0]
    let late = try await pair.phone.send(4, Self.never)
    for sent in [single, batch] {
      #expect(try await sent.waitForStatus(within: patience) == .expired)
    }
    #expect(try pair.files("inbox").count == 1)
    #expect(late.status == nil)
    #expect(try late.cancel() == .cancelled)
  }

  /// A sender that retains no `Sent` is notified as well, also if the sender was a guest.
  @Test(.blocking) func whoeverListensIsToldWithoutAReceiver() throws {
    let pair = try Pair()
    let heard = Heard<Outcome.Status>()
    let watching = try pair.sender.watchOutcomes { heard.add($0.status) }
    for number in 1...50 { try pair.phone.send(number, Self.soon) }
    try heard.wait("all") { $0.count == 50 }
    #expect(Set(heard.all) == [.expired])
    #expect(try pair.files("inbox") == [])
    try eventually("nothing is left to tell") { try pair.files("receipts", of: "phone") == [] }
    watching.stop()
  }

  /// An earlier incarnation sent the message and has left.
  @Test func whoAsksForWhatIsOutstandingIsTold() async throws {
    // The clock stands still until the test has requested the pending messages.
    let clock = Monitor(Clocks.sinceEpoch)
    func stand(_ options: inout Options) {
      options.environment.sinceEpoch = { clock.withLock { $0 } }
    }
    let pair = try Pair(stand)
    try await pair.phone.send(1, Self.soon)
    await pair.sender.leave()
    let again = try await pair.meeting.another(stand).join(as: "phone")
    let outstanding = try again.peer("watch").pendingMessages
    try #require(outstanding.count == 1)
    clock.withLock { $0 += 1_000_000_000 }
    #expect(try await outstanding[0].waitForStatus(within: patience) == .expired)
    #expect(try pair.files("inbox") == [])
  }

  /// No sender waits for the outcomes of these messages, and the next sender finds space.
  @Test(.blocking) func whatHasExpiredFillsNoQueue() throws {
    let timed = try Timed()
    let container = try timed.another { $0.mailbox.maximumQueuedMessages = 20 }
    let peer = container.peer("watch")
    for number in 0..<20 { try peer.send(number, number % 2 == 0 ? Self.never : .quick()) }
    #expect(try failure { try peer.send(0, .quick()) }.code == .full)
    // Half of the messages expire.
    timed.advance()
    for _ in 0..<10 { try peer.send(0, .quick()) }
    #expect(try failure { try peer.send(0, .quick()) }.code == .full)
    #expect(try timed.pair.files("inbox").count == 20)
  }

  @Test(.blocking) func whoeverLooksAtAQueueEndsWhatHasExpired() throws {
    let pair = try Pair()
    let peer = pair.meeting.container.peer("watch")
    try peer.send(1, Self.soon)
    try peer.send(2, Self.never)
    try eventually("one is left") { try peer.queue.count == 1 }
    #expect(try pair.files("inbox").count == 1)
  }

  /// Either the claim or the expiry of a message wins, and the sender receives the true outcome.
  @Test func expiringMeetsClaiming() async throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    var counts: [Outcome.Status: [Int]] = [:]
    for number in 0..<200 {
      let sent = try await pair.phone.send(
        number, .quick { $0.timeToLive = .microseconds(Int64(number) * 20) })
      counts[try await sent.waitForStatus(within: patience), default: []].append(number)
    }
    receiving.stop()
    #expect(heard.all.map(\.number) == counts[.delivered] ?? [])
    #expect(counts.values.reduce(0) { $0 + $1.count } == 200)
    #expect(counts.keys.allSatisfy { [.delivered, .expired].contains($0) })
  }

  /// Otherwise settled messages would fill the bounded list, and it would take no further message.
  @Test(.blocking) func whatHasEndedIsNotKeptUntilItsTimeHasPassed() throws {
    let pair = try Pair()
    let receiving = try pair.watch.receive { _ in }
    for number in 1...50 { try pair.phone.send(number, Self.never) }
    try eventually("all have ended") { pair.sender.outbox.expiries.count == 0 }
    receiving.stop()
  }

  /// A process that expires messages in place of a receiver keeps to the limit of the sender's
  /// receipts.
  @Test(.blocking) func whatNobodyReadsOfExpiredMessagesIsBounded() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    let meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    let phone = try meeting.container.join(as: "phone")
    for number in 1...100 { try phone.peer("watch").send(number, Self.soon) }
    phone.leave()
    let later = try meeting.another {
      $0.environment.sinceEpoch = { clock.withLock { $0 } + 1_000_000_000 }
      $0.mailbox.maximumReceiptBytes = 16 * 4096
    }
    #expect(try later.peer("watch").queue.isEmpty)
    let left = try meeting.names("members/phone/receipts").count
    #expect((14...16).contains(left), "\(left)")
  }

  /// A pair whose clock stands still until the test advances it.
  private struct Timed {
    let pair: Pair
    let clock: Monitor<Int64>

    init(_ adjust: @escaping (inout Options) -> Void = { _ in }) throws {
      let clock = Monitor(Clocks.sinceEpoch)
      self.clock = clock
      pair = try Pair {
        $0.environment.sinceEpoch = { clock.withLock { $0 } }
        adjust(&$0)
      }
    }

    func advance() { clock.withLock { $0 += 7_200_000_000_000 } }

    /// The same container, with the same clock.
    func another(_ adjust: (inout Options) -> Void) throws -> SharedContainer {
      let clock = clock
      return try pair.meeting.another {
        $0.environment.sinceEpoch = { clock.withLock { $0 } }
        adjust(&$0)
      }
    }
  }

  /// The message was received in time, and a sender that retries a dead letter wants it handled.
  @Test func aDeadLetterIsRetriedAfterItsTimeToLive() async throws {
    let timed = try Timed { $0.mailbox.attempts = 1 }
    let pair = timed.pair
    let sent = try await pair.phone.send("late", Self.never)
    let failing = try pair.watch.receive { _ in throw Refusal() }
    _ = try await sent.waitForStatus(within: patience)
    failing.stop()
    timed.advance()
    #expect(try pair.phone.retry(id: sent.id))
    // A listing, a sender that finds the queue full, and the doctor leave the message alone.
    #expect(try pair.phone.queue.map(\.id) == [sent.id])
    let home = try #require(try pair.meeting.container.storage.existingMember("watch"))
    #expect(Expiry.sweep(home, pair.meeting.container) == 0)
    #expect(pair.meeting.container.inspectMail().map(\.what).contains("1 message waits"))
    #expect(
      try pair.meeting.container.peer("watch", from: "phone").pendingMessages.map(\.id) == [sent.id]
    )
    let heard = Heard<String>()
    let receiving = try pair.watch.receive(String.self) { value, _ in heard.add(value) }
    try await heard.comes("it") { $0 == ["late"] }
    receiving.stop()
  }

  /// The message expires in the next incarnation of its sender, before a listing or a timer has
  /// settled the message.
  @Test func anExpiredMessageIsPendingInTheNextIncarnation() async throws {
    let timed = try Timed()
    let pair = timed.pair
    let id = try await pair.phone.send(1, Self.never).id
    await pair.sender.leave()
    let again = try await timed.another { _ in }.join(as: "phone")
    timed.advance()
    // The call lists the inbox twice: the message is not to end in between.
    let slow = FaultRule(
      .getdents, path: "watch/inbox", persistent: true, .delay(milliseconds: 10))
    var pending: [Sent] = []
    try FaultPoints.with([slow]) { pending = try again.peer("watch").pendingMessages }
    try #require(pending.map(\.id) == [id])
    #expect(try await pending[0].waitForStatus(within: patience) == .expired)
    #expect(try pair.files("inbox") == [])
  }

  /// Also if the listing program may not remove messages, as the command that lists a queue.
  @Test(.blocking) func whatHasExpiredIsNotShownAsWaiting() throws {
    let timed = try Timed()
    let container = timed.pair.meeting.container
    let peer = container.peer("watch", from: "phone")
    var life = Self.never
    let expiring = try peer.send(1, life)
    try peer.send(contentsOf: [2, 3], life)
    life.timeToLive = nil
    let lasting = try peer.send(4, life)
    #expect(try expiring.state == .waiting)
    timed.advance()
    let reader = try timed.another { $0.isForReading = true }
    #expect(try reader.peer("watch").queue.map(\.id) == [lasting.id])
    #expect(try peer.pendingMessages.map(\.id) == [lasting.id])
    #expect(try expiring.state == .ended)
    #expect(try lasting.state == .waiting)
    #expect(
      container.inspectMail().map(\.what) == ["1 message waits", "3 messages have expired"])
    // The calls so far have changed nothing; a listing by a program that may write removes
    // messages.
    #expect(try timed.pair.files("inbox").count == 3)
    #expect(try peer.queue.map(\.id) == [lasting.id])
    #expect(try timed.pair.files("inbox").count == 1)
  }

  /// Expired messages are invisible, so no sender could cancel them before the removal.
  @Test(.blocking) func whatHasExpiredKeepsNoMember() throws {
    let timed = try Timed()
    let container = timed.pair.meeting.container
    timed.pair.watch.leave()
    try container.peer("watch").send(1, Self.never)
    #expect(try failure { try container.removeMember("watch") }.code == .refused)
    timed.advance()
    #expect(try container.removeMember("watch"))
  }

  /// A sweep reads a part of a long queue: the oldest messages, and a random range of the rest.
  @Test(.blocking) func aSweepReachesEveryMessageOfALongQueue() throws {
    let timed = try Timed()
    let container = timed.pair.meeting.container
    try timed.pair.send(1...1099)
    let last = try container.peer("watch").send(1100, Self.never)
    timed.advance()
    let home = try #require(try container.storage.existingMember("watch"))
    // The range begins at the first message after the oldest ones, or as late as possible.
    for (random, count) in [(77, 0), (76, 1)] as [(UInt64, Int)] {
      let sweeper = try timed.another { $0.environment.random = { random } }
      #expect(Expiry.sweep(home, sweeper) == count)
    }
    #expect(try !timed.pair.files("inbox").contains(last.name.text))
    #expect(try timed.pair.files("inbox").count == 1099)
  }

  /// A queue's message that a worker has returned waits among the claims because of its ordering
  /// key.
  @Test func aMessageClaimedInVainExpires() async throws {
    let clock = Monitor(Clocks.sinceEpoch)
    let meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    let queue = meeting.container.queue("jobs", of: Int.self)
    for sweeps in [true, false] {
      let sent = try await queue.send(
        1,
        .quick {
          $0.orderingKey = "a"
          $0.timeToLive = .seconds(3600)
        })
      do {
        var loop = queue.deliveries().makeAsyncIterator()
        try #require(try await loop.next(isolation: nil)).requeue()
      }
      #expect(try meeting.names("queues/jobs/claimed").count == 1)
      clock.withLock { $0 += 7_200_000_000_000 }
      #expect(try sent.state == .ended)
      if sweeps {
        let home = try #require(
          try meeting.container.storage.existingMember("jobs", in: .queues))
        #expect(Expiry.sweep(home, meeting.container) == 1)
      } else {
        #expect(try queue.messages.isEmpty)
      }
      #expect(try meeting.names("queues/jobs/claimed") == [])
    }
  }

  /// The sender joins again when its message waits among the claims of the queue, or is claimed.
  @Test(arguments: [false, true])
  func aSenderThatJoinsAgainSettlesAMessageClaimedInVain(isClaimed: Bool) async throws {
    // The clock stands still until the message has been returned.
    let clock = Monitor(Clocks.sinceEpoch)
    func stand(_ options: inout Options) {
      options.environment.sinceEpoch = { clock.withLock { $0 } }
    }
    let meeting = try Meeting(stand)
    let sender = try await meeting.container.join(as: "phone")
    let sent = try await sender.queue("jobs", of: Int.self).send(
      1,
      .quick {
        $0.orderingKey = "a"
        $0.timeToLive = .milliseconds(20)
      })
    let home = try #require(try meeting.container.storage.existingMember("jobs", in: .queues))
    let (worker, presence) = try home.makeWorker(deadline: nil)
    let claimed = ClaimedName(sent.name, attempt: 1, claim: 1)
    let returned = ClaimedName(sent.name, attempt: 0, claim: 1)
    #expect(try home.move(sent.name.text, from: .inbox, to: worker, .claimed, as: claimed.text))
    func putBack() throws {
      #expect(
        try worker.move(claimed.text, from: .claimed, to: home, .claimed, as: returned.text))
    }
    if !isClaimed { try putBack() }
    await sender.leave()
    let again = try await meeting.another(stand).join(as: "phone")
    let pending = try again.queue("jobs", of: Int.self).pendingMessages
    try #require(pending.map(\.id) == [sent.id])
    if isClaimed { try putBack() }
    clock.withLock { $0 += 1_000_000_000 }
    #expect(try await pending[0].waitForStatus(within: patience) == .expired)
    #expect(try meeting.names("queues/jobs/claimed") == [])
    presence.release()
  }
}
