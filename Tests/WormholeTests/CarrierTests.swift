import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// The carrier and its proxies: each step by itself.
@Suite(.blocking) struct CarrierTests {
  private static let machine = "0123456789abcdef"

  private let meeting: Meeting
  private let phone: Member
  private let carrier: Carrier
  private let printer: Proxy

  init() throws {
    meeting = try Meeting { $0.mailbox.retryDelay = .milliseconds(1) }
    phone = try meeting.container.join(as: "phone")
    carrier = try Carrier(meeting.another())
    printer = try carrier.proxy(of: .member("printer"), on: Self.machine)
  }

  @discardableResult
  private func send(
    _ number: Int, _ adjust: (inout SendOptions) -> Void = { _ in }
  ) throws -> Sent {
    try phone.peer("printer").send(
      number,
      .quick {
        $0.wantsOutcome = true
        adjust(&$0)
      })
  }

  // MARK: Proxies

  @Test func aProxyIsKnownToEveryCarrier() throws {
    #expect(printer.machine == Self.machine)
    let again = try carrier.proxy(of: .member("printer"), on: Self.machine)
    #expect(again.resident == .member("printer"))
    let other = try Carrier(meeting.another())
    #expect(try other.proxies().map(\.resident) == [.member("printer")])
    // The home may move to a third machine.
    _ = try other.proxy(of: .member("printer"), on: "f")
    #expect(try other.proxies().map(\.machine) == ["f"])
  }

  @Test func aNameOfARunningProgramIsRefused() throws {
    let error = try failure { _ = try carrier.proxy(of: .member("phone"), on: Self.machine) }
    #expect(error.code == .nameTaken && error.subject == "phone")
    #expect(try carrier.proxies().map(\.name) == ["printer"])
  }

  /// A sweeper that looks whether a new guest is dead holds its presence for a moment.
  @Test func aGuestWhosePresenceIsHeldForAMomentIsWaitedFor() throws {
    let (home, presence) = try meeting.container.storage.makeGuest()
    let digits = try #require(Incarnation(rawValue: home.name))
    let error = try failure { _ = try carrier.proxy(of: .guest(digits), on: Self.machine) }
    #expect(error.code == .exhausted)
    // The second look comes after the release, however late that is.
    let pause = FaultPause()
    let sweeper = try Thread("sweeper") {
      try? eventually("the presence is looked at again") { pause.isReached }
      presence.release()
      pause.open()
    }
    let rule = FaultRule(.open, path: "\(home.name)/presence", number: 2, .pause(pause))
    try FaultPoints.with([rule]) { _ = try carrier.proxy(of: .guest(digits), on: Self.machine) }
    sweeper.join()
    #expect(pause.isReached)
  }

  /// A handler may have done a part of its work: only a member of this machine may have the message
  /// again.
  @Test func aMemberWithMessagesInHandIsRefused() throws {
    let watch = try meeting.container.join(as: "watch")
    try phone.peer("watch").send(1, .quick())
    let message = try watch.take(1)[0]
    watch.leave()
    let error = try failure { _ = try carrier.proxy(of: .member("watch"), on: Self.machine) }
    #expect(error.code == .conflict)
    withExtendedLifetime(message) {}
    let next = try meeting.another().join(as: "watch")
    try next.take(1)[0].acknowledge()
    next.leave()
    _ = try carrier.proxy(of: .member("watch"), on: Self.machine)
  }

  @Test func anotherUserCannotEnterTheBridgesDirectory() throws {
    let storage = meeting.container.storage
    let directory = try storage.bridge(["in", "x"])
    for number in 1...2 {
      let bytes = try BinaryEncoder().encode(number)
      try storage.replace("file", in: directory.descriptor, by: bytes, sync: true)
      #expect(try storage.read("file", in: directory) == bytes)
    }
    #expect(try storage.read("other", in: directory) == nil)
    #expect(try !storage.inspect().contains { $0.subject.contains("bridge") })
    let open = try meeting.folder("bridge/in")
    try open.setMode(0o750)
    #expect(throws: Errno.notPermitted) { _ = try storage.bridge(["in", "x"]) }
  }

