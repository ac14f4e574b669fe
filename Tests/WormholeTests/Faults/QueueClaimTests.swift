import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// Claims of a queue's worker: their numbers, their loss, and their way back.
@Suite(.blocking) struct QueueClaimTests {
  private let meeting: Meeting
  private let queue: Wormhole.Queue<Int>

  init() throws {
    meeting = try Meeting()
    queue = meeting.container.queue("jobs")
  }

  private func workers() throws -> [String] { try meeting.names("queues/jobs/workers") }

  private func next(_ callers: QueueCallers) throws -> Message {
    try #require(callers.next(until: .now + patience))
  }

  /// The only claim of a worker.
  private func claim(of worker: String) throws -> ClaimedName {
    let files = try meeting.names("queues/jobs/workers/\(worker)/claimed")
    #expect(files.count == 1)
    return try #require(files.first.flatMap { ClaimedName($0) })
  }

  /// The loss is known from the renewal on, and still ends the claim only with its handler.
  @Test func aClaimThatItsRenewalFindsGoneIsLateAndHoldsUpNoWorker() throws {
    try queue.send(1, .quick())
    let callers = try queue.callers(handlingDeadline: nil)
    let late = try next(callers)
    let worker = try #require(try workers().first)
    let claimed = try claim(of: worker)
    // As another worker returns a claim that has lasted too long.
    let jobs = try meeting.folder("queues/jobs")
    try? jobs.makeDirectory("claimed", mode: 0o700)
    try jobs.rename(
      "workers/\(worker)/claimed/\(claimed.text)", to: jobs, "claimed/\(claimed.name.text)~1")
    let second = try next(callers)
    #expect(try Handed(second) == Handed(1, 2))
    let renewal = try failure { try late.renew() }
    #expect(renewal.code == .superseded)
    #expect(renewal.operation == "renew the claim of message")
    let end = try failure { try late.acknowledge() }
    #expect(end.code == .superseded && end.operation == "acknowledge message")
    #expect(throws: Never.self) { try late.acknowledge() }
    #expect(throws: Never.self) { try late.renew() }
    try second.acknowledge()
    #expect(try queue.messages.isEmpty)
    callers.stop()
    #expect(try workers() == [])
  }

  /// A handler has used most of the time: after half of the handling deadline, counted from its
  /// end, the claim would be late, and its return would be an attempt.
  @Test(arguments: [false, true])
  func aClaimThatIsHeldAfterALongHandlingIsRenewedAtOnce(_ fails: Bool) throws {
    let clock = TestClock()
    let slow = try meeting.another {
      $0.clock = clock
      $0.mailbox.retryDelay = .seconds(60)
    }.queue("jobs", of: Int.self)
    try slow.send(1, .quick())
    let callers = try slow.callers(handlingDeadline: .seconds(10))
    let message = try next(callers)
    let worker = try #require(try workers().first)
    let claimed = try claim(of: worker)
    clock.advance(by: .seconds(8))
    if fails { try message.fail("no paper") } else { message.requeue(after: .seconds(60)) }
    try TestSupport.eventually("the claim has another name") {
      try meeting.names("queues/jobs/workers/\(worker)/claimed") != [claimed.text]
    }
    #expect(try claim(of: worker).attempt == 1)
    callers.stop()
    #expect(try workers() == [])
  }

  /// Should the process end before the caller continues, the attempt would count.
  @Test func aMessageThatNoHandlerHasGoesBackWithTheStop() throws {
    let worker = try QueueWorker("jobs", meeting.container, deadline: nil)
    try worker.begin()
    let isHanded = Monitor(false)
    let ticket = worker.newTicket
    worker.ask(ticket) { isHanded.signal { $0 = true } }
    try queue.send(1, .quick())
    try TestSupport.eventually("the message is claimed") { isHanded.withLock { $0 } }
    worker.stop()
    #expect(worker.state.withLock { $0.handed.isEmpty })
    #expect(try workers() == [])
    #expect(try meeting.names("queues/jobs/inbox").filter { $0 != "room" }.count == 1)
  }

