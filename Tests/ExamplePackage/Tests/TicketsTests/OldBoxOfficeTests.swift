import Tickets
import Wormhole
import WormholeTesting
import XCTest

/// The box office, tested with XCTest.
final class OldBoxOfficeTests: XCTestCase {
  func testOrderIsHandled() throws {
    let two = try TwoMembers("phone", "office")
    let shared = try two.container.open()
    let office = BoxOffice(two.second, in: shared)
    try office.show("Metropolis", seats: 10)
    let sales = try office.open()
    let sent = try two.toSecond.send(Order(film: "Metropolis", seats: 4))
    try eventually("the order to be handled") { sent.status == .delivered }
    XCTAssertEqual(try shared.channel("seats.Metropolis", of: Int.self).value, 6)
    _ = sales
  }

  func testUnknownFilmIsSoldOut() throws {
    let container = try TemporaryContainer()
    let shared = try container.open()
    let office = BoxOffice(try shared.join(as: "office"), in: shared)
    let message = try Message.make(Order(film: "M", seats: 1))
    XCTAssertThrowsError(try office.sell(message))
    XCTAssertEqual(message.record?.isClaimed, true)
    try message.fail("sold out")
    XCTAssertEqual(message.record?.failure, "sold out")
  }
}
