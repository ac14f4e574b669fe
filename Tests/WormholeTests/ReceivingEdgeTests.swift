import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Receivers and their mailbox where two rules meet.
@Suite struct ReceivingEdgeTests {
  // MARK: Receivers that end

  @Test func aSequenceOfAMemberThatHasLeftFailsOnceAndThenEnds() async throws {
    let pair = try Pair()
    await pair.watch.leave()
    var messages = pair.watch.deliveries.makeAsyncIterator()
    do throws(WormholeError) {
      _ = try await messages.next(isolation: nil)
      Issue.record("the sequence does not fail")
    } catch {
      #expect(error.code == .notJoined)
    }
    for _ in 1...2 {
      let next = try await messages.next(isolation: nil)
      #expect(next == nil)
    }
  }

  @Test func theOutcomesOfAMemberThatHasLeftFailOnceAndThenEnd() async throws {
    let pair = try Pair()
    let all = pair.sender.outcomes
    await pair.sender.leave()
    var outcomes = all.makeAsyncIterator()
    do throws(WormholeError) {
      _ = try await outcomes.next(isolation: nil)
      Issue.record("the sequence does not fail")
    } catch {
      #expect(error.code == .notJoined)
    }
    for _ in 1...2 {
      let next = try await outcomes.next(isolation: nil)
      #expect(next == nil)
    }
  }

  /// The task stops while the receiver compares the file of the claimed message.
  @Test(.blocking) func whatIsClaimedForATaskThatHasStoppedGoesToTheNextReceiver() throws {
    let gate = Gate()
    let files = try FilePair { $0.mailbox.onFileProgress = { _, _ in gate.pass() } }
    try files.make("film", size: 1000)
    try files.phone.send(file: files.path("film"), .quick())
    let pump = try Pump(files.watch.mailbox, nil)
    let ended = Heard<Bool>()
    Task.detached {
      let work = await pump.next()
      ended.add(work == nil)
    }
    try gate.waitForSomebody()
    pump.stop()
    try ended.wait("the task has no message") { $0 == [true] }
    #expect(try files.names("claimed").count == 1)
    gate.open()
    try files.handle { message in
      #expect(message.attempt == 1 && !message.isRedelivered)
      let exists = try #require(message.file).exists
      #expect(exists)
    }
    try files.waitUntilNothingIsLeft()
  }

  /// A member that leaves waits for the end of the task.
  @Test(.blocking) func aReceiverThatIsStoppedEndsItsTaskAndIsForgotten() throws {
    let pair = try Pair()
    let receiving = try pair.watch.receive { _ in await Task.yield() }
    let tasks = pair.watch.mailbox.tasks
    let stopped = tasks.cancel()
    #expect(stopped.count == 1)
    #expect(stopped.allSatisfy { $0.wait(until: .now + patience) })
    try eventually("it is forgotten") { tasks.cancel().isEmpty }
    receiving.stop()
  }

  // MARK: Requeued messages

