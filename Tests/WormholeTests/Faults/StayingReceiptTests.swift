import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// A receipt that the system refuses to remove after its outcome was reported.
@Suite(.blocking) struct StayingReceiptTests {
  @Test func anOutcomeThatWasReadIsNotReportedToALaterListener() throws {
    let pair = try Pair()
    let first = try pair.phone.send(1, .quick())
    try pair.watch.take(1)[0].acknowledge()
    try eventually("its receipt was read") { first.hasEnded }
    let rule = FaultRule(.unlink, path: "phone/receipts/", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) { #expect(first.status == .delivered) }
    #expect(try pair.files("receipts", of: "phone").count == 1)
    let heard = Heard<String>()
    let watching = try pair.sender.watchOutcomes { heard.add($0.id) }
    let second = try pair.phone.send(2, .quick())
    try pair.watch.take(1)[0].acknowledge()
    try heard.wait("the outcome of the second message") { $0.contains(second.id) }
    // The listing for the listener has removed the first receipt.
    try eventually("no receipt is left") { try pair.files("receipts", of: "phone").isEmpty }
    watching.stop()
    #expect(heard.all == [second.id])
  }
}
