import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// P4, at the places where its mechanisms are needed: each test fails if one mechanism is missing.
@Suite(.blocking) struct MailMechanismTests {
  private let meeting: Meeting

  init() throws {
    meeting = try Meeting()
    try meeting.folder.write("", to: "log")
  }

  private func receive(until last: Int, faults: String = "") throws -> Running {
    try Running(
      .receive(meeting.path, "watch", log: meeting.folder.path + "/log", until: last),
      environment: ["WORMHOLE_FAULTS=\(faults)"])
  }

  private var log: [String] {
    get throws { try meeting.folder.read("log").split(separator: "\n").map(String.init) }
  }

  /// The receiver is suspended between its decision and its claim, and the message cancelled.
  @Test func whatIsCancelledBeforeTheClaimIsNotHandled() throws {
    let sender = try meeting.container.join(as: "phone")
    let sent = try sender.peer("watch").send(1, .quick())
    let receiver = try receive(until: 2, faults: "rename~watch/claimed:before:stop")
    try receiver.waitUntilStopped()
    #expect(try sent.cancel() == .cancelled)
    try sender.peer("watch").send(2, .quick())
    _ = try receiver.waitOrGo()
    #expect(try log == ["2 1 false", "2 done"])
  }

  /// A listing may show a message that was sent during or after its start, and miss earlier
  /// messages.
  ///
  /// So the later message waits for the next listing.
  @Test func whatWasSentAfterAListingBeganWaitsForTheNext() throws {
    // The receiver's clock stands still, as if each of its listings had started before the send.
    let began = Clocks.sinceBoot
    let clock = Monitor((asked: 0, isStill: true))
    let container = try meeting.another {
      $0.environment.sinceBoot = {
        clock.signal { clock in
          clock.asked += 1
          return clock.isStill ? began : Clocks.sinceBoot
        }
      }
    }
    let member = try container.join(as: "watch")
    let heard = Heard<Handed>()
    // The message is in the inbox already, so no notice of it arrives.
    try meeting.container.peer("watch").send(1, .quick())
    let receiving = try member.note(heard)
    // A stamp less than a second ahead belongs to a message that is being sent.
    let before = clock.withLock { $0.asked }
    try eventually("it was listed again and again") {
      clock.withLock { $0.asked > before + 3 } || heard.count > 0
    }
    #expect(heard.count == 0 || Clocks.sinceBoot > began + 1_000_000_000)
    clock.withLock { $0.isStill = false }
    try heard.wait("it comes") { $0 == [Handed(1)] }
    receiving.stop()
  }

  /// The receiver is killed when it has acknowledged some messages of a batch.
  @Test func ofABatchWhatIsDoneDoesNotComeAgain() throws {
    let sender = try meeting.container.join(as: "phone")
    try sender.peer("watch").send(contentsOf: [1, 2, 3, 4], .quick())
    let killed = try Running(
      .receive(meeting.path, "watch", log: meeting.folder.path + "/log", until: 4, poison: 3))
    #expect(try killed.outcome().status == .exited(9))
    #expect(try receive(until: 4).outcome().status == .exited(0))
    let expected = [
      "1 1 false", "1 done", "2 1 false", "2 done", "3 1 false", "3 2 true", "3 done",
      "4 1 false", "4 done",
    ]
    #expect(try log == expected)
  }

