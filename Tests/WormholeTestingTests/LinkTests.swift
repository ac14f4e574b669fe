import TestSupport
import Testing
import Wormhole
import WormholeSyscalls
import WormholeTesting

/// The effects of a link on real messages between real members.
@Suite struct LinkTests {
  private func pair(_ line: String) throws -> (two: TwoMembers, clock: TestClock) {
    let clock = TestClock()
    return (try TwoMembers(plan: try #require(LinkPlan(line)), clock: clock), clock)
  }

  private func hearImmediate(_ two: TwoMembers) -> (heard: Heard<Int>, by: Subscription) {
    let heard = Heard<Int>()
    let watching = two.second.receiveImmediate { message in
      heard.add((try? message.value(as: Int.self)) ?? 0)
    }
    return (heard, watching)
  }

  // MARK: For now

  @Test func immediateMessageIsDropped() async throws {
    let (two, _) = try pair("at=2:drop")
    let (heard, watching) = hearImmediate(two)
    for number in 1...3 { try await two.toSecond.sendImmediately(number) }
    try await heard.comes([1, 3])
    #expect(two.link.log == ["immediate 2 of phone to watch: drop"])
    watching.stop()
  }

  @Test func immediateMessageIsOvertaken() async throws {
    let (two, clock) = try pair("at=1:reorder")
    let (heard, watching) = hearImmediate(two)
    for number in 1...3 { try await two.toSecond.sendImmediately(number) }
    try await heard.comes([2, 3])
    try await clock.advanceToNextAlarm()
    try await heard.comes([2, 3, 1])
    watching.stop()
  }

  /// A delayed message is not delivered after its deadline.
  @Test func immediateMessageThatTakesTooLongIsDropped() async throws {
    let (two, clock) = try pair("at=1:delay:5s,2:delay:20s")
    let (heard, watching) = hearImmediate(two)
    for number in 1...3 { try await two.toSecond.sendImmediately(number) }
    try await heard.comes([3])
    clock.advance(by: .seconds(5))
    try await heard.comes([3, 1])
    clock.advance(by: .seconds(15))
    // The message after the delayed message shows that the delayed message was not delivered.
    try await two.toSecond.sendImmediately(4)
    try await heard.comes([3, 1, 4])
    watching.stop()
  }

  @Test func questionOrAnswerIsDropped() async throws {
    for direction in ["watch", "phone"] {
      let (two, clock) = try pair("at=1:drop to=\(direction)")
      let heard = Heard<Int>()
      let responding = two.second.respond(to: Int.self) { question in
        heard.add(question)
        return question + 1
      }
      let asking = Task { try await two.toSecond.request(1, as: Int.self) }
      try await eventually("the fault") { two.link.log.count == 1 }
      try await clock.advanceToNextAlarm()
      let error = try await failure { _ = try await asking.value }
      #expect(error.code == .timedOut)
      #expect(heard.count == (direction == "watch" ? 0 : 1))
      #expect(try await two.toSecond.request(2, as: Int.self) == 3)
      responding.stop()
    }
  }

  // MARK: Guaranteed

  private func receive(
    _ two: TwoMembers
  ) throws -> (heard: Heard<String>, by: Subscription) {
    let heard = Heard<String>()
    let receiving = try two.second.receive { message in
      heard.add("\(try message.value(as: String.self))\(message.isRedelivered ? " again" : "")")
    }
    return (heard, receiving)
  }

  @Test func guaranteedMessageIsFoundThoughTheNoticeIsLost() async throws {
    let (two, clock) = try pair("at=1:drop")
    let (heard, receiving) = try receive(two)
    try await two.toSecond.send("a")
    try await clock.advanceToNextAlarm()
    #expect(clock.elapsed == .seconds(1))
    try await heard.comes(["a"])
    receiving.stop()
  }

  /// The messages of one sender stay in order; messages of other senders overtake them, and urgent
  /// messages do as well.
  @Test(arguments: ["at=1:delay:200ms", "at=1:reorder window=200ms", "at=1:drop rediscovery=200ms"])
  func delayKeepsTheOrderOfASender(_ line: String) async throws {
    let (two, clock) = try pair(line + " to=watch")
    let tablet = try await two.container.open().peer("watch", from: "watch")
    for value in ["a", "b", "c"] { try await two.toSecond.send(value) }
    try await tablet.send("other")
    let (heard, receiving) = try receive(two)
    try await heard.comes(["other"])
    try await clock.advanceToNextAlarm()
    #expect(clock.elapsed == .milliseconds(200))
    try await heard.comes(["other", "a", "b", "c"])
    receiving.stop()
  }

  @Test func urgentMessageOvertakes() async throws {
    let (two, clock) = try pair("at=2:reorder")
    var urgent = SendOptions()
    urgent.isUrgent = true
    for value in ["a", "b", "c"] { try await two.toSecond.send(value) }
    try await two.toSecond.send("urgent", urgent)
    let (heard, receiving) = try receive(two)
    try await heard.comes(["urgent", "a"])
    try await clock.advanceToNextAlarm()
    try await heard.comes(["urgent", "a", "b", "c"])
    receiving.stop()
  }

  @Test func duplicateIsMarked() async throws {
    let (two, _) = try pair("at=1:duplicate")
    let (heard, receiving) = try receive(two)
    let sent = try await two.toSecond.send("a")
    try await heard.comes(["a", "a again"])
    #expect(try await sent.waitForStatus() == .delivered)
    try await two.toSecond.send("b")
    try await heard.comes(["a", "a again", "b"])
    receiving.stop()
  }

  @Test func everyMessageOfABatchIsDoubled() async throws {
    let (two, _) = try pair("at=1:duplicate")
    let heard = Heard<String>()
    let receiving = try two.second.receive { message in
      heard.add("\(message.batchIndex) \(message.attempt)")
    }
    let sent = try await two.toSecond.send(contentsOf: ["a", "b"])
    #expect(try await sent[0].waitForStatus() == .delivered)
    #expect(heard.all.sorted() == ["0 1", "0 2", "1 1", "1 2"])
    receiving.stop()
  }

  /// A file arrives late like any message; after a move the file does not exist a second time.
  @Test func fileIsDelayedAndDoubled() async throws {
    let (two, clock) = try pair("at=1:delay:1s,2:duplicate")
    let path = two.container.directory + "/note"
    do {
      let file = try Descriptor.open(path: path, .writeOnlyNew, mode: 0o600)
      try file.writeFully(Array("back in time".utf8))
    }
    let heard = Heard<String>()
    let receiving = try two.second.receive { message in
      guard let file = message.file else { return }
      let isThere = try file.exists
      heard.add("\(file.name) \(file.size) \(message.attempt) \(isThere)")
      if isThere { try file.move(to: "\(two.container.directory)/\(heard.count)") }
    }
    let first = try await two.toSecond.send(file: path)
    let second = try await two.toSecond.send(file: path)
    try await clock.advanceToNextAlarm()
    #expect(clock.elapsed == .seconds(1))
    #expect(try await first.waitForStatus() == .delivered)
    #expect(try await second.waitForStatus() == .delivered)
    #expect(heard.all == ["note 12 1 true", "note 12 1 true", "note 12 2 false"])
    receiving.stop()
  }

  /// Whatever the link does, each message is handled, in order, and none unmarked a second time.
  @Test(arguments: [UInt64(1), 2, 3]) func nothingIsLost(_ seed: UInt64) async throws {
    var plan = LinkPlan(seed: seed)
    (plan.drop, plan.delay, plan.duplicate, plan.reorder) = (0.1, 0.2, 0.2, 0.2)
    (plan.rediscovery, plan.window) = (.milliseconds(5), .milliseconds(2))
    plan.delays = .microseconds(10) ... .milliseconds(3)
    let two = try await TwoMembers(plan: plan)
    let first = Heard<Int>()
    let all = Heard<Int>()
    let receiving = try two.second.receive(Int.self) { value, message in
      if !message.isRedelivered { first.add(value) }
      all.add(value)
    }
    var options = SendOptions()
    options.durability = .process
    var sent: [Sent] = []
    for number in 1...40 { sent.append(try await two.toSecond.send(number, options)) }
    for one in sent {
      #expect(try await one.waitForStatus(within: .seconds(30)) == .delivered, "\(plan)")
    }
    #expect(first.all == Array(1...40), "\(plan)")
    #expect(Set(all.all) == Set(1...40))
    #expect(all.count == 40 + two.link.log.count { $0.hasSuffix("duplicate") }, "\(plan)")
    receiving.stop()
  }

  // MARK: Two processes

  /// A link works in a process that a test has started as in the test's own process.
  @Test func linkStandsInAnotherProcess() async throws {
    let container = try TemporaryContainer()
    let link = Link(try #require(LinkPlan("at=2:duplicate to=watch")))
    var options = Options()
    options.use(link)
    let phone = try await container.open(options).join(as: "phone")
    let process = try TestProcess(
      "TestPeer", PeerJob.linked("watch").arguments, in: container, link: link)
    try await process.waitForOutput("ready\n")
    let watch = phone.peer("watch")
    for number in [10, 20, 30] { try await watch.send(number) }
    try await process.waitForOutput("30\n")
    try await process.waitForOutput("20!\n")
    #expect(try process.output.contains("10\n20\n"))
    // A message for another process is not received before the link is healed.
    link.cut()
    // A request without a reply does not show the cut: the process may only be slow.
    try await process.waitForOutput("phone notRunning\n")
    let other = try await container.open().join(as: "tablet").peer("watch")
    _ = try await failure {
      _ = try await other.request(1, as: Int.self, within: .milliseconds(300))
    }
    let sent = try await other.send(40)
    #expect(try sent.state == .waiting)
    link.heal()
    #expect(try await sent.waitForStatus(within: .seconds(30)) == .delivered)
    try await process.waitForOutput("40\n")
    try process.kill()
  }

  // MARK: Cutting

  @Test func cutLinkFailsAtOnce() async throws {
    let (two, _) = try pair("")
    let kept = Heard<Request>()
    let responding = two.second.respond(toKind: nil) { kept.add($0) }
    let asking = Task { try await two.toSecond.request(1, as: Int.self) }
    try await eventually("the request") { kept.count == 1 }
    two.link.cut()
    #expect(two.link.isCut)
    let underWay = try await failure { _ = try await asking.value }
    #expect(underWay.code == .unreachable)
    let error = try await failure { _ = try await two.toSecond.request(2, as: Int.self) }
    #expect(error.code == .unreachable)
    #expect(error.reason == "the test has cut the link to the peer")
    #expect(throws: WormholeError.self) { try two.toFirst.sendImmediately(1) }
    two.link.heal()
    let again = Task { try await two.toSecond.request(3, as: Int.self) }
    try await eventually("the request") { kept.count == 2 }
    try kept.all[1].reply(4)
    #expect(try await again.value == 4)
    responding.stop()
  }

  @Test func guaranteedMessagesWaitUntilItIsHealed() async throws {
    let (two, _) = try pair("")
    let (heard, receiving) = try receive(two)
    two.link.cut(off: "watch")
    let sent = try await two.toSecond.send("a")
    // A message that uses no link arrives, and shows that the delayed message has not arrived.
    try await two.second.peer("watch").send("own")
    try await heard.comes(["own"])
    #expect(try sent.state == .waiting)
    two.link.heal()
    try await heard.comes(["own", "a"])
    receiving.stop()
  }

  @Test func reachabilityFollowsTheLink() async throws {
    let (two, _) = try pair("")
    let heard = Heard<Reachability>()
    let watching = try two.toSecond.watchReachability { heard.add($0) }
    try await heard.comes([.running])
    two.link.cut(off: "phone")
    #expect(try two.toSecond.reachability == .notRunning)
    #expect(try two.second.peer("watch").reachability == .running)
    try await heard.comes([.running, .notRunning])
    two.link.heal()
    #expect(try two.toSecond.reachability == .running)
    try await heard.comes([.running, .notRunning, .running])
    watching.stop()
  }
}
