import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The content of a sent message whose file is gone, or damaged.
@Suite(.blocking) struct SettledContentTests {
  private let meeting: Meeting

  init() throws { meeting = try Meeting() }

  private func join() throws -> Member { try meeting.another().join(as: "phone") }

  /// Sends a message in one incarnation, and finds the message in the next.
  private func sentByAnEarlierLife() throws -> (Sent, file: String) {
    let old = try join()
    try old.peer("watch").send("hello", .quick())
    old.leave()
    let new = try join()
    let sent = try #require(try new.peer("watch").pendingMessages.first)
    new.leave()
    return (sent, try #require(try meeting.names("members/watch/inbox").first))
  }

  @Test func aMessageThatLeftNoReceiptHasNoContent() throws {
    let (sent, file) = try sentByAnEarlierLife()
    try meeting.folder("members/watch/inbox").unlink(file)
    let reads: [() throws -> Void] = [
      { _ = try sent.kind }, { _ = try sent.headers }, { _ = try sent.file },
      { _ = try sent.value(as: String.self) }, { _ = try sent.values(as: String.self) },
    ]
    for read in reads {
      let error = try failure(read)
      #expect(error.code == .notFound)
      #expect(error.operation == "read message")
      #expect(error.reason == "the message is settled, and its content is no longer stored")
    }
  }

  /// What was read once is kept, and needs no file any more.
  @Test func contentThatWasReadBeforeStaysKnown() throws {
    let (sent, file) = try sentByAnEarlierLife()
    #expect(try sent.kind == "String")
    try meeting.folder("members/watch/inbox").unlink(file)
    #expect(try sent.value(as: String.self) == "hello")
  }

  @Test func aDamagedMessageIsDamagedToItsSender() throws {
    let (sent, file) = try sentByAnEarlierLife()
    try meeting.overwrite("members/watch/inbox/\(file)", [1, 2, 3])
    let error = try failure { _ = try sent.kind }
    #expect(error.code == .damaged)
    #expect(
      error.reason == "the message is damaged: the file is not a binary property list")
    #expect(try sent.state == .waiting)
  }

  /// The receipt is the file of the message; its name states how the message ended.
  @Test func aDamagedReceiptStillTellsTheEnd() throws {
    let old = try join()
    let sent = try old.peer("watch").send("hello", .quick())
    old.leave()
    #expect(try sent.cancel() == .cancelled)
    let receipts = try meeting.names("members/phone/receipts")
    #expect(receipts.count == 1)
    try meeting.overwrite("members/phone/receipts/\(try #require(receipts.first))", [1, 2, 3])
    let heard = Heard<Outcome>()
    let new = try join()
    let watching = try new.watchOutcomes { heard.add($0) }
    try heard.wait("the end") { $0.count == 1 }
    watching.stop()
    new.leave()
    let outcome = try #require(heard.all.first)
    #expect(outcome.id == sent.id)
    #expect(outcome.status == .cancelled)
    #expect([outcome.kind, outcome.to] == ["", ""])
    let error = try failure { _ = try outcome.value(as: String.self) }
    #expect(error.code == .notFound)
    #expect(error.reason == "the content of the sent message is no longer stored")
  }

  /// A listing of outcomes keeps no values in memory.
  @Test func aListedOutcomeHasItsPropertiesAndNoValue() throws {
    let old = try join()
    let sent = try old.peer("watch").send(contentsOf: [1, 2], .quick())[0]
    old.leave()
    #expect(try sent.cancel() == .cancelled)
    let outcome = try #require(try meeting.container.peer("phone").pendingOutcomes.first)
    #expect([outcome.id, outcome.kind, outcome.to] == [sent.id, "Int", "watch"])
    #expect(outcome.count == 2)
    #expect(try failure { _ = try outcome.values(as: Int.self) }.code == .notFound)
  }
}
