import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Steps of a carrier that meet a kill, a removed directory or another carrier.
@Suite(.blocking) struct CarrierStepTests {
  private static let machine = "0123456789abcdef"

  private let meeting: Meeting
  private let phone: Member
  private let carrier: Carrier
  private let printer: Proxy

  init() throws {
    meeting = try Meeting()
    phone = try meeting.container.join(as: "phone")
    carrier = try Carrier(meeting.another())
    printer = try carrier.proxy(of: .member("printer"), on: Self.machine)
  }

  /// The content of a message that waits at the printer.
  private func bytes(of name: MessageName) throws -> [UInt8] {
    try meeting.bytes(of: "members/printer/inbox/\(name.text)")
  }

  // MARK: Messages

  /// The sender's own time to live is by another machine's clock.
  @Test(arguments: [true, false])
  func aDeliveredMessageHasTheOriginAndTheTimeThatTheCarrierGives(_ isRepeated: Bool) throws {
    try phone.peer("printer").send(1, .quick { $0.timeToLive = .seconds(60) })
    let name = try #require(try printer.waiting().first)
    let message = try carrier.message(name, bytes(of: name))
    #expect(message.expires != nil && message.origin == nil)
    let mark: PropertyListValue? = isRepeated ? true : nil
    let moment = Date(timeIntervalSinceReferenceDate: 800_000_000)
    let moments: [Date?] = [moment, nil]
    for expires in moments {
      let content = try message.delivered(
        from: .string("there"), expires: expires, isRepeated: isRepeated)
      let delivered = try carrier.message(name, content)
      #expect(delivered.expires == expires)
      #expect(delivered.origin == .string("there"))
      #expect(delivered.receiver == "printer" && delivered.fileSize == nil)
      let list = try BinaryPropertyList.decode(content)
      #expect(list["value"] == 1)
      #expect(list["redelivered"] == mark)
    }
  }

  @Test func aReceiverWhoseDirectoryWasRemovedGetsTheNextMessage() throws {
    let storage = meeting.container.storage
    let directory = try storage.bridge(["in"])
    for number in 1...2 {
      try phone.peer("printer").send(number, .quick())
      let name = try #require(try printer.waiting().first)
      try storage.replace(name.text, in: directory.descriptor, by: bytes(of: name), sync: false)
      try printer.remove(waiting: name)
      let arrival = try carrier.arrivalName(of: name)
      #expect(try carrier.deliver(name.text, in: directory, as: arrival, to: .member("scanner")))
      #expect(try meeting.names("members/scanner/inbox") == [arrival.text])
      #expect(try run("rm", ["-r", meeting.path + "/members/scanner"]).status == .exited(0))
    }
    #expect(try directory.descriptor.names() == [])
  }

  // MARK: Homes

  /// The messages in transit are those of the proxy, and no program has begun with them.
  @Test func aProxyWithMessagesInTransitMayStandForAThirdMachine() throws {
    try phone.peer("printer").send(1, .quick())
    let name = try #require(try printer.waiting().first)
    #expect(try printer.claim(name))
    let moved = try carrier.proxy(of: .member("printer"), on: "f")
    #expect(moved.machine == "f")
    #expect(try moved.claimed() == [name])
    #expect(try carrier.existingProxy(of: .member("printer"))?.machine == "f")
  }

  @Test func aNameThatAnotherCarrierShowsIsNeitherGivenBackNorMoved() throws {
    let other = try #require(try Carrier(meeting.another()).proxies().first)
    let incarnation = try #require(Incarnation(rawValue: "00000000000000aa"))
    try other.appear(as: incarnation, program: "spooler", since: Date())
    let changes: [() throws -> Void] = [
      { try printer.release() }, { _ = try printer.moved(to: "f") },
    ]
    for change in changes {
      let error = try failure(change)
      #expect(error.code == .nameTaken && error.subject == "printer")
      #expect(error.reason == "another process has the name")
    }
    #expect(try carrier.proxies().map(\.machine) == [Self.machine])
    #expect(try phone.peer("printer").reachability == .running)
    other.disappear()
    #expect(try printer.moved(to: "f").machine == "f")
    #expect(try carrier.proxies().map(\.machine) == ["f"])
  }

  /// A carrier that was killed between two steps has left a message in both places.
  @Test func claimsOfAQueueThatIsGivenAwayWaitAgainAndAreMarkedIfBegun() throws {
    let jobs = meeting.container.queue("jobs", of: Int.self)
    for number in 1...3 {
      try jobs.send(number, .quick { $0.orderingKey = number == 3 ? "key" : nil })
    }
    let names = try meeting.names("queues/jobs/inbox")
    try #require(names.count == 3)
    let queue = try meeting.folder("queues/jobs")
    try? queue.makeDirectory("claimed", mode: 0o700)
    for (name, claim) in zip(names, ["~1", "~00", "~0.5"]) {
      #expect(ClaimedName(name + claim) != nil)
      try queue.rename("inbox/\(name)", to: queue, "claimed/\(name)\(claim)")
    }
    let copy = try meeting.bytes(of: "queues/jobs/claimed/\(names[0])~1")
    try queue.open("inbox/\(names[0])", [.writeOnly, .create], mode: 0o600).write(copy)
    try carrier.leave("jobs", to: Self.machine, term: 1)
    #expect(try meeting.names("queues/jobs/inbox") == names)
    #expect(try meeting.names("queues/jobs/claimed") == [])
    let marks = try names.map { name in
      let content = try meeting.bytes(of: "queues/jobs/inbox/\(name)")
      return try BinaryPropertyList.decode(content)["redelivered"]?.boolValue
    }
    #expect(marks == [true, true, nil])
  }