  /// The receiver is killed when it has dead-lettered the first of three messages.
  @Test func ofABatchWhatWasGivenUpDoesNotComeAgain() throws {
    let sender = try meeting.container.join(as: "phone")
    let sent = try sender.peer("watch").send(contentsOf: [1, 2, 3], .quick())[0]
    let stage = try Stage()
    let killed = try stage.run(
      """
      wormhole --container "$MEETING" receive --as watch --attempts 1 --quiet \
        --exec '[ $(cat) = 1 ] && exit 1; kill -KILL $PPID'
      """, environment: ["MEETING=\(meeting.path)"])
    #expect(killed.status == .exited(137), "\(killed.errors)")
    #expect(try sender.peer("watch").deadLetters.map(\.id) == [sent.id + ".0"])
    let heard = Heard<Handed>()
    let member = try eventually("the name is free") { try? meeting.container.join(as: "watch") }
    let receiving = try member.note(heard)
    try eventually("the sender is told") { sent.status != nil }
    receiving.stop()
    #expect(heard.all == [Handed(2, 2), Handed(3, 1)])
    // The sender is notified of the message that the earlier incarnation dead-lettered.
    #expect(sent.status.map { if case .deadLettered = $0 { true } else { false } } == true)
    #expect(try sender.peer("watch").deadLetters.map(\.id) == [sent.id + ".0"])
  }

  /// An attempt that a process returns is none, also if the message was redelivered.
  @Test func anUnclaimedRedeliveryCountsAsNoAttempt() throws {
    let container = try meeting.another {
      $0.mailbox.retryDelay = .milliseconds(1)
      $0.mailbox.attempts = 60
    }
    try meeting.container.peer("watch").send(1, .quick())
    let member = try container.join(as: "watch")
    let attempts = Heard<Int>()
    let receiving = try member.receive(acknowledging: .explicit) { message in
      if message.attempt == 1 { try message.fail("not now") } else { try message.unclaim() }
      attempts.add(message.attempt)
    }
    try attempts.wait("both attempts") { $0 == [1, 2] }
    receiving.stop()
    member.leave()
    let heard = Heard<Handed>()
    let again = try meeting.another { $0.mailbox.attempts = 60 }.join(as: "watch")
    let noting = try again.note(heard)
    try heard.wait("it is redelivered") { $0.count == 1 }
    noting.stop()
    #expect(heard.all == [Handed(1, 2)])
  }

  /// A requeued message was not handled, and the next incarnation's delivery states so.
  @Test func whatWasPutBackCountsAsNoAttemptInALaterLife() throws {
    let container = try meeting.another { $0.mailbox.attempts = 3 }
    try meeting.container.peer("watch").send(contentsOf: [1, 2], .quick())
    let member = try container.join(as: "watch")
    let times = Monitor(0)
    let putting = try member.receive(acknowledging: .explicit) { message in
      times.signal { $0 += 1 }
      message.requeue()
    }
    let _: Void? = times.wait(until: .now + patience) { $0 >= 10 ? () : nil }
    putting.stop()
    member.leave()
    let heard = Heard<Handed>()
    let next = try meeting.another { $0.mailbox.attempts = 3 }.join(as: "watch")
    let receiving = try next.note(heard)
    try heard.wait("both") { $0.count == 2 }
    receiving.stop()
    #expect(heard.all.sorted { $0.number < $1.number } == [Handed(1), Handed(2)])
    #expect(times.withLock { $0 } >= 10)
  }

