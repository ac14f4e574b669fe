import TestTraits
import Testing
import Wormhole

/// The decisions of a worker of a queue, without files.
@Suite(.blocking) struct QueueMachineTests {
  private func name(_ number: Int, _ key: String? = nil) -> MessageName {
    MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Int64(number)), wantsReceipt: false,
      count: 1, id: "m\(number)", key: key.map { OrderingKey(of: $0) }, from: "")
  }

  private let start = MessageStamp(epoch: 2, nanoseconds: 0)
  private let end = MessageStamp(epoch: 2, nanoseconds: 1)

  /// The machine after a listing of these messages.
  private func machine(_ names: [MessageName], window: Int = 1 << 13) -> QueueMachine {
    var machine = QueueMachine(window: window)
    #expect(machine.next(now: 0, isAsked: true) == .list)
    _ = machine.listed(fresh: names, returned: [], before: start, now: end)
    return machine
  }

  @Test func aMessageReturnedDuringAListingIsListedAgain() {
    var machine = QueueMachine()
    #expect(machine.next(now: 0, isAsked: true) == .list)
    machine.came(back: ClaimedName(name(1), attempt: 1))
    _ = machine.listed(fresh: [], returned: [], before: start, now: end)
    #expect(machine.next(now: 0, isAsked: true) == .list)
  }

  @Test func aMessageWaitsForItsKey() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a"), name(3, "b"), name(4)])
    var machine = machine(names)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    machine.took(key, ClaimedName(names[0], attempt: 1, claim: 1))
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[2]))
    machine.took(OrderingKey(of: "b"), ClaimedName(names[2], attempt: 1, claim: 2))
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[3]))
    #expect(machine.next(now: 0, isAsked: true) == .wait(until: nil))
    machine.released(key)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[1]))
  }

  /// The worker returns the message itself: it need not look for the end of the use, or wait for
  /// the next look.
  @Test func aHeldMessageFreesItsKeyOnceItIsReturned() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a")])
    var machine = machine(names)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    let claimed = ClaimedName(names[0], attempt: 1, claim: 1)
    machine.took(key, claimed)
    let first = HeldClaim(claimed: claimed, due: 90, renewal: 50, end: .failed)
    machine.hold(first)
    // The handler has ended.
    machine.released(key)
    #expect(machine.next(now: 10, isAsked: true) == .wait(until: 50))
    #expect(machine.next(now: 50, isAsked: true) == .renew(first))
    let renewed = HeldClaim(claimed: claimed.renewed(claim: 2), due: 90, end: .failed)
    machine.hold(renewed)
    machine.released(key)
    #expect(machine.next(now: 60, isAsked: true) == .wait(until: 90))
    #expect(machine.next(now: 90, isAsked: true) == .putBack(renewed))
    machine.released(key)
    #expect(machine.next(now: 90, isAsked: true) == .claim(names[1]))
  }

  /// Another worker has returned the message, because its handling deadline has passed.
  @Test func aHeldMessageThatIsLateFreesItsKey() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a")])
    var machine = machine(names)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    let claimed = ClaimedName(names[0], attempt: 1, claim: 7)
    machine.took(key, claimed)
    machine.hold(HeldClaim(claimed: claimed, due: 90, end: .failed))
    machine.released(key)
    machine.came(back: claimed)
    #expect(machine.next(now: 10, isAsked: true) == .reclaim(claimed))
  }

  /// Nobody tells when another worker's message ends, so it is looked for.
  @Test func aKeyOfAnotherWorkerIsLookedAtAgain() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a")])
    var machine = machine(names)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    machine.found(key, inUseFor: .fresh(names[0]), until: 20)
    #expect(machine.next(now: 10, isAsked: true) == .wait(until: 20))
    // The end of an own message says nothing about the other's.
    machine.released(key)
    #expect(machine.next(now: 10, isAsked: true) == .wait(until: 20))
    #expect(machine.next(now: 20, isAsked: true) == .claim(names[0]))
  }

  @Test func aReturnedMessageIsTheFirstOfItsKey() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a")])
    var machine = machine([names[1]])
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[1]))
    machine.found(key, inUseFor: .fresh(names[1]), until: 20)
    let back = ClaimedName(names[0], attempt: 1, claim: 7)
    machine.came(back: back)
    #expect(machine.next(now: 20, isAsked: true) == .reclaim(back))
    machine.took(key, back.next(claim: 8))
    machine.released(key)
    #expect(machine.next(now: 20, isAsked: true) == .claim(names[1]))
  }

  /// The handler of a late message may never end, and its worker has other handlers.
  @Test func aLateMessageIsTheFirstOfItsKeyForItsOwnWorkerToo() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a")])
    var machine = machine(names)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    machine.took(key, ClaimedName(names[0], attempt: 1, claim: 7))
    #expect(machine.next(now: 0, isAsked: true) == .wait(until: nil))
    // The claim was renewed before.
    let back = ClaimedName(names[0], attempt: 1, claim: 8)
    machine.came(back: back)
    #expect(machine.next(now: 0, isAsked: true) == .reclaim(back))
    machine.took(key, back.next(claim: 9))
    // A late notice of the same return tells nothing about the next claim.
    machine.came(back: back)
    #expect(machine.next(now: 0, isAsked: true) == .wait(until: nil))
    machine.released(key)
    #expect(machine.next(now: 0, isAsked: true) == .reclaim(back))
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[1]))
  }

  /// No listing shows the message: another worker has claimed it at once.
  @Test func aLateMessageThatIsGoneAgainKeepsNoKeyInUse() {
    let (key, names) = (OrderingKey(of: "a"), [name(1, "a"), name(2, "a")])
    var machine = machine(names)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    machine.took(key, ClaimedName(names[0], attempt: 1, claim: 7))
    machine.signal(isUrgent: true)
    #expect(machine.next(now: 0, isAsked: true) == .list)
    machine.came(back: ClaimedName(names[0], attempt: 1, claim: 7))
    _ = machine.listed(fresh: [names[1]], returned: [], before: start, now: end)
    #expect(machine.next(now: 0, isAsked: true) == .list)
    _ = machine.listed(fresh: [names[1]], returned: [], before: start, now: end)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[1]))
  }

  /// The messages of a key that wait are few, and are listed again when they are used up.
  @Test func ofAKeyOnlySomeMessagesAreKnown() {
    let key = OrderingKey(of: "a")
    let names = (1...200).map { name($0, "a") } + (201...210).map { name($0) }
    var machine = machine(names, window: 100)
    #expect(machine.next(now: 0, isAsked: true) == .claim(names[0]))
    machine.took(key, ClaimedName(names[0], attempt: 1, claim: 1))
    for number in 200..<210 {
      #expect(machine.next(now: 0, isAsked: true) == .claim(names[number]))
    }
    // The key is in use: listing again would show the same names.
    #expect(machine.next(now: 0, isAsked: true) == .wait(until: nil))
    for number in 1..<64 {
      machine.released(key)
      #expect(machine.next(now: 0, isAsked: true) == .claim(names[number]))
      machine.took(key, ClaimedName(names[number], attempt: 1, claim: number + 1))
    }
    machine.released(key)
    #expect(machine.next(now: 0, isAsked: true) == .list)
  }

  @Test func keysAreReadFromNames() throws {
    let (first, second) = (name(1, "a"), name(1))
    #expect(first.key == OrderingKey(of: "a") && second.key == nil)
    #expect(OrderingKey(of: "a") != OrderingKey(of: "b"))
    let claimed = ClaimedName(first, attempt: 0, claim: 5)
    #expect(ClaimedName(claimed.text) == claimed)
    #expect(ClaimedName(ClaimedName(second, attempt: 0).text) == nil)
  }
}