  @Test(.blocking) func inStrictOrderARequeuedMessageLetsTheNextFollow() throws {
    let pair = try Pair { $0.mailbox.keepsOrderOnRetry = true }
    try pair.send([1, 2])
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      heard.add(try Handed(message))
      if heard.count == 1 { message.requeue() }
    }
    try heard.wait("both messages") { $0.count == 3 }
    receiving.stop()
    #expect(heard.all == [Handed(1), Handed(1), Handed(2)])
    #expect(pair.watch.mailbox.state.withLock { $0.machine.inHand } == 0)
  }

  /// A handler has the message once more, so the attempt counts as that of any other in hand.
  @Test(.blocking) func aRequeuedMessageThatIsTakenAgainStaysClaimedWhenItsMemberLeaves() throws {
    let pair = try Pair()
    try pair.send([1])
    try pair.watch.take(1)[0].requeue()
    let again = try pair.watch.take(1)[0]
    #expect(try Handed(again) == Handed(1))
    pair.watch.leave()
    #expect(try pair.files("inbox") == [])
    let heard = Heard<Handed>()
    let next = try pair.meeting.another().join(as: "watch")
    let receiving = try next.note(heard)
    try heard.wait("it comes again") { $0.count == 1 }
    receiving.stop()
    #expect(heard.all == [Handed(1, 2)])
    #expect(try failure { try again.acknowledge() }.code == .superseded)
  }

  // MARK: Attempts and letters

  @Test(.blocking) func theLetterOfOneMessageOfABatchHasTheValueOfThisMessage() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let sent = try pair.phone.send(contentsOf: [1, 2, 3], .quick())[0]
    let refusing = try pair.watch.receive { message in
      if try message.value(as: Int.self) == 2 { throw Refusal() }
    }
    _ = try sent.waitForEnd()
    refusing.stop()
    let letters = try pair.phone.deadLetters
    #expect(letters.map(\.id) == [sent.id + ".1"])
    #expect(letters.map(\.count) == [1])
    #expect(try pair.phone.retry(id: sent.id + ".1"))
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try heard.wait("the letter") { $0.count == 1 }
    receiving.stop()
    #expect(heard.all == [Handed(2, 1, marked: true)])
  }

  @Test(.blocking, arguments: [-1, 0]) func eachMessageHasOneAttemptAtLeast(
    _ attempts: Int
  ) throws {
    let pair = try Pair { $0.mailbox.attempts = attempts }
    let sent = try pair.phone.send(contentsOf: [1, 2], .quick())[0]
    let heard = Heard<Handed>()
    let receiving = try pair.watch.receive { message in
      heard.add(try Handed(message))
      throw Refusal()
    }
    _ = try sent.waitForEnd()
    receiving.stop()
    #expect(heard.all == [Handed(1), Handed(2)])
    let letters = try pair.phone.deadLetters
    #expect(letters.map(\.attempts) == [1, 1])
    #expect(letters.map(\.reason) == ["Refusal()", "Refusal()"])
  }

  @Test(.blocking) func noMoreAttemptsAreCountedThanANameHasSpaceFor() {
    #expect(MailboxOptions(attempts: 60).machine.attempts == 60)
    #expect(MailboxOptions(attempts: 61).machine.attempts == 60)
    #expect(MailboxOptions(attempts: .max).machine.attempts == 60)
  }

  // MARK: Listings

  private func name(_ time: Int64) -> MessageName {
    MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: time), wantsReceipt: true, count: 1,
      id: "m\(time)", from: "phone")
  }

  /// A machine whose only receiver lists the inbox now, and is notified of each arrival.
  private func listingMachine() -> MailboxMachine {
    var machine = MailboxMachine(MailboxMachine.Settings())
    machine.add(1, kinds: nil)
    #expect(machine.next(for: 1, now: 0) == .recover)
    machine.recovered([])
    #expect(machine.next(for: 1, now: 0, isHeard: true) == .list)
    return machine
  }

  /// Of the stamps that are ahead of the clock, the latest is awaited, and each stamp that is a
  /// second ahead is taken for one of a wrong clock.
  @Test(.blocking) func onlyStampsLessThanASecondAheadAreAwaited() {
    var machine = listingMachine()
    let (start, now) = (MessageStamp(epoch: 1, nanoseconds: 1000), Int64(2000))
    let second: Int64 = 1_000_000_000
    let wrong = name(now + second)
    let last = name(now + second - 1)
    let awaited = machine.listed(
      [name(now + 1), last, wrong, name(now + 5), name(999)], before: start,
      now: MessageStamp(epoch: 1, nanoseconds: now))
    #expect(awaited == last.stamp)
    #expect(machine.next(for: 1, now: 0) == .claim(name(999)))
    #expect(machine.next(for: 1, now: 0) == .claim(wrong))
    #expect(machine.next(for: 1, now: 0) == .wait(until: nil))
  }

  /// Between the last known name and a reported one there may be others.
  @Test(.blocking) func anArrivalBeyondTheEndOfAListingWaitsForTheNextListing() {
    var machine = listingMachine()
    machine.arrived([name(50), name(5)], now: 0)
    let start = MessageStamp(epoch: 1, nanoseconds: 100)
    machine.listed([name(1), name(10)], before: start, end: name(10), listAgain: .max)
    for time in [1, 5, 10] as [Int64] {
      #expect(machine.next(for: 1, now: 0, isHeard: true) == .claim(name(time)))
    }
    #expect(machine.next(for: 1, now: 0, isHeard: true) == .list)
  }

  // MARK: Messages that tests make

  @Test(.blocking) func aMadeRequestAndAMadeMessageHaveAllThatWasGiven() throws {
    let record = MadeRequest()
    let request = try Request(
      made: 1, from: "phone", kind: nil, headers: ["a": "b"], timeLeft: .seconds(100), record)
    #expect(request.from == "phone" && request.kind == "Int")
    #expect(request.headers == ["a": "b"])
    #expect(request.timeLeft > .seconds(50) && request.timeLeft <= .seconds(100))
    try request.reply(2)
    #expect(record.hasEnded)
    let message = try ImmediateMessage(made: 1, from: nil, kind: "k", headers: ["c": "d"])
    #expect(message.from == nil && message.kind == "k")
    #expect(message.headers == ["c": "d"])
  }
}
