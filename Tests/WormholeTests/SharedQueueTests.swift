import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

/// Queues that several workers share, in one process.
@Suite struct SharedQueueTests {
  private let meeting: Meeting
  private let queue: Queue<Int>

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    queue = meeting.container.queue("jobs")
  }

  private func other() throws -> Queue<Int> { try meeting.another().queue("jobs") }

  private func workers() throws -> [String] { try meeting.names("queues/jobs/workers") }

  @Test func eachMessageIsOneWorkers() async throws {
    try await queue.send(contentsOf: Array(1...200), .quick())
    let heard = Heard<Int>()
    var working: [Subscription] = []
    for _ in 0..<3 { working.append(try other().work(concurrency: 2) { job, _ in heard.add(job) }) }
    for number in 201...240 { try await queue.send(number, .quick()) }
    try await WormholeTesting.eventually("all are handled", within: patience) { heard.count >= 240 }
    for one in working { one.stop() }
    for one in working { try await one.finished() }
    #expect(heard.all.sorted() == Array(1...240))
    #expect(try queue.messages.isEmpty)
    try await WormholeTesting.eventually("no worker is left", within: patience) {
      try workers() == []
    }
  }

  @Test func aSingleWorkerKeepsTheOrder() async throws {
    for number in 1...20 { try await queue.send(number, .quick()) }
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    for number in 21...60 { try await queue.send(number, .quick()) }
    try await queue.send(contentsOf: Array(61...80), .quick())
    try await WormholeTesting.eventually("all are handled", within: patience) { heard.count >= 80 }
    working.stop()
    #expect(heard.all == Array(1...80))
  }

  @Test func anUrgentMessageGoesFirst() async throws {
    try await queue.send(contentsOf: [1, 2, 3], .quick())
    try await queue.send(4, .quick { $0.isUrgent = true })
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    try await WormholeTesting.eventually("all are handled", within: patience) { heard.count >= 4 }
    working.stop()
    #expect(heard.all == [4, 1, 2, 3])
  }

  /// While the handler is busy, no notice arrives; the first idle moment ends the pause.
  @Test func afterAPauseTheInboxIsListenedToAgain() async throws {
    let (heard, gate) = (Heard<Int>(), Gate())
    let working = try queue.work { job, _ in
      heard.add(job)
      while job == 1, gate.isClosed { await Task.yield() }
    }
    for number in 1...50 { try await queue.send(number, .quick()) }
    try await heard.comes("the first") { $0 == [1] }
    try await queue.send(51, .quick { $0.isUrgent = true })
    gate.open()
    try await heard.comes("those of the pause") { $0.count == 51 }
    // An urgent message precedes the others, though its notice was lost.
    #expect(heard.all == [1, 51] + Array(2...50))
    for number in 52...53 {
      try await queue.send(number, .quick())
      await #expect(throws: Never.self) {
        try await heard.comes("the next") { $0.last == number }
      }
    }
    working.stop()
  }

  @Test func aMessageThatFailsIsRedeliveredAndThenDeadLettered() async throws {
    let phone = try await meeting.container.join(as: "phone")
    let sent = try await phone.queue("jobs", of: Int.self).send(7, .quick())
    let heard = Heard<Handed>()
    let working = try queue.work { _, message in
      heard.add(try Handed(message))
      throw Refused()
    }
    let end = try await sent.waitForStatus(within: .seconds(20))
    guard case .deadLettered = end else { return #expect(Bool(false), "\(end)") }
    #expect(heard.all == (1...5).map { Handed(7, $0) })
    working.stop()
    let letters = try queue.deadLetters
    #expect(letters.map(\.attempts) == [5] && letters.map(\.from) == ["phone"])
    #expect(try queue.retry(id: sent.id))
    let again = Heard<Handed>()
    let second = try queue.work { _, message in again.add(try Handed(message)) }
    try await WormholeTesting.eventually("it is tried again", within: patience) { again.count == 1 }
    second.stop()
    #expect(again.all == [Handed(7, 1, marked: true)])
    #expect(try queue.deadLetters.isEmpty)
  }

  @Test func theSenderIsToldTheOutcome() async throws {
    let phone = try await meeting.container.join(as: "phone")
    let jobs = phone.queue("jobs", of: Int.self)
    let sent = try await jobs.send(1, .quick())
    #expect(try sent.state == .waiting)
    let seen = Heard<Sent.State>()
    let working = try queue.work { _, _ in seen.add(try sent.state) }
    #expect(try await sent.waitForStatus(within: .seconds(20)) == .delivered)
    #expect(seen.all == [.claimed])
    working.stop()
    let late = try await jobs.send(2, .quick())
    #expect(try jobs.pendingMessages.map(\.id) == [late.id])
    #expect(try late.cancel() == .cancelled)
    #expect(try queue.messages.isEmpty)
  }

  @Test func aMessageOfAPastTimeIsExpired() async throws {
    let phone = try await meeting.container.join(as: "phone")
    let jobs = phone.queue("jobs", of: Int.self)
    let sent = try await jobs.send(1, .quick { $0.timeToLive = .nanoseconds(1) })
    try await jobs.send(2, .quick())
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    try await WormholeTesting.eventually("the second is handled", within: patience) {
      heard.count == 1
    }
    working.stop()
    #expect(heard.all == [2])
    #expect(try await sent.waitForStatus(within: .seconds(20)) == .expired)
  }

  /// The closures have begun, so a part of their work may have been done.
  @Test(arguments: [nil, "key"])
  func aWorkerThatStopsCountsNoAttemptAndMarksItsMessages(_ key: String?) async throws {
    for number in 1...2 {
      try await queue.send(number, .quick { $0.orderingKey = key.map { "\($0) \(number)" } })
    }
    let begun = Monitor(0)
    let working = try other().work(concurrency: 2) { _, _ in
      begun.signal { $0 += 1 }
      try await untilCancelled()
    }
    try await WormholeTesting.eventually("both are claimed", within: patience) {
      begun.withLock { $0 } == 2
    }
    working.stop()
    try await working.finished()
    #expect(try workers() == [])
    let heard = Heard<Handed>()
    let second = try queue.work { _, message in heard.add(try Handed(message)) }
    try await WormholeTesting.eventually("both are handled", within: patience) { heard.count == 2 }
    second.stop()
    let marked = heard.all.sorted { $0.number < $1.number }
    #expect(marked == [Handed(1, marked: true), Handed(2, marked: true)])
  }

  @Test func aClosureThatReturnsAfterTheStopHasHandledItsMessage() async throws {
    try await queue.send(1, .quick())
    let begun = Monitor(false)
    let working = try queue.work { _, _ in
      begun.signal { $0 = true }
      // Ends with the task.
      try? await untilCancelled()
    }
    try await WormholeTesting.eventually("it is claimed", within: patience) {
      begun.withLock { $0 }
    }
    working.stop()
    try await working.finished()
    #expect(try queue.messages.isEmpty)
    #expect(try workers() == [])
  }

  @Test func aMessageThatHangsIsRedeliveredAfterItsDeadline() async throws {
    try await queue.send(1, .quick())
    // Read before the claim: on a busy machine the deadline may pass before the next line.
    let begin = Instant.now
    var hung = queue.deliveries(handlingDeadline: .milliseconds(100)).makeAsyncIterator()
    let first = try #require(try await hung.next(isolation: nil))
    let heard = Heard<Handed>()
    let working = try other().work { _, message in heard.add(try Handed(message)) }
    await #expect(throws: Never.self) {
      try await WormholeTesting.eventually("it is handled by another", within: patience) {
        heard.count == 1
      }
    }
    working.stop()
    #expect(heard.all == [Handed(1, 2)])
    #expect(Instant.now - begin >= .milliseconds(90))
    let error = #expect(throws: WormholeError.self) { try first.acknowledge() }
    #expect(error?.code == .superseded)
    #expect(try queue.messages.isEmpty)
  }

  /// No other process is needed: the worker itself is one that looks.
  @Test(.notSanitized("deadlines of a tenth of a second"), arguments: [nil, "key"])
  func aHungMessageComesBackToItsOwnWorker(_ key: String?) async throws {
    try await queue.send(1, .quick { $0.orderingKey = key })
    let heard = Heard<Handed>()
    let working = try queue.work(concurrency: 2, handlingDeadline: .milliseconds(100)) {
      _, message in
      heard.add(try Handed(message))
      if message.attempt == 1 { try await untilCancelled() }
    }
    try await WormholeTesting.eventually("it is handled again", within: patience) {
      heard.count >= 2
    }
    working.stop()
    try await working.finished()
    // On a busy machine the second attempt may be late as well.
    #expect(heard.all.prefix(2) == [Handed(1), Handed(1, 2)])
  }

  @Test(.notSanitized("deadlines of less than a second"))
  func aRenewedMessageStays() async throws {
    let heard = Heard<Handed>()
    // On a busy machine this test itself may be later than the deadline. Each round has a queue of
    // its own, as the message of such a round is left.
    for round in 1...10 {
      let queue = meeting.container.queue("round \(round)", of: Int.self)
      try await queue.send(round, .quick())
      var slow = queue.deliveries(handlingDeadline: .milliseconds(400)).makeAsyncIterator()
      var (latest, longest) = (Instant.now, Duration.zero)
      let message = try #require(try await slow.next(isolation: nil))
      let working = try meeting.another().queue(queue.name, of: Int.self).work { _, message in
        heard.add(try Handed(message))
      }
      defer { working.stop() }
      // Three deadlines pass, in each of which an observer looks.
      let end = Instant.now + .milliseconds(1200)
      while Instant.now < end, longest < .milliseconds(300) {
        try? await WormholeTesting.eventually("a pause", within: .milliseconds(60)) { false }
        try? message.renew()
        longest = max(longest, Instant.now - latest)
        latest = .now
      }
      guard longest < .milliseconds(300) else { continue }
      #expect(!heard.all.contains { $0.number == round })
      try message.acknowledge()
      #expect(try queue.messages.isEmpty)
      return
    }
    skip("a renewed message", because: "the machine is too slow")
  }

  @Test func withoutADeadlineNothingIsTakenAway() async throws {
    try await queue.send(1, .quick())
    var slow = queue.deliveries(handlingDeadline: nil).makeAsyncIterator()
    let message = try #require(try await slow.next(isolation: nil))
    let working = try other().work { _, _ in }
    // Observers look at least every 700 milliseconds.
    try? await WormholeTesting.eventually("a pause", within: .milliseconds(1500)) { false }
    #expect(try queue.messages.map(\.attempt) == [1])
    try message.acknowledge()
    working.stop()
  }

  @Test func aRequeuedMessageIsNoAttempt() async throws {
    try await queue.send(1, .quick())
    let heard = Heard<Handed>()
    let working = try queue.work { _, message in
      heard.add(try Handed(message))
      if heard.count < 3 { message.requeue(after: .milliseconds(heard.count)) }
    }
    try await WormholeTesting.eventually("it is handled at last", within: patience) {
      heard.count == 3
    }
    working.stop()
    try await working.finished()
    #expect(heard.all == [Handed(1), Handed(1), Handed(1)])
    #expect(try queue.messages.isEmpty)
  }

  /// A message that waits for its next attempt is in no handler's hands: its claim is not late.
  ///
  /// The renewals have five seconds, as a busy machine may need.
  @Test(.notSanitized("a deadline of some seconds"))
  func aPauseLongerThanTheDeadlineIsKept() async throws {
    try await queue.send(1, .quick())
    let (begin, heard) = (Instant.now, Heard<Handed>())
    let working = try queue.work(handlingDeadline: .seconds(10)) { _, message in
      heard.add(try Handed(message))
      if heard.count == 1 { message.requeue(after: .seconds(21)) }
    }
    try await WormholeTesting.eventually("it is redelivered", within: .seconds(90)) {
      heard.count == 2
    }
    #expect(Instant.now - begin >= .seconds(21))
    #expect(heard.all == [Handed(1), Handed(1)])
    working.stop()
  }

  @Test func aCancelledLoopLeavesNoWorker() async throws {
    let loop = Task { [queue] in
      var count = 0
      for try await message in queue.deliveries() {
        try message.acknowledge()
        count += 1
      }
      return count
    }
    try await queue.send(1, .quick())
    try await WormholeTesting.eventually("it is handled", within: patience) {
      try queue.messages.isEmpty
    }
    loop.cancel()
    #expect(try await loop.value == 1)
    try await WormholeTesting.eventually("no worker is left", within: patience) {
      try workers() == []
    }
  }

  @Test func closingTheContainerEndsTheWorkers() async throws {
    let container = try meeting.another()
    let working = try container.queue("jobs", of: Int.self).work { _, _ in }
    await container.close()
    try await working.finished()
    #expect(try workers() == [])
  }

  /// The longest sender, the longest identifier, the last attempt and the highest claim.
  @Test func namesAtTheirLimits() async throws {
    let name = String(repeating: "n", count: 180)
    let sender = try await meeting.container.join(as: name)
    let jobs = sender.queue(name, of: Int.self)
    let sent = try await jobs.send(1, .quick { $0.id = String(repeating: "i", count: 36) })
    let heard = Heard<Int>()
    let working = try meeting.container.queue(name, of: Int.self).work { _, message in
      heard.add(message.attempt)
      if message.attempt < 3 { throw Refused() }
    }
    #expect(try await sent.waitForStatus(within: .seconds(20)) == .delivered)
    working.stop()
    #expect(heard.all == [1, 2, 3])
    let longestName = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: true, count: 1,
      id: String(repeating: "i", count: 36), from: name)
    let longest = ClaimedName(longestName, attempt: 60, claim: ClaimedName.lastClaim)
    #expect(longest.text.utf8.count <= 255)
    #expect(ClaimedName(longest.text) == longest)
  }

  @Test func aQueueInUseIsNotRemoved() async throws {
    func refusal() -> WormholeError? {
      #expect(throws: WormholeError.self) { try meeting.container.removeQueue("jobs") }
    }
    #expect(try !meeting.container.removeQueue("jobs"))
    let working = try other().work { _, _ in throw Refused() }
    #expect(try meeting.container.queues() == ["jobs"])
    #expect(refusal()?.code == .refused)
    let sent = try await queue.send(1, .quick())
    try await WormholeTesting.eventually("it is a dead letter", within: patience) {
      try queue.deadLetters.count == 1
    }
    working.stop()
    try await working.finished()
    #expect(refusal()?.code == .refused)
    #expect(try queue.retry(id: sent.id))
    #expect(refusal()?.code == .refused)
    #expect(try queue.cancel(id: sent.id) == .cancelled)
    #expect(try meeting.container.removeQueue("jobs"))
    #expect(try meeting.container.queues() == [])
  }

  @Test func aMemberAndAQueueOfOneNameAreTwo() async throws {
    let member = try await meeting.container.join(as: "jobs")
    try await queue.send(1, .quick())
    try await meeting.container.peer("jobs").send(2, .quick())
    #expect(try queue.messages.count == 1)
    let heard = Heard<Handed>()
    let receiving = try member.note(heard)
    try await WormholeTesting.eventually("the member has its message", within: patience) {
      heard.count == 1
    }
    receiving.stop()
    #expect(heard.all == [Handed(2)])
    #expect(try queue.messages.count == 1)
  }

  /// A damaged message is dead-lettered by whoever reads it, and holds up nothing.
  @Test func aDamagedMessageIsDeadLettered() async throws {
    try await queue.send(1, .quick())
    try await queue.send(2, .quick())
    let names = try meeting.names("queues/jobs/inbox")
    try meeting.overwrite("queues/jobs/inbox/" + names[0], [1, 2, 3])
    let heard = Heard<Int>()
    let working = try queue.work { job, _ in heard.add(job) }
    try await WormholeTesting.eventually("the second is handled", within: patience) {
      heard.count == 1
    }
    try await WormholeTesting.eventually("the first is a dead letter", within: patience) {
      try queue.deadLetters.count == 1
    }
    working.stop()
    #expect(heard.all == [2])
  }
}

private struct Refused: Error {}

/// Waits until the task is cancelled, and throws.
private func untilCancelled() async throws {
  let (stream, _) = AsyncStream.makeStream(of: Void.self)
  for await _ in stream {}
  throw CancellationError()
}