  /// In a group's container, each member may give a private directory of another user this name.
  @Test func aDirectoryOfAnotherOriginIsNotTheBridges() throws {
    let root = try meeting.folder("")
    try root.makeDirectory("bridge", mode: 0o700)
    let storage = meeting.container.storage
    #expect(throws: Errno.notPermitted) { _ = try storage.bridge(["in"]) }
    #expect(try meeting.names("bridge") == [])
    let findings = try storage.inspect().filter { $0.subject == "bridge" }
    #expect(findings.map(\.what) == ["not made by a bridge of this container"])
    // A copy of another container's state is none either.
    try root.removeDirectory("bridge")
    let other = try Meeting()
    _ = try other.container.storage.bridge()
    #expect(try run("cp", ["-a", other.path + "/bridge", meeting.path]).status == .exited(0))
    #expect(throws: Errno.notPermitted) { _ = try storage.bridge() }
  }

  // MARK: Messages

  @Test func messagesAreListedInOrderAndClaimedOnce() throws {
    let first = try send(1)
    let urgent = try send(2) { $0.isUrgent = true }
    let last = try send(3)
    let waiting = try printer.waiting()
    #expect(waiting.map(\.id) == [urgent.id, first.id, last.id])
    #expect(try printer.waiting(atMost: 2).map(\.id) == [urgent.id, first.id])
    #expect(try last.cancel() == .cancelled)
    let claims = try waiting.map { try printer.claim($0) }
    #expect(claims == [true, true, false])
    #expect(try !printer.claim(waiting[0]))
    #expect(try printer.waiting() == [])
    #expect(try printer.claimed() == [waiting[0], waiting[1]])
    #expect(try first.state == .inTransit)
    #expect(try printer.read(waiting[2]) == nil)
    let message = try #require(try printer.read(waiting[1]))
    #expect(message.receiver == "printer" && message.expires == nil && message.fileSize == nil)
  }

  @Test(
    arguments: [.delivered, .cancelled, .expired, .deadLettered(reason: "no paper")]
      as [Outcome.Status])
  func aMessageIsSettledOnceAndItsSenderIsNotified(_ status: Outcome.Status) throws {
    let sent = try send(1) { $0.id = "chosen" }
    let name = try printer.waiting()[0]
    #expect(try printer.claim(name))
    #expect(try sent.cancel() == .requested)
    #expect(try printer.cancellations() == [name])
    #expect(try printer.settle(name, status))
    #expect(sent.waitForEnd(until: .now + patience) == status)
    #expect(try !printer.settle(name, .delivered))
    #expect(try printer.claimed() == [] && printer.cancellations() == [])
    // The same ID is free again.
    try send(2) { $0.id = "chosen" }
  }

  /// The outcome of the other machine and a reason of this one may meet.
  @Test func aSettledMessageIsNotDeadLettered() throws {
    let sent = try send(1)
    let name = try printer.waiting()[0]
    #expect(try printer.claim(name) && printer.settle(name, .delivered))
    #expect(throws: Never.self) { try printer.giveUp(name, "no paper") }
    #expect(sent.waitForEnd(until: .now + patience) == .delivered)
    #expect(try meeting.names("members/printer/dead") == [])
  }

  @Test func aMessageWithoutAReceiptIsRemoved() throws {
    try meeting.container.peer("printer").send(1, .quick { $0.wantsOutcome = false })
    let name = try printer.waiting()[0]
    #expect(try printer.claim(name) && printer.settle(name, .delivered))
    #expect(try meeting.names("members/printer/claimed") == [])
  }

