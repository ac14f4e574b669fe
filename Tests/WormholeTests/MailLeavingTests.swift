import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A member with claimed messages that leaves, or whose name another incarnation takes.
@Suite struct MailLeavingTests {
  private let meeting: Meeting
  private let sender: Member
  private let phone: Peer

  init() throws {
    meeting = try Meeting()
    sender = try meeting.container.join(as: "phone")
    phone = sender.peer("watch")
  }

  private func join() throws -> Member {
    try meeting.another { $0.mailbox.attempts = 60 }.join(as: "watch")
  }

  private func leaveInHand(_ what: String) throws -> [String] {
    try meeting.names("members/watch/" + what)
  }

  @Test(.blocking) func whatWasInHandComesFirstAndMarked() throws {
    for number in 1...4 { try phone.send(number, .quick()) }
    let old = try join()
    let messages = try old.take(2)
    old.leave()
    let heard = Heard<Handed>()
    let new = try join()
    let receiving = try new.note(heard)
    try heard.wait("all") { $0.count == 4 }
    #expect(heard.all == [Handed(1, 2), Handed(2, 2), Handed(3), Handed(4)])
    for message in messages {
      #expect(try failure { try message.acknowledge() }.code == .superseded)
    }
    receiving.stop()
  }

  /// The last attempt fails after the next incarnation has claimed the message.
  @Test(.blocking) func aMessageOfTheNextLifeIsNotDeadLettered() throws {
    try phone.send(1, .quick())
    let old = try meeting.another { $0.mailbox.attempts = 1 }.join(as: "watch")
    let message = try old.take(1)[0]
    old.leave()
    let new = try join()
    let next = try new.take(1)[0]
    #expect(try failure { try message.fail("too late") }.code == .superseded)
    #expect(try leaveInHand("dead") == [])
    try next.acknowledge()
  }

  /// Returns a message in its last attempt twice: as claimed by an incarnation that has left, and
  /// as claimed by the next one.
  private func takeTwice() throws -> (lost: Message, claimed: Message) {
    try phone.send(1, .quick())
    let old = try meeting.another { $0.mailbox.attempts = 1 }.join(as: "watch")
    let lost = try old.take(1)[0]
    old.leave()
    let new = try meeting.another { $0.mailbox.attempts = 2 }.join(as: "watch")
    return (lost, try new.take(1)[0])
  }

  /// Fails a message on a thread of its own, which pauses before a system call.
  private func fail(
    _ message: Message, _ reason: String, before call: Call, _ path: String
  ) throws -> (thread: Thread, pause: FaultPause) {
    let pause = FaultPause()
    let thread = try Thread("late") {
      FaultPoints.with([FaultRule(call, path: path, .pause(pause))]) {
        try? message.fail(reason)
      }
    }
    try eventually("the thread pauses") { pause.isReached }
    return (thread, pause)
  }

  /// The late process has found no letter, and removes the reason after the letter was placed.
  @Test(.blocking) func aLetterPlacedBeforeTheRemovalOfItsReasonKeepsAReason() throws {
    let (lost, claimed) = try takeTwice()
    let late = try fail(lost, "too late", before: .unlink, ",reason")
    try claimed.fail("refused")
    late.pause.open()
    late.thread.join()
    let letters = try sender.peer("watch").deadLetters
    #expect(letters.map { $0.reason != nil } == [true])
    #expect(letters.map { $0.attempts > 0 } == [true])
  }

  /// The late process writes and removes its reason before the letter is placed.
  @Test(.blocking) func aLetterPlacedAfterTheRemovalOfItsReasonKeepsItsReason() throws {
    let (lost, claimed) = try takeTwice()
    let burial = try fail(claimed, "refused", before: .link, "dead/")
    #expect(try failure { try lost.fail("too late") }.code == .superseded)
    burial.pause.open()
    burial.thread.join()
    let letters = try sender.peer("watch").deadLetters
    #expect(letters.map(\.reason) == ["refused"])
    #expect(letters.map(\.attempts) == [2])
    #expect(try leaveInHand("claimed") == [])
  }

  /// A member that has left may still be notified, when another instance already has joined.
  @Test(.blocking) func whoHasLeftTakesNoReceipts() throws {
    try phone.send(1, .quick())
    sender.leave()
    let watch = try join()
    let receiving = try watch.note(Heard<Handed>())
    try eventually("the receipt is there") {
      try meeting.names("members/phone/receipts").count == 1
    }
    receiving.stop()
    #expect(try failure { _ = try sender.watchOutcomes { _ in } }.code == .notJoined)
    let heard = Heard<Outcome.Status>()
    let next = try meeting.another().join(as: "phone")
    let watching = try next.watchOutcomes { heard.add($0.status) }
    try heard.wait("the outcome") { $0 == [.delivered] }
    watching.stop()
  }

