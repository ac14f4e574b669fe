import Testing
import Tickets
import Wormhole
import WormholeTesting

/// The box office, tested with Swift Testing.
@Suite struct BoxOfficeTests {
  /// A handler is called with messages that no member has sent.
  @Test func nothingIsSoldTwice() throws {
    let container = try TemporaryContainer()
    let shared = try container.open()
    let office = BoxOffice(try shared.join(as: "office"), in: shared)
    try office.show("Metropolis", seats: 10)
    let order = Order(film: "Metropolis", seats: 4)
    try office.sell(.make(order, id: "1"))
    try office.sell(.make(order, id: "1", attempt: 2))
    #expect(try shared.channel("seats.Metropolis", of: Int.self).value == 6)
    #expect(throws: SoldOut.self) { try office.sell(.make(Order(film: "Metropolis", seats: 7))) }
  }

  @Test func questionIsAnswered() throws {
    let container = try TemporaryContainer()
    let shared = try container.open()
    let office = BoxOffice(try shared.join(as: "office"), in: shared)
    try office.show("Metropolis", seats: 10)
    let request = try Request.make(SeatsLeft(film: "Metropolis"))
    try office.answer(request)
    #expect(try request.record?.reply(as: Int.self) == 10)
    let other = try Request.make(SeatsLeft(film: "M"))
    try office.answer(other)
    #expect(other.record?.refusal == "there is no film 'M'")
  }

  /// Two members of one container, and a link that doubles and delays.
  @Test func ordersSurviveABadLink() async throws {
    var plan = LinkPlan(seed: 1985)
    plan.duplicate = 0.3
    plan.delay = 0.3
    plan.delays = .milliseconds(1) ... .milliseconds(5)
    let two = try await TwoMembers("phone", "office", plan: plan)
    let office = BoxOffice(two.second, in: try await two.container.open())
    try office.show("Metropolis", seats: 100)
    let sales = try office.open()
    var sent: [Sent] = []
    for _ in 1...20 {
      sent.append(try await two.toSecond.send(Order(film: "Metropolis", seats: 3)))
    }
    for one in sent { try await one.waitUntilDelivered(within: .seconds(30)) }
    // If the test fails, the plan describes how to replay the failure.
    let left = try await two.toSecond.request(SeatsLeft(film: "Metropolis"))
    #expect(left == 40, "\(plan)")
    two.link.cut()
    await #expect(throws: WormholeError.self) {
      try await two.toSecond.request(SeatsLeft(film: "Metropolis"))
    }
    _ = sales
  }

  /// A clock that the test moves: no time is spent on waiting for the second attempt.
  @Test func orderForAFilmToComeIsTriedAgain() async throws {
    let clock = TestClock()
    let two = try await TwoMembers("phone", "office", clock: clock)
    let office = BoxOffice(two.second, in: try await two.container.open())
    let sales = try office.open()
    let sent = try await two.toSecond.send(Order(film: "M", seats: 1))
    try await eventually("the first attempt to fail") { clock.alarms > 0 }
    try office.show("M", seats: 1)
    try await clock.advanceToNextAlarm()
    #expect(try await sent.waitForStatus() == .delivered)
    _ = sales
  }

  /// The box office in a separate process, which is killed.
  @Test func orderWaitsForTheNextBoxOffice() async throws {
    let container = try TemporaryContainer()
    let shared = try await container.open()
    try await shared.channel("seats.Metropolis", of: Int.self).put(10)
    let office = try await shared.join(as: "phone").peer("office")
    for _ in 1...2 {
      let process = try TestProcess("TicketWindow", [container.path], in: container)
      let sent = try await office.send(Order(film: "Metropolis", seats: 2))
      #expect(try await sent.waitForStatus(within: .seconds(30)) == .delivered)
      try process.kill()
      #expect(try await process.exitStatus() == .signalled(9))
    }
    #expect(try shared.channel("seats.Metropolis", of: Int.self).value == 6)
  }
}