  /// Only the reasons of the latest dead letters stay.
  @Test func reasonsDoNotPileUp() throws {
    let folder = try meeting.folder("members/printer/dead")
    let reasons = (0..<1024).map { number in
      MessageName(
        isUrgent: false, MessageStamp(epoch: 0, nanoseconds: Int64(number)), wantsReceipt: true,
        count: 1, id: "x", from: "phone"
      ).reasonFile
    }
    for reason in reasons { _ = try folder.open(reason, [.writeOnly, .create], mode: 0o600) }
    try send(1)
    let name = try printer.waiting()[0]
    #expect(try printer.claim(name) && printer.settle(name, .deadLettered(reason: "x")))
    let left = try Set(folder.names())
    #expect(left == Set(reasons.dropFirst() + [name.reasonFile]))
  }

  /// The letter is on the other machine: the limit of dead letters here does not count it.
  @Test func aFullListOfDeadLettersHoldsUpNoOutcome() throws {
    let full = try Carrier(meeting.another { $0.mailbox.maximumDeadLetters = 0 })
    let proxy = try full.proxy(of: .member("printer"), on: Self.machine)
    let sent = try send(1)
    let name = try proxy.waiting()[0]
    #expect(try proxy.claim(name) && proxy.settle(name, .deadLettered(reason: "no paper")))
    #expect(sent.waitForEnd(until: .now + patience) == .deadLettered(reason: "no paper"))
  }

  @Test func aDamagedMessageIsAnError() throws {
    try send(1)
    let name = try printer.waiting()[0]
    #expect(try printer.claim(name))
    try meeting.overwrite("members/printer/claimed/\(name.text)~1", Array("damaged".utf8))
    #expect(try failure { _ = try printer.read(name) }.code == .damaged)
    #expect(try printer.settle(name, .deadLettered(reason: "damaged")))
  }

  // MARK: Deliveries

  /// Stages a message from `printer`, as a carrier does with what arrives.
  private func stage(
    _ number: Int, to receiver: String = "phone", isRepeated: Bool = false
  ) throws -> (directory: OpenDirectory, name: MessageName) {
    let (guest, storage) = (try meeting.container.guest(), meeting.container.storage)
    try guest.peer("elsewhere").send(number, .quick { $0.timeToLive = .seconds(60) })
    let home = try #require(try storage.existingMember("elsewhere"))
    var names: [MessageName] = []
    try home.list(.inbox) { names += [MessageName($0)!] }
    guard case .sound(let bytes, _) = try home.read(names[0].text, in: .inbox, "read") else {
      throw Errno.noSuchFile
    }
    #expect(try home.remove(names[0].text, from: .inbox))
    let name = MessageName(
      isUrgent: false, names[0].stamp, wantsReceipt: true, count: 1, id: "\(number)",
      from: "printer")
    let directory = try storage.bridge(["in"])
    let message = try CarriedMessage(name, bytes, .default)
    let delivered = try message.delivered(
      from: .string("from \(number)"), expires: Date() + 3600, isRepeated: isRepeated)
    try storage.replace(name.text, in: directory.descriptor, by: delivered, sync: true)
    return (directory, try carrier.arrivalName(of: name))
  }

  @Test func aDeliveredMessageIsLikeAnyOther() throws {
    let (directory, name) = try stage(7)
    let file = try #require(try directory.descriptor.names().first)
    #expect(try carrier.deliver(file, in: directory, as: name, to: .member("phone")))
    #expect(try !carrier.deliver(file, in: directory, as: name, to: .member("phone")))
    try carrier.makeDurable(.member("phone"))
    let message = try phone.take(1)[0]
    #expect(try message.value(as: Int.self) == 7)
    #expect(message.from == "printer" && message.id == "7" && !message.isRedelivered)
    try message.acknowledge()
    let outcomes = try printer.outcomes()
    #expect(outcomes.map(\.name) == [name] && outcomes.map(\.status) == [.delivered])
    #expect(outcomes.map(\.origin) == [.string("from 7")])
    try printer.forget(outcomes[0].name, outcomes[0].status)
    #expect(try printer.outcomes().isEmpty)
  }