  @Test(.blocking) func ofABatchComesWhatWasNotDone() throws {
    try phone.send(contentsOf: [1, 2, 3, 4], .quick())
    let old = try join()
    let messages = try old.take(3)
    try messages[1].acknowledge()
    old.leave()
    let heard = Heard<Handed>()
    let new = try join()
    let receiving = try new.note(heard)
    try heard.wait("all") { $0.count == 3 }
    #expect(heard.all == [Handed(1, 2), Handed(3, 2), Handed(4)])
    receiving.stop()
    #expect(try leaveInHand("claimed") == [])
  }

  /// The next incarnation would count the attempt.
  @Test(.blocking) func aReturnThatTheSystemRefusesIsRepeatedWhileItsMemberLeaves() throws {
    try phone.send(1, .quick())
    let old = try join()
    let messages = try old.take(1)
    messages[0].requeue(after: .seconds(1000))
    FaultPoints.with([FaultRule(.rename, path: "watch/inbox/", .fail(.inputOutput))]) {
      old.leave()
    }
    let (next, heard) = (try join(), Heard<Handed>())
    let receiving = try next.note(heard)
    try heard.wait("the message") { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == [Handed(1)])
  }

  /// The next process has handled the message, and dies before the batch has ended.
  @Test(.blocking) func aMessageOfABatchThatIsRequeuedTooLateStaysHandled() throws {
    try phone.send(contentsOf: [1, 2], .quick())
    let old = try join()
    let late = try old.take(1)
    old.leave()
    let second = try join()
    let messages = try second.take(2)
    try messages[0].acknowledge()
    late[0].requeue()
    second.leave()
    _ = consume messages
    let (third, heard) = (try join(), Heard<Handed>())
    let receiving = try third.note(heard)
    try eventually("the batch has ended") { try leaveInHand("claimed") == [] }
    receiving.stop()
    #expect(heard.all == [Handed(2, 2)])
  }

  @Test(.blocking) func afterLeavingASingleMessageCanBeAcknowledgedIfNobodyHasIt() throws {
    try phone.send(1, .quick())
    try phone.send(contentsOf: [2, 3], .quick())
    let old = try join()
    let messages = try old.take(3)
    old.leave()
    try messages[0].acknowledge()
    // The progress of a batch is stored for the next incarnation, which may have read it already.
    #expect(try failure { try messages[1].acknowledge() }.code == .notJoined)
    let heard = Heard<Handed>()
    let new = try join()
    let receiving = try new.note(heard)
    try heard.wait("the batch") { $0.count == 2 }
    #expect(heard.all == [Handed(2, 2), Handed(3, 2)])
    #expect(try failure { try messages[2].acknowledge() }.code == .notJoined)
    receiving.stop()
  }

  /// A leaving member waits for messages in its handlers, and gets no further message.
  ///
  /// The number of messages that are handled before the leaving starts is a matter of chance.
  @Test(.blocking) func whatIsHandledWhileItLeavesDoesNotComeAgain() throws {
    try phone.send(contentsOf: Array(1...5), .quick())
    let old = try join()
    let (gate, early, late) = (Gate(), Heard<Handed>(), Heard<Handed>())
    let receiving = try old.receive { message in
      early.add(try Handed(message))
      gate.pass()
    }
    try gate.waitForSomebody()
    let leaving = try Thread("leaving") { old.leave() }
    #expect(try failure { _ = try join() }.code == .nameTaken)
    gate.open()
    leaving.join()
    let new = try join()
    let next = try new.note(late)
    try late.wait("all that is left") { early.count + $0.count >= 5 }
    receiving.stop()
    #expect(early.all + late.all == (1...5).map { Handed($0) })
    next.stop()
  }

  /// A message of a batch that ends its receiver would end each incarnation, if it were
  /// redelivered.
  @Test(.blocking) func whatWasHandledByLeavingDoesNotComeAgain() throws {
    try phone.send(contentsOf: Array(1...4), .quick())
    for number in 1...4 {
      // A leaving member is not joined any more, and its name is free a moment later.
      let member = try eventually("the name is free") { try? join() }
      let heard = Heard<Handed>()
      let receiving = try member.receive { message in
        heard.add(try Handed(message))
        member.leave()
      }
      try eventually("it has left") { !member.isJoined }
      #expect(heard.all == [Handed(number)])
      receiving.stop()
    }
    #expect(try leaveInHand("claimed") == [])
  }