  /// Killed as soon as the file has moved at all, a process has cancelled the message, and the
  /// sender is notified.
  ///
  /// Another thread of the process may read the receipt before the kill takes effect. The thread
  /// must not remove the receipt, because the outcome would count as reported.
  @Test func whoDiesCancellingLosesNothing() throws {
    let sender = try meeting.container.join(as: "phone")
    try sender.peer("watch").send(1, .quick())
    sender.leave()
    let killed = try Running(
      .cancel(meeting.path, from: "phone", to: "watch"),
      environment: [
        "WORMHOLE_FAULTS=rename~live:after:kill;rename~receipts:after:kill;"
          + "unlink~receipts:before:kill"
      ])
    #expect(try killed.outcome().status == .signalled(9))
    let next = try eventually("the name is free") { try? meeting.container.join(as: "phone") }
    let heard = Heard<Outcome.Status>()
    let watching = try next.watchOutcomes { heard.add($0.status) }
    #expect(throws: Never.self) {
      try eventually("it is told, or still there") {
        try heard.all == [.cancelled] || !next.peer("watch").pendingMessages.isEmpty
      }
    }
    watching.stop()
  }

  /// A cancellation and a claim meet: exactly one of the two gets the message, and the sender
  /// learns the result, also after its restart.
  @Test func cancellingMeetsClaiming() throws {
    let count = TestRun.isLong ? 10_000 : TestRun.isSanitized ? 1_000 : 3_000
    let old = try meeting.container.join(as: "phone")
    let sent = try (0..<count).map { try old.peer("watch").send($0, .quick()) }
    // The sender leaves, so that the receipts remain for the next incarnation.
    old.leave()
    let member = try meeting.another().join(as: "watch")
    let heard = Heard<Int>()
    let (progress, cancelled) = (Monitor(-1), Heard<Int>())
    let receiving = try member.receive(Int.self) { value, _ in
      heard.add(value)
      // On a busy machine the cancellers may not run before all messages are handled.
      if heard.count == 1 { try cancelled.wait("a cancellation") { !$0.isEmpty } }
      progress.signal { $0 = value }
    }
    // A canceller is always just ahead of the last handled message, where the next claim is.
    let cancellers = try (1...2).map { step in
      try Thread("canceller") {
        var next = 0
        while next < count {
          next = max(next, progress.withLock { $0 } + step)
          if next < count, (try? sent[next].cancel()) == .cancelled { cancelled.add(next) }
          next += Int(Clocks.sinceBoot % 3) + 1
          for _ in 0..<(Clocks.sinceBoot % 8) { Processes.yield() }
        }
      }
    }
    for canceller in cancellers { canceller.join() }
    try eventually("all have ended") { heard.count + cancelled.count >= count }
    receiving.stop()
    let (delivered, takenBack) = (Set(heard.all), Set(cancelled.all))
    #expect(delivered.count == heard.count && takenBack.count == cancelled.count)
    #expect(delivered.isDisjoint(with: takenBack), "never both")
    #expect(delivered.union(takenBack).count == count, "nor neither")
    #expect(!delivered.isEmpty && !takenBack.isEmpty, "they met")
    let next = try meeting.another().join(as: "phone")
    let told = Heard<Outcome>()
    let watching = try next.watchOutcomes { told.add($0) }
    try told.wait("all") { $0.count == count }
    let numbers = Dictionary(uniqueKeysWithValues: sent.enumerated().map { ($1.id, $0) })
    for outcome in told.all {
      let isTakenBack = takenBack.contains(numbers[outcome.id]!)
      #expect(outcome.status == (isTakenBack ? .cancelled : .delivered))
    }
    #expect(Set(told.all.map(\.id)).count == count)
    watching.stop()
  }

  /// A backlog is drained at the same cost per message, whatever its length, in little memory.
  @Test(.notSanitized("it measures memory"))
  func aLongBacklogCostsNoMorePerMessage() throws {
    let isLong = TestRun.isLong
    let sender = try meeting.container.join(as: "phone")
    func drain(_ count: Int, _ name: String) throws -> (cost: Double, peak: Int) {
      let peer = sender.peer(name)
      let options = SendOptions.quick { $0.wantsOutcome = false }
      for number in 0..<count { try peer.send(number, options) }
      let words = try Running(.drain(meeting.path, name, count: count))
        .outcome(within: .seconds(isLong ? 1200 : 120)).output.split(whereSeparator: \.isWhitespace)
      let numbers = words.compactMap { Double($0) }
      try #require(numbers.count == 2)
      return (numbers[0] / Double(count), Int(numbers[1]))
    }
    var best = Double.infinity
    for attempt in 1...3 where best > 1.5 {
      let short = try drain(1000, "short\(attempt)")
      let long = try drain(isLong ? 100_000 : 12_500, "long\(attempt)")
      best = min(best, long.cost / short.cost)
      // A sanitizer keeps several times of what the process uses.
      #expect(long.peak < (TestRun.isSanitized ? 128 : 64) << 10, "KiB")
    }
    #expect(best <= 1.5)
  }
}