  @Test func arrivalsKeepTheirOrder() throws {
    let staged = try (1...3).map { try stage($0, isRepeated: true) }
    #expect(staged.map(\.name) == staged.map(\.name).sorted())
    let files = try staged[0].directory.descriptor.names().sorted()
    for (one, file) in zip(staged, files) {
      #expect(try carrier.deliver(file, in: one.directory, as: one.name, to: .member("nobody yet")))
    }
    let late = try meeting.another().join(as: "nobody yet")
    let messages = try late.take(3)
    #expect(messages.map(\.id) == ["1", "2", "3"])
    #expect(messages.allSatisfy { $0.isRedelivered && $0.attempt == 1 })
  }

  @Test func aDeliveryIsCancelledOnlyBeforeItsReceiverHasIt() throws {
    let (directory, name) = try stage(1)
    let file = try directory.descriptor.names()[0]
    #expect(try !carrier.cancel(name, to: .member("phone")))
    #expect(try carrier.deliver(file, in: directory, as: name, to: .member("phone")))
    #expect(try carrier.cancel(name, to: .member("phone")))
    #expect(try printer.outcomes().map(\.status) == [.cancelled])
    #expect(try !carrier.cancel(name, to: .member("phone")))
    #expect(try !carrier.cancel(name, to: .member("unknown")))
  }