  /// All waits end when their member has left, and later calls are refused.
  @Test func allThatWaitsEndsWithTheMember() async throws {
    let sent = try await phone.send(1, .quick())
    let outcome = Task {
      try? await failure { _ = try await sent.waitForStatus(within: patience) }.code
    }
    let outcomes = Task { [sender] in
      for try await _ in sender.outcomes { return false }
      return true
    }
    let contexts = Task { [sender] in
      for try await _ in sender.receivedContexts { return false }
      return true
    }
    let messages = Task { [sender] in
      for try await _ in sender.deliveries { return false }
      return true
    }
    for _ in 1...100 { await Task.yield() }
    await sender.leave()
    #expect(await outcome.value == .notJoined)
    // A loop that had not started before is refused; both count as an end.
    for task in [outcomes, contexts, messages] {
      do { #expect(try await task.value) } catch let error as WormholeError {
        #expect(error.code == .notJoined)
      }
    }
    #expect(try await failure { _ = try await sent.waitForStatus() }.code == .notJoined)
    #expect(try failure { try phone.send(2, .quick()) }.code == .notJoined)
    #expect(try failure { try phone.send(contentsOf: [2, 3], .quick()) }.code == .notJoined)
    #expect(try failure { try phone.setContext(2) }.code == .notJoined)
    #expect(try failure { _ = try sender.receive { _ in } }.code == .notJoined)
    #expect(try failure { _ = try sender.watchContexts { _ in } }.code == .notJoined)
    #expect(try failure { try phone.sendImmediately(2) }.code == .notJoined)
    let question = try await failure {
      let _: Int = try await phone.request(2, within: .milliseconds(200))
    }
    #expect(question.code == .notJoined)
    let late = try await failure { for try await _ in sender.deliveries {} }
    #expect(late.code == .notJoined)
    let guest = try await meeting.container.guest()
    await guest.leave()
    #expect(try failure { try guest.peer("watch").send(2, .quick()) }.code == .notJoined)
    #expect(try meeting.names("members/watch/inbox").count == 1)
  }

  @Test(.blocking) func leavingInsideTheClosureEndsTheReceiver() throws {
    for number in 1...3 { try phone.send(number, .quick()) }
    let old = try join()
    let heard = Heard<Handed>()
    let receiving = try old.receive { message in
      heard.add(try Handed(message))
      old.leave()
    }
    try heard.wait("the first") { $0.count == 1 }
    try eventually("it is acknowledged") { try leaveInHand("claimed") == [] }
    receiving.stop()
    let new = try eventually("the name is free") { try? join() }
    let other = Heard<Handed>()
    let next = try new.note(other)
    try other.wait("the rest") { $0.count == 2 }
    #expect(other.all == [Handed(2), Handed(3)])
    next.stop()
  }

  @Test func aLoopEndsWhenItsMemberLeaves() async throws {
    try await phone.send(1, .quick())
    let old = try join()
    var heard: [Handed] = []
    for try await message in old.deliveries {
      heard.append(try Handed(message))
      try message.acknowledge()
      await old.leave()
    }
    #expect(heard == [Handed(1)])
  }

  /// Many incarnations of a member, each of which claims a few messages and leaves: no message is
  /// lost or redelivered unmarked.
  @Test(.blocking) func manyLives() throws {
    let seed = TestRun.seed
    var random = SeededRandom(seed: seed)
    for start in stride(from: 1, to: 60, by: 10) {
      try phone.send(start, .quick())
      try phone.send(contentsOf: Array(start + 1...start + 9), .quick())
    }
    var handed: [Handed] = []
    var acknowledged: Set<Int> = []
    while acknowledged.count < 60 {
      let member = try join()
      let count = Int.random(in: 1...12, using: &random)
      let messages = try member.take(min(count, 60 - acknowledged.count))
      for message in messages {
        let one = try Handed(message)
        #expect(!acknowledged.contains(one.number), "seed \(seed)")
        #expect(one.isMarked == handed.contains { $0.number == one.number }, "seed \(seed)")
        handed.append(one)
        if Bool.random(using: &random) {
          try message.acknowledge()
          acknowledged.insert(one.number)
        }
      }
      member.leave()
      // Released before the leaving, the messages would have failed; now the attempts are cut off.
      _ = consume messages
    }
    var first: [Int] = []
    for one in handed where !first.contains(one.number) { first.append(one.number) }
    #expect(first == Array(1...60), "seed \(seed)")
  }
}