  /// With the same numbers, two workers could return a message under one name.
  @Test func workersNumberTheirClaimsByTheirOwnNames() throws {
    try queue.send(contentsOf: [1, 2], .quick())
    var held: [(callers: QueueCallers, message: Message)] = []
    var seen: Set<String> = []
    for _ in 1...2 {
      let callers = try queue.callers(handlingDeadline: nil)
      let worker = try #require(try workers().first { !seen.contains($0) })
      seen.insert(worker)
      let message = try next(callers)
      held.append((callers, message))
      let digits = try #require(Int(worker.prefix(8), radix: 16))
      #expect(try claim(of: worker).claim == digits % ClaimedName.lastClaim + 1)
    }
    for one in held {
      try one.message.acknowledge()
      one.callers.stop()
    }
    #expect(try workers() == [])
  }

  /// A worker starts with a number by chance, and may soon have used the last one.
  @Test func afterTheLastNumberOfAClaimComesTheFirst() throws {
    let worker = try QueueWorker("jobs", meeting.container, deadline: nil)
    worker.state.withLock { $0.lastClaim = ClaimedName.lastClaim }
    try worker.begin()
    let isHanded = Monitor(false)
    worker.ask(worker.newTicket) { isHanded.signal { $0 = true } }
    try queue.send(1, .quick())
    try TestSupport.eventually("the message is claimed") { isHanded.withLock { $0 } }
    #expect(try claim(of: worker.own.escaped).claim == 1)
    worker.stop()
    #expect(try workers() == [])
    #expect(try queue.messages.map(\.state) == [.waiting])
  }

  @Test func whatCannotBeDeadLetteredIsKeptAndGoesBackWithTheEndOfItsWorker() throws {
    let full = try meeting.another {
      $0.mailbox.attempts = 1
      $0.mailbox.maximumDeadLetters = 0
    }.queue("jobs", of: Int.self)
    let sent = try full.send(1, .quick())
    let callers = try full.callers(handlingDeadline: nil)
    let message = try next(callers)
    let error = try failure { try message.fail("no paper") }
    #expect(error.code == .full && error.subject == sent.id)
    #expect(try workers().count == 1)
    callers.stop()
    #expect(try workers() == [])
    #expect(try queue.messages.map(\.id) == [sent.id])
    #expect(try meeting.names("queues/jobs/claimed").map { $0.hasSuffix("~1") } == [true])
    #expect(try queue.deadLetters.isEmpty)
  }