  /// The sender's machine learns each outcome, however long it was away.
  @Test func outcomesAreNotDroppedForALackOfSpace() throws {
    let small = try meeting.another { $0.mailbox.maximumReceiptBytes = 4096 }
    for number in 1...8 {
      let (directory, name) = try stage(number)
      #expect(
        try carrier.deliver(
          directory.descriptor.names()[0], in: directory, as: name, to: .member("watch")))
    }
    let watch = try small.join(as: "watch")
    for message in try watch.take(8) { try message.acknowledge() }
    #expect(try printer.outcomes().count == 8)
    #expect(try printer.outcomes(atMost: 3).map(\.name.id) == ["1", "2", "3"])
  }

  // MARK: Guests and presence

  /// The guest waits on its own machine; here no process has its presence.
  @Test func aGuestOfAnotherMachineIsNotSwept() throws {
    let digits = Incarnation(rawValue: "00000000000000ff")!
    let guest = try carrier.proxy(of: .guest(digits), on: Self.machine)
    _ = try meeting.another()
    #expect(try meeting.names("guests") == [digits.rawValue])
    #expect(try carrier.proxies().map(\.resident) == [.member("printer"), .guest(digits)])
    let findings = try meeting.container.storage.inspect().filter { $0.subject.contains("guests") }
    #expect(findings.allSatisfy { $0.severity == .note }, "\(findings)")
    #expect(try guest.outcomes().isEmpty)
  }

  @Test func aMemberAppearsAndDisappears() throws {
    let peer = phone.peer("printer")
    let changes = Heard<Reachability>()
    let watching = try peer.watchReachability { changes.add($0) }
    #expect(try peer.reachability == .neverJoined)
    let incarnation = Incarnation(rawValue: "00000000000000aa")!
    try printer.appear(as: incarnation, program: "spooler", since: Date(), info: ["place": "hall"])
    #expect(try peer.reachability == .running)
    let profile = try #require(try peer.profile)
    #expect(profile.incarnation == incarnation && profile.program == "spooler")
    #expect(profile.info == ["place": "hall"] && profile.machine == Self.machine)
    #expect(profile.isCarried)
    // Another carrier stands in for it at the same time only by mistake.
    let other = try #require(try Carrier(meeting.another()).proxies().first)
    let error = try failure { try other.appear(as: incarnation, program: "x", since: Date()) }
    #expect(error.code == .nameTaken)
    try printer.appear(as: incarnation, program: "spooler", since: Date(), info: ["place": "lab"])
    #expect(try peer.profile?.info == ["place": "lab"])
    try peer.wake(within: .seconds(1))
    printer.disappear()
    #expect(try peer.reachability == .notRunning)
    #expect(try meeting.names("members/printer/live") == [])
    try changes.waitForLast(.notRunning)
    watching.stop()
  }

  // MARK: One watch

  @Test func oneWatchReportsMessagesOutcomesAndCancellations() throws {
    let changed = Heard<Carrier.Resident>()
    let watch = CarrierWatch(carrier) { for one in $0 { changed.add(one) } }
    let clock = try carrier.proxy(of: .member("clock"), on: Self.machine)
    try watch.add(printer)
    try watch.add(clock)
    try changed.wait("both are to be looked at") {
      Set($0) == [.member("printer"), .member("clock")]
    }
    func next(_ resident: Carrier.Resident, _ body: () throws -> Void) throws {
      let before = changed.count
      try body()
      try changed.wait("\(resident)") { $0.dropFirst(before).contains(resident) }
    }
    var sent: Sent?
    try next(.member("printer")) { sent = try send(1) }
    try next(.member("clock")) { try phone.peer("clock").send(1, .quick()) }
    try next(.member("printer")) { try send(2) { $0.delay = .milliseconds(1) } }
    try eventually("the delayed message is due") { try printer.waiting().count == 2 }
    #expect(try printer.claim(printer.waiting()[0]))
    var cancellation: Cancellation?
    try next(.member("printer")) { cancellation = try sent?.cancel() }
    #expect(cancellation == .requested)
    let (directory, name) = try stage(1)
    #expect(
      try carrier.deliver(
        directory.descriptor.names()[0], in: directory, as: name, to: .member("phone")))
    try next(.member("printer")) { try phone.take(1)[0].acknowledge() }
    watch.remove(clock)
    watch.stop()
    let count = changed.count
    try send(3)
    try phone.peer("clock").send(2, .quick())
    #expect(changed.count == count)
  }

  /// The owner of the watch releases what the handler uses after the call.
  @Test func theEndOfAWatchWaitsForItsHandler() throws {
    let begun = Heard<Set<Carrier.Resident>>()
    let (isOver, isDone) = (Monitor(false), Monitor(false))
    let watch = CarrierWatch(carrier) {
      begun.add($0)
      // Without the wait for the handler, the watch ends in this time.
      _ = isOver.wait(until: .now + .milliseconds(100)) { $0 ? true : nil }
      isDone.withLock { $0 = true }
    }
    try watch.add(printer)
    try begun.wait("the handler runs") { !$0.isEmpty }
    watch.stop()
    #expect(isDone.withLock { $0 })
    isOver.signal { $0 = true }
  }

  // MARK: Queues

  /// The call is repeated until no worker has a message, and after a kill.
  @Test func aQueueThatIsGivenAwayAgainRemembersItsHomes() throws {
    func leave(to machine: String, _ term: Int) throws -> [String]? {
      try carrier.leave("jobs", to: machine, term: term)
      return try carrier.home(ofQueue: "jobs")?.before
    }
    #expect(try leave(to: Self.machine, 1) == [])
    #expect(try leave(to: "f", 2) == [Self.machine])
    #expect(try leave(to: "f", 2) == [Self.machine])
    _ = try carrier.proxy(ofQueue: "jobs", on: "f", term: 2)
    #expect(try leave(to: "f", 2) == [Self.machine])
    // The proxy stays one.
    #expect(try carrier.home(ofQueue: "jobs")?.isSettling == false)
  }

  /// A former home may hand on messages that it has sent before several moves.
  @Test func aQueueThatMovesOnRemembersAllItsHomes() throws {
    func leave(to machine: String, _ term: Int, _ before: [String] = []) throws -> [String]? {
      try carrier.leave("jobs", to: machine, term: term, before: before)
      return try carrier.home(ofQueue: "jobs")?.before
    }
    #expect(try leave(to: Self.machine, 1, ["a"]) == ["a"])
    #expect(try leave(to: "b", 2) == ["a", Self.machine])
    #expect(try leave(to: "c", 3, ["d"]) == ["a", Self.machine, "b", "d"])
    // The homes that the caller gives come last, and no home is there twice.
    #expect(try leave(to: "e", 4, ["a"]) == [Self.machine, "b", "d", "c", "a"])
  }
}