  /// The read alone is refused, and not the move.
  @Test func aBegunMessageThatCannotBeReadNowIsNotReturnedUnmarked() throws {
    try meeting.container.queue("jobs", of: Int.self).send(1, .quick())
    let name = try #require(try meeting.names("queues/jobs/inbox").first)
    let queue = try meeting.folder("queues/jobs")
    try? queue.makeDirectory("claimed", mode: 0o700)
    try queue.rename("inbox/\(name)", to: queue, "claimed/\(name)~1")
    func leave() throws { try carrier.leave("jobs", to: Self.machine, term: 1) }
    let rule = FaultRule(.open, path: "\(name)~1", .fail(.inputOutput))
    var error: WormholeError?
    try FaultPoints.with([rule]) { error = try failure(leave) }
    #expect(error?.errno == Errno.inputOutput.rawValue)
    #expect(try meeting.names("queues/jobs/claimed") == ["\(name)~1"])
    try leave()
    #expect(try meeting.names("queues/jobs/claimed") == [])
    let content = try meeting.bytes(of: "queues/jobs/inbox/\(name)")
    #expect(try BinaryPropertyList.decode(content)["redelivered"]?.boolValue == true)
  }

  @Test func theErrorOfAMoveNamesTheChannelOnce() throws {
    try meeting.container.channel("seats", of: Int.self).put(1)
    let rule = FaultRule(.rename, path: "value.plist", persistent: true, .fail(.inputOutput))
    var error: WormholeError?
    try FaultPoints.with([rule]) {
      error = try failure { _ = try carrier.giveAway("seats", to: Self.machine) }
    }
    #expect(error?.operation == "move channel")
  }

  // MARK: Contexts

  /// The claimed one may be too large to be carried, or its carrier was killed.
  @Test func aNewerContextReplacesAClaimedOneThatWasNotSent() throws {
    let peer = phone.peer("printer")
    try peer.setContext(1)
    let first = try #require(try printer.claimContext(from: "phone")?.name)
    #expect(try printer.claimContext(from: "phone")?.name.id == first.id)
    try peer.setContext(2)
    let second = try #require(try printer.claimContext(from: "phone")?.name)
    #expect(second.id != first.id)
    #expect(try meeting.names("members/printer/context") == ["phone,taking"])
    #expect(try printer.claimedContext(first) == nil)
    // The other machine has stored the earlier one: the newer one is still in transit.
    try printer.settleContext(first)
    #expect(try peer.sentContext?.isReceived == false)
    try printer.settleContext(second)
    #expect(try meeting.names("members/printer/context") == ["phone"])
    let sent = try #require(try peer.sentContext)
    #expect(try sent.value(as: Int.self) == 2 && sent.isReceived)
  }

  // MARK: Requests and wakes

  /// A process that has ended must not seem to ask, as its replies would go to the next one.
  @Test func aProxyAsksOnlyForTheProcessThatItShows() throws {
    carrier.takeRequests { _ in }
    let shown = try #require(Incarnation(rawValue: "00000000000000aa"))
    let ended = try #require(Incarnation(rawValue: "00000000000000bb"))
    let (askers, replies) = (Heard<String?>(), Heard<CarriedReply?>())
    let answering = phone.respond(toKind: "k") { request in
      askers.add(request.from)
      _ = try? request.reply(7)
    }
    func ask(as incarnation: Incarnation) -> Bool {
      let question = CarriedQuestion(
        .question, to: "phone", phone.incarnation, from: "printer", incarnation, kind: "k",
        headers: [:], .integer(1))
      return printer.ask(question, within: .seconds(60)) { replies.add($0) }
    }
    #expect(!ask(as: shown))
    try printer.appear(as: shown, program: "spooler", since: Date())
    #expect(!ask(as: ended))
    #expect(ask(as: shown))
    try replies.wait("the reply") { $0.count == 1 }
    let reply = try #require(replies.all[0])
    let isContent = if case .content = reply { true } else { false }
    #expect(isContent, "\(reply)")
    #expect(askers.all == ["printer"])
    printer.disappear()
    #expect(!ask(as: shown))
    #expect(replies.count == 1)
    answering.stop()
  }

  @Test func wakesAreReportedUntilTheWatchEnds() throws {
    let woken = Heard<Carrier.Resident>()
    let watch = CarrierWatch(carrier, wakes: { for one in $0 { woken.add(one) } }) { _ in }
    let clock = try carrier.proxy(of: .member("clock"), on: Self.machine)
    for proxy in [printer, clock] { try watch.add(proxy) }
    func ask(for name: String, _ id: String) throws {
      let record = WakeRecord(
        id: id, started: meeting.container.options.environment.sinceBoot(), by: "test",
        program: "spooler", machine: Self.machine, before: nil)
      let slot = try WakeRecord.slot(of: name, in: meeting.container.storage)
      try slot.change("wake") { _ in .put(try record.encoded()) }
    }
    for name in ["clock", "printer"] {
      let before = woken.count
      try ask(for: name, "0000000000000001")
      try woken.wait("the wake of \(name)") { $0.dropFirst(before).contains(.member(name)) }
    }
    watch.stop()
    let count = woken.count
    try ask(for: "printer", "0000000000000002")
    #expect(woken.count == count)
  }

  @Test func allWhoAskDuringAWakeAreAnsweredByTheNext() throws {
    let answers = Heard<String>()
    let worker = WakeWorker(carrier, "phone")
    worker.wake { reason in
      answers.add("first: \(reason ?? "it runs")")
      for name in ["second", "third"] {
        worker.wake { reason in answers.add("\(name): \(reason ?? "it runs")") }
      }
    }
    try answers.wait("all answers") { $0.count == 3 }
    worker.stop()
    #expect(answers.all == ["first: it runs", "second: it runs", "third: it runs"])
  }
}
