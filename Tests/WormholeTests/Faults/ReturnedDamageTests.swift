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

  /// Another message of the batch is with its handler meanwhile, and is acknowledged.
  ///
  /// The first one has failed as often as it may, or was returned.
  @Test(arguments: [false, true])
  func aBatchWhoseFileIsDamagedIsDeadLetteredAfterItsLastHandler(_ hasFailed: Bool) throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let sent = try #require(try pair.phone.send(contentsOf: [1, 2, 3], .quick()).first)
    let messages = try pair.watch.take(3)
    let file = try #require(try pair.files("claimed").first)
    try pair.meeting.overwrite("members/watch/claimed/\(file)", [1, 2, 3])
    if hasFailed {
      _ = try? messages[0].fail("no")
    } else {
      messages[0].requeue()
    }
    messages[1].requeue()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try pair.send([4])
    try heard.wait("the next message") { !$0.isEmpty }
    #expect(try pair.phone.deadLetters.isEmpty)
    #expect(try pair.files("claimed").contains(file))
    try messages[2].acknowledge()
    try eventually("it is settled") { try pair.files("claimed").isEmpty }
    receiving.stop()
    #expect(heard.all == [Handed(4)])
    let letters = try pair.phone.deadLetters
    #expect(letters.map(\.id) == [sent.id])
    #expect(letters.first?.reason?.hasPrefix("the message is damaged: ") == true)
    #expect(try sent.waitForEnd() != .delivered)
  }

  /// In strict order no other message of the batch can be handled.
  @Test func aBatchInStrictOrderWhoseFileIsDamagedIsDeadLetteredAtOnce() throws {
    let pair = try Pair { $0.mailbox.keepsOrderOnRetry = true }
    let sent = try #require(try pair.phone.send(contentsOf: [1, 2], .quick()).first)
    let message = try #require(try pair.watch.take(1).first)
    let file = try #require(try pair.files("claimed").first)
    try pair.meeting.overwrite("members/watch/claimed/\(file)", [1, 2, 3])
    message.requeue()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    try pair.send([3])
    try heard.wait("the next message") { !$0.isEmpty }
    receiving.stop()
    #expect(heard.all == [Handed(3)])
    #expect(try pair.phone.deadLetters.map(\.id) == [sent.id])
  }
}
