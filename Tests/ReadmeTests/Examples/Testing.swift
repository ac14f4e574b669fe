import Testing
import Wormhole
import WormholeTesting

/// An order is handled, though the link is cut for a while and then delivers it twice.
@Test func orderSurvivesABadLink() async throws {
  let plan = try #require(LinkPlan("seed=7 duplicate=1"))
  let two = try await TwoMembers("phone", "office", plan: plan)
  let seats = try await two.container.open().channel("seats", of: Int.self)
  let selling = try two.second.receive(Int.self) { order, message in
    if message.isRedelivered { return }
    try seats.update(default: 10) { $0 -= order }
  }
  two.link.cut()
  let sent = try await two.toSecond.send(4)
  two.link.heal()
  try await sent.waitUntilDelivered(within: .seconds(30))
  #expect(try seats.value == 6, "\(plan)")
  selling.stop()
}
