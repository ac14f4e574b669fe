import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A message that was returned to its mailbox, and whose file is damaged by the next delivery.
@Suite(.blocking) struct ReturnedDamageTests {
  /// The file is read again for each delivery, and no read of this file ever succeeds.
  @Test func aReturnedMessageWhoseFileIsDamagedIsDeadLettered() throws {
    let pair = try Pair()
    let sent = try #require(try pair.send([1]).first)
    let message = try #require(try pair.watch.take(1).first)
    let file = try #require(try pair.files("claimed").first)
    try pair.meeting.overwrite("members/watch/claimed/\(file)", [1, 2, 3])
    message.requeue()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try eventually("it is settled") { try pair.files("claimed").isEmpty }
    try pair.send([2])
    try heard.wait("the next message") { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == [Handed(2)])
    let letters = try pair.phone.deadLetters
    #expect(letters.map(\.id) == [sent.id])
    #expect(letters.map(\.attempts) == [1])
    #expect(letters.first?.reason?.hasPrefix("the message is damaged: ") == true)
  }
}
