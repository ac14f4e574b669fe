import Wormhole
import WormholeTesting
import XCTest

/// The same from XCTest, with tasks and without.
final class OldTests: XCTestCase {
  func testMessageComesOnThisThread() throws {
    let two = try TwoMembers()
    let heard = Heard<Int>()
    let receiving = try two.second.receive(Int.self) { value, _ in heard.add(value) }
    try two.toSecond.send(1)
    try eventually("the message") { heard.all == [1] }
    receiving.stop()
  }

  func testMessageComesInATask() async throws {
    let clock = TestClock()
    let two = try await TwoMembers(plan: try XCTUnwrap(LinkPlan("at=1:delay:1s")), clock: clock)
    let sent = try await two.toSecond.send(1)
    let receiving = try two.second.receive(Int.self) { _, _ in }
    try await clock.advanceToNextAlarm()
    let end = try await sent.waitForStatus()
    XCTAssertEqual(end, .delivered)
    receiving.stop()
  }
}
