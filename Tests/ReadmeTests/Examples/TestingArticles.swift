import Testing
import Wormhole
import WormholeTesting

// The examples of the articles on testing, word for word, with the declarations that they assume.
// No test runs here: the examples are only compiled.

struct TestingArticle {
  struct Order: Codable, Sendable {
    let film: String
    let seats: Int
  }
  struct SeatsLeft: Codable, Sendable { let film: String }

  /// What a user tests.
  final class BoxOffice: Sendable {
    init(_ member: Member? = nil) {}
    let seatsLeft = 6
    func sell(_ message: Message) throws {}
    func answer(_ request: Request) throws {}
    func show(_ film: String, seats: Int) throws {}
  }

  let office = BoxOffice()
  let left = 40

  func nothingIsSoldTwice() throws {
    let first = try Message.make(Order(film: "Metropolis", seats: 4), id: "1")
    try office.sell(first)
    let again = try Message.make(
      Order(film: "Metropolis", seats: 4), id: "1", attempt: 2)
    try office.sell(again)
    #expect(office.seatsLeft == 6)
  }

  func questionIsAnswered() throws {
    let request = try Request.make(SeatsLeft(film: "Metropolis"))
    try office.answer(request)
    #expect(try request.record?.reply(as: Int.self) == 10)
  }

  func orderIsHandled() async throws {
    let two = try await TwoMembers("phone", "office")
    let office = BoxOffice(two.second)
    try office.show("Metropolis", seats: 10)
    let sent = try await two.toSecond.send(Order(film: "Metropolis", seats: 4))
    #expect(try await sent.waitForStatus(within: .seconds(30)) == .delivered)
  }

  func ordersSurviveABadLink() async throws {
    let plan = LinkPlan("seed=1985 duplicate=0.3 delay=0.3:1ms-5ms at=2:drop")!
    let two = try await TwoMembers("phone", "office", plan: plan)
    _ = two
    #expect(left == 40, "\(plan)")
  }

  func orderThatFailsIsTriedAgain() async throws {
    let clock = TestClock()
    let two = try await TwoMembers("phone", "office", clock: clock)
    let office = BoxOffice(two.second)
    let sent = try await two.toSecond.send(Order(film: "not yet", seats: 1))
    try await eventually("the first attempt to fail") { clock.alarms > 0 }
    try office.show("not yet", seats: 1)
    try await clock.advanceToNextAlarm()
    #expect(try await sent.waitForStatus() == .delivered)
  }

  func orderWaitsForTheNextBoxOffice() async throws {
    let container = try TemporaryContainer()
    let office = try await container.open().join(as: "phone").peer("office")
    for _ in 1...2 {
      let process = try TestProcess("TicketWindow", in: container)
      let sent = try await office.send(Order(film: "Metropolis", seats: 2))
      #expect(try await sent.waitForStatus(within: .seconds(30)) == .delivered)
      try process.kill()
      #expect(try await process.exitStatus() == .signalled(9))
    }
  }
}

enum WormholeTestingArticle {
  typealias Order = TestingArticle.Order

  static func cutAndHeal() throws -> Sent {
    let two = try TwoMembers("phone", "office", plan: LinkPlan("seed=7 drop=0.1")!)
    two.link.cut()
    let sent = try two.toSecond.send(Order(film: "Metropolis", seats: 4))
    two.link.heal()
    return sent
  }
}
