import Tickets
import Wormhole
import WormholeTesting
import XCTest

/// The box office, tested with XCTest.
final class OldBoxOfficeTests: XCTestCase {
  func testOrderIsHandled() throws {
    let two = try TwoMembers("phone", "office")
    let hole = try two.container.open()
    let office = BoxOffice(two.second, in: hole)
    try office.show("Metropolis", seats: 10)
    let sales = try office.open()
    let sent = try two.toSecond.send(Order(film: "Metropolis", seats: 4))
    try eventually("the order to be handled") { sent.end == .delivered }
    XCTAssertEqual(try hole.channel("seats.Metropolis", of: Int.self).value, 6)
    _ = sales
  }

  func testUnknownFilmIsSoldOut() throws {
    let container = try TemporaryContainer()
    let hole = try container.open()
    let office = BoxOffice(try hole.join(as: "office"), in: hole)
    let message = try Wormhole.Message.make(Order(film: "M", seats: 1))
    XCTAssertThrowsError(try office.sell(message))
    XCTAssertEqual(message.record?.isInHand, true)
    try message.fail("sold out")
    XCTAssertEqual(message.record?.failure, "sold out")
  }
}
