import WormholeContainerStorage
import TestTraits
import Testing

@testable import Wormhole

/// The decisions of the state machine, step by step; `ExplorationTests` explores their
/// consequences.
@Suite(.blocking, .notSanitized("pure, on one thread")) struct MailboxMachineTests {
  private func name(_ time: Int64, kind: String = "", urgent: Bool = false) -> MessageName {
    MessageName(
      isUrgent: urgent, MessageStamp(epoch: 1, nanoseconds: time), wantsReceipt: true, count: 1,
      id: "m\(time)", from: "phone")
  }

  /// A machine with receivers for these kinds, after the recovery and a listing.
  private func machine(
    _ kinds: [Set<String>?], _ names: [MessageName] = [],
    _ change: (inout MailboxMachine.Settings)
      -> Void = { _ in }
  ) -> MailboxMachine {
    var settings = MailboxMachine.Settings()
    change(&settings)
    var machine = MailboxMachine(settings)
    for (index, kinds) in kinds.enumerated() { machine.add(index + 1, kinds: kinds) }
    #expect(machine.next(for: 1, now: 0) == .recover)
    #expect(machine.next(for: 1, now: 0) == .wait(until: nil))
    machine.recovered([])
    #expect(machine.next(for: 1, now: 0) == .list)
    machine.listed(names, before: MessageStamp(epoch: 1, nanoseconds: 100))
    return machine
  }

  @Test func takesInOrderWhatWasSentBeforeTheListing() {
    var machine = machine([nil], [name(101), name(3), name(2), name(7, urgent: true)])
    for time in [7, 2, 3] as [Int64] {
      #expect(machine.next(for: 1, now: 0) == .claim(name(time, urgent: time == 7)))
    }
    #expect(machine.next(for: 1, now: 0) == .list, "for what was sent meanwhile")
    machine.listed([name(101)], before: MessageStamp(epoch: 1, nanoseconds: 200))
    #expect(machine.next(for: 1, now: 0) == .claim(name(101)))
  }

  /// A second message with the same stamp may be missing in the listing.
  @Test func aMessageWithTheListingsStampWaitsForTheNextListing() {
    var machine = machine([nil], [name(100), name(99)])
    #expect(machine.next(for: 1, now: 0) == .claim(name(99)))
    #expect(machine.next(for: 1, now: 0) == .list)
    machine.listed([name(100)], before: MessageStamp(epoch: 1, nanoseconds: 101))
    #expect(machine.next(for: 1, now: 0) == .claim(name(100)))
  }

  @Test func whatIsUrgentIsLookedForBeforeTheRestIsTaken() {
    var machine = machine([nil], [name(1), name(2)])
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    machine.signal(urgent: true)
    #expect(machine.next(for: 1, now: 0) == .list)
    machine.listed(
      [name(2), name(150, urgent: true)], before: MessageStamp(epoch: 1, nanoseconds: 200))
    #expect(machine.next(for: 1, now: 0) == .claim(name(150, urgent: true)))
    #expect(machine.next(for: 1, now: 0) == .claim(name(2)))
  }

  /// A listing may show only some of the messages sent during the listing.
  ///
  /// On a slow machine, or in a process that is suspended in the middle, a listing may take
  /// seconds.
  @Test func whatWasSentDuringALongListingWaitsForTheNext() {
    var machine = machine([nil], [name(101)])
    #expect(machine.next(for: 1, now: 0) == .list)
    let start = MessageStamp(epoch: 1, nanoseconds: 200)
    let (early, late) = (name(2_000_000_000), name(3_000_000_000))
    machine.listed(
      [late, name(101)], before: start, now: MessageStamp(epoch: 1, nanoseconds: 4_000_000_000))
    #expect(machine.next(for: 1, now: 0) == .claim(name(101)))
    #expect(machine.next(for: 1, now: 0) == .list)
    machine.listed([late, early], before: MessageStamp(epoch: 1, nanoseconds: 5_000_000_000))
    #expect(machine.next(for: 1, now: 0) == .claim(early))
    #expect(machine.next(for: 1, now: 0) == .claim(late))
  }

  @Test func aClockThatIsFarAheadHoldsUpNobody() {
    let ahead = name(5_000_000_000)
    var machine = machine([nil], [ahead, name(1)])
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    #expect(machine.next(for: 1, now: 0) == .claim(ahead))
    #expect(machine.next(for: 1, now: 0) == .wait(until: nil))
  }

  @Test func aPauseOfHoursGrowsNoShorter() {
    var settings = MailboxMachine.Settings()
    settings.firstDelay = 3 * 3_600_000_000_000
    settings.longestDelay = settings.firstDelay
    for attempt in 1...60 { #expect(settings.delay(after: attempt) == settings.firstDelay) }
  }

  @Test func whatFailsComesLaterAndLater() {
    var machine = machine([nil], [name(1)]) {
      $0.firstDelay = 10
      $0.longestDelay = 25
      $0.attempts = 4
    }
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    var now: Int64 = 0
    for (attempt, delay) in [(1, 10), (2, 20), (3, 25)] as [(Int, Int64)] {
      let claimed = ClaimedName(name(1), attempt: attempt)
      #expect(
        machine.failed(claimed, kind: "n", attempt: attempt, by: 1, now: now)
          == .retry(at: now + delay))
      #expect(machine.next(for: 1, now: now + delay - 1) == .wait(until: now + delay))
      now += delay
      #expect(machine.next(for: 1, now: now) == .reclaim(claimed))
    }
    let last = ClaimedName(name(1), attempt: 4)
    #expect(machine.failed(last, kind: "n", attempt: 4, by: 1, now: now) == .giveUp)
    machine.finished(by: 1)
    #expect(machine.inHand == 0)
  }

  @Test func turnsGoToWhoeverHasWaitedLongest() {
    var machine = machine([nil, nil, nil])
    for receiver in 1...3 { #expect(machine.next(for: receiver, now: 0) == .wait(until: nil)) }
    machine.signal(urgent: false)
    #expect(machine.next(for: 1, now: 0) == .list)
    machine.listed((1...9).map { name($0) }, before: MessageStamp(epoch: 1, nanoseconds: 100))
    var order: [Int] = []
    while order.count < 9 {
      for receiver in [1, 1, 2, 3, 3] {
        if case .claim = machine.next(for: receiver, now: 0) { order.append(receiver) }
      }
    }
    for start in [0, 3, 6] { #expect(Set(order[start..<start + 3]) == [1, 2, 3], "\(order)") }
  }

  /// A message that one receiver reads may be for the other receiver, and is older than the rest.
  @Test func nothingGoesAheadOfWhatIsLookedAt() {
    var machine = machine([["odd"], ["even"]], [name(2), name(4)])
    #expect(machine.next(for: 1, now: 0) == .peek(name(2)))
    #expect(machine.next(for: 2, now: 0) == .yield)
    var isTaken = machine.peeked(name(2), kind: "even", by: 1)
    #expect(!isTaken)
    // The first receiver may read the next message while the second takes this message.
    #expect(machine.next(for: 2, now: 0) == .peek(name(2)))
    isTaken = machine.peeked(name(2), kind: "even", by: 2)
    #expect(isTaken)
    #expect(machine.next(for: 1, now: 0) == .peek(name(4)))
  }

  /// While a sender has as many waiting messages as allowed, no further message of the sender is
  /// claimed, not even a message whose kind was read already.
  @Test func whatIsShelvedDoesNotPassWhatItsSenderWaitsWith() {
    var machine = machine([["odd"], ["even"]], [name(2), name(4)]) { $0.waiting = 1 }
    for time in [2, 4] as [Int64] {
      #expect(machine.next(for: 1, now: 0) == .peek(name(time)))
      let isTaken = machine.peeked(name(time), kind: "even", by: 1)
      #expect(!isTaken)
    }
    #expect(machine.next(for: 2, now: 0) == .peek(name(2)))
    let isTaken = machine.peeked(name(2), kind: "even", by: 2)
    #expect(isTaken)
    let claimed = ClaimedName(name(2), attempt: 1)
    guard case .retry(let due) = machine.failed(claimed, kind: "even", attempt: 1, by: 2, now: 0)
    else {
      Issue.record("it was given up")
      return
    }
    #expect(machine.next(for: 2, now: 0) == .wait(until: due))
    #expect(machine.next(for: 2, now: due) == .reclaim(claimed))
    // Then the sender's later messages are listed again.
    #expect(machine.next(for: 2, now: due) == .list)
  }

  /// One receiver reads a message's kind while the inbox is listed for another receiver, which then
  /// knows the message twice.
  @Test func whatIsKnownTwiceIsTakenAllTheSame() {
    var machine = machine([["odd"], ["even"]], [name(2)])
    #expect(machine.next(for: 1, now: 0) == .peek(name(2)))
    machine.signal(urgent: true)
    #expect(machine.next(for: 2, now: 0) == .list)
    machine.listed([name(2)], before: MessageStamp(epoch: 1, nanoseconds: 100))
    var isTaken = machine.peeked(name(2), kind: "even", by: 1)
    #expect(!isTaken)
    #expect(machine.next(for: 2, now: 0) == .peek(name(2)))
    isTaken = machine.peeked(name(2), kind: "even", by: 2)
    #expect(isTaken)
    // A receiver that reaches the message once more finds the message gone.
    #expect(machine.next(for: 2, now: 0) == .peek(name(2)))
    isTaken = machine.peeked(name(2), kind: nil, by: 2)
    #expect(!isTaken)
    #expect(machine.next(for: 2, now: 0) == .claim(name(2)))
    machine.missing(by: 2)
    #expect(machine.next(for: 2, now: 0) == .wait(until: nil))
  }

  @Test func noMoreIsInHandThanAllowed() {
    var machine = machine([nil], (1...5).map { name($0) }) { $0.inHand = 2 }
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    #expect(machine.next(for: 1, now: 0) == .claim(name(2)))
    #expect(machine.next(for: 1, now: 0) == .wait(until: nil))
    machine.finished(by: 1)
    #expect(machine.next(for: 1, now: 0) == .claim(name(3)))
  }

  @Test func whatTheSystemRefusesIsTriedAgainAfterAPause() {
    var machine = machine([nil], [name(1)])
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    machine.claimFailed(by: 1, until: 50)
    #expect(machine.next(for: 1, now: 10) == .wait(until: 50))
    #expect(machine.next(for: 1, now: 50) == .list)
    machine.listingFailed(until: 90)
    #expect(machine.next(for: 1, now: 60) == .wait(until: 90))
    #expect(machine.next(for: 1, now: 90) == .list)
  }

  @Test func whatCannotBeClaimedAloneHoldsUpNobody() {
    var machine = machine([nil], [name(1), name(2), name(3)])
    for _ in 0..<3 {
      #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
      machine.claimFailed(by: 1, until: 50)
      #expect(machine.next(for: 1, now: 0) == .claim(name(2)))
      #expect(machine.next(for: 1, now: 0) == .claim(name(3)))
      #expect(machine.next(for: 1, now: 0) == .list)
      machine.listed(
        [name(1), name(2), name(3)], before: MessageStamp(epoch: 1, nanoseconds: 100))
    }
  }

  @Test func whenNothingCanBeClaimedTheOrderIsKept() {
    var machine = machine([nil], [name(1), name(2), name(3)])
    for now in [0, 50, 100] as [Int64] {
      #expect(machine.next(for: 1, now: now) == .claim(name(1)))
      machine.claimFailed(by: 1, until: now + 50)
      #expect(machine.next(for: 1, now: now) == .claim(name(2)))
      machine.claimFailed(by: 1, until: now + 50)
      #expect(machine.next(for: 1, now: now + 49) == .wait(until: now + 50))
      #expect(machine.next(for: 1, now: now + 50) == .list)
      machine.listed(
        [name(1), name(2), name(3)], before: MessageStamp(epoch: 1, nanoseconds: 100))
    }
    for time in 1...3 { #expect(machine.next(for: 1, now: 150) == .claim(name(Int64(time)))) }
  }

  @Test func whereOrderIsStrictARefusedClaimHoldsUpTheRest() {
    var machine = machine([nil], [name(1), name(2)]) { $0.isStrict = true }
    #expect(machine.next(for: 1, now: 0) == .claim(name(1)))
    machine.claimFailed(by: 1, until: 50)
    #expect(machine.next(for: 1, now: 50) == .list)
    machine.listed([name(2), name(1)], before: MessageStamp(epoch: 1, nanoseconds: 100))
    #expect(machine.next(for: 1, now: 50) == .claim(name(1)))
  }

  @Test func whoHasLetAnotherGoFirstIsToAskAgainOnceThatOneIsServed() {
    var machine = machine([nil, nil], [name(1), name(2), name(3)])
    #expect(machine.next(for: 2, now: 0) == .claim(name(1)))
    machine.finished(by: 2)
    // The first receiver has waited for longer by now, if it has asked at all.
    #expect(machine.next(for: 1, now: 0) == .claim(name(2)))
    machine.finished(by: 1)
    #expect(machine.next(for: 2, now: 0) == .claim(name(3)))
    machine.finished(by: 2)
    for receiver in [1, 2] { #expect(machine.next(for: receiver, now: 0) != .yield) }
    machine.listed([name(4), name(5)], before: MessageStamp(epoch: 1, nanoseconds: 100))
    #expect(machine.next(for: 2, now: 0) == .yield)
    #expect(machine.next(for: 1, now: 0) == .claim(name(4)))
    let isHeldUp = [machine.takeHeldUp(), machine.takeHeldUp()]
    #expect(isHeldUp == [true, false])
    #expect(machine.next(for: 2, now: 0) == .claim(name(5)))
  }

  /// In strict order, a second receiver waits even for the files of a dead process.
  @Test func inStrictOrderOneFileOfADeadProcessIsClaimedAtATime() {
    var settings = MailboxMachine.Settings()
    settings.isStrict = true
    var machine = MailboxMachine(settings)
    for receiver in 1...2 { machine.add(receiver, kinds: nil) }
    #expect(machine.next(for: 1, now: 0) == .recover)
    let claimed = [1, 2].map { ClaimedName(name($0), attempt: 1) }
    machine.recovered(claimed.map { MailboxMachine.Leftover(claimed: $0, kind: nil) })
    #expect(machine.next(for: 1, now: 0) == .reclaim(claimed[0]))
    #expect(machine.next(for: 2, now: 0) == .wait(until: nil))
    machine.finished(by: 1)
    #expect(machine.next(for: 2, now: 0) == .reclaim(claimed[1]))
  }
}