  private func name(_ number: Int64, key: String? = nil) -> MessageName {
    MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: number), wantsReceipt: false, count: 1,
      id: "number\(number)", key: key.map { OrderingKey(of: $0) }, from: "")
  }

  /// A claim of a worker that has not begun, so that only the test performs its steps.
  private func claim(of worker: QueueWorker) throws -> ClaimedName {
    let claimed = ClaimedName(name(1), attempt: 1, claim: 1)
    try worker.own.place([1], as: claimed.text, in: .claimed)
    worker.state.withLock { $0.inHand += 1 }
    return claimed
  }

  private func takeHeld(_ worker: QueueWorker) -> [HeldClaim] {
    worker.state.withLock { $0.machine.takeHeld() }
  }

  /// After another half of the handling deadline, another worker would have the message.
  @Test func aRenewalThatTheSystemRefusesIsTriedAgainSoon() throws {
    let worker = try QueueWorker("jobs", meeting.container, deadline: .seconds(30))
    let claimed = try claim(of: worker)
    let begun = worker.now - 15_000_000_000
    let due = begun + 600_000_000_000
    let first = HeldClaim(
      claimed: claimed, due: due, renewal: worker.now, begun: begun, end: .undone)
    FaultPoints.with([FaultRule(.rename, .fail(.noSpace))]) { worker.renew(first) }
    let refused = takeHeld(worker)
    #expect(refused.map(\.claimed) == [claimed])
    #expect(refused.map(\.begun) == [begun] && refused.map(\.due) == [due])
    #expect(refused.allSatisfy { $0.renewal <= worker.now + 1_000_000_000 })
    for one in refused { worker.renew(one) }
    let renewed = takeHeld(worker)
    #expect(renewed.map { $0.claimed == claimed } == [false])
    #expect(renewed.allSatisfy { $0.begun > begun && $0.due == due })
    for one in renewed { worker.putBack(one) }
    #expect(worker.state.withLock { $0.inHand } == 0)
    worker.stop()
    #expect(try workers() == [])
  }

  /// The claim was renewed before its return: the time since then counts.
  @Test func aClaimThatCannotBeReturnedIsRenewedInTime() throws {
    let worker = try QueueWorker("jobs", meeting.container, deadline: .seconds(30))
    let claimed = try claim(of: worker)
    let begun = worker.now - 14_000_000_000
    let held = HeldClaim(claimed: claimed, due: worker.now, begun: begun, end: .undone)
    FaultPoints.with([FaultRule(.rename, .fail(.noSpace))]) { worker.putBack(held) }
    let again = takeHeld(worker)
    #expect(again.map(\.renewal) == [begun + 15_000_000_000])
    for one in again { worker.putBack(one) }
    worker.stop()
    #expect(try workers() == [])
  }

  /// The handler has used most of the time.
  @Test func aClaimThatCannotBeDeadLetteredIsRenewedInTime() throws {
    let full = try meeting.another {
      $0.mailbox.attempts = 1
      $0.mailbox.maximumDeadLetters = 0
    }
    let worker = try QueueWorker("jobs", full, deadline: .seconds(30))
    let claimed = try claim(of: worker)
    let begun = worker.now - 20_000_000_000
    let error = try failure {
      try worker.failed(claimed, attempt: 1, "no paper", since: begun)
    }
    #expect(error.code == .full)
    worker.letGo(claimed)
    let held = takeHeld(worker)
    #expect(held.map(\.renewal) == [begun + 15_000_000_000])
    for one in held { worker.putBack(one) }
    worker.stop()
    #expect(try workers() == [])
  }

  /// The other messages of a sender have the error of its receipts, but not that of this queue.
  @Test func onlyAnErrorOfTheSendersReceiptsIsReportedOnce() throws {
    let worker = try QueueWorker("jobs", meeting.container, deadline: nil)
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: true, count: 1,
      id: "one", from: "phone")
    func levels(_ operation: String) -> [LogLevel] {
      let error = WormholeError(.permissionDenied, operation, name.id, because: "it is closed")
      return (1...2).map { _ in worker.settlement.level(of: error, name) }
    }
    #expect(levels("requeue message") == [.error, .error])
    #expect(levels("acknowledge message") == [.error, .info])
    worker.stop()
    #expect(try workers() == [])
  }

  /// The worker holds a claim once for the next try, and does not take its own return for the loss
  /// of the claim to another worker.
  @Test func aClaimThatIsInVainAndCannotBeReturnedIsHeldOnce() throws {
    let worker = try QueueWorker("jobs", meeting.container, deadline: nil)
    let earlier = ClaimedName(name(1, key: "key"), attempt: 1, claim: 1)
    let claimed = ClaimedName(name(2, key: "key"), attempt: 1, claim: 2)
    try worker.queue.place([1], as: earlier.text, in: .claimed)
    try worker.own.place([1], as: claimed.text, in: .claimed)
    worker.state.withLock { $0.inHand += 1 }
    var isFirst: Bool?
    try FaultPoints.with([FaultRule(.rename, .fail(.inputOutput))]) {
      isFirst = try worker.isFirstOfKey(claimed)
    }
    #expect(isFirst == false)
    worker.letGo(claimed)
    let held = worker.state.withLock { $0.machine.takeHeld() }
    #expect(held.map(\.claimed) == [claimed])
    #expect(worker.state.withLock { $0.inHand } == 1)
    for one in held { worker.putBack(one) }
    #expect(try meeting.names("queues/jobs/claimed").count == 2)
    worker.stop()
    #expect(try workers() == [])
  }
}
