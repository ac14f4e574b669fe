import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Cancelling all messages that wait, of members and of queues.
@Suite struct PurgeTests {
  @Test func onlyWaitingMessagesAreCancelledAndTheirSendersNotified() async throws {
    let pair = try Pair()
    let claimed = try await pair.phone.send("first")
    let waiting = try await pair.phone.send("second")
    try await pair.meeting.container.peer("watch").send(contentsOf: ["a", "b", "c"])
    var messages = pair.watch.deliveries.makeAsyncIterator()
    let message = try #require(try await messages.next())
    // The batch counts as its messages.
    #expect(try await pair.phone.purge() == 4)
    #expect(try await waiting.waitForStatus() == .cancelled)
    #expect(try pair.phone.queue.map(\.id) == [claimed.id])
    try message.acknowledge()
    #expect(try await claimed.waitForStatus() == .delivered)
    #expect(try await pair.phone.purge() == 0)
  }

  @Test(.blocking) func theKindAndTheAgeDecide() throws {
    let pair = try Pair()
    try pair.phone.send("text")
    try pair.phone.send(1)
    #expect(try pair.phone.purge(kind: "Double") == 0)
    #expect(try pair.phone.purge(kind: "Int", olderThan: .seconds(600)) == 0)
    #expect(try pair.phone.purge(kind: "Int", olderThan: .zero) == 1)
    #expect(try pair.phone.queue.map(\.kind) == ["String"])
    // Its kind is unknown: only a purge of all messages cancels it.
    let inbox = pair.meeting.path + "/members/watch/inbox"
    let damaging = try run("sh", ["-c", "for f in '\(inbox)'/*; do printf x >\"$f\"; done"])
    #expect(damaging.status == .exited(0))
    #expect(try pair.phone.purge(kind: "String") == 0)
    #expect(try pair.phone.purge(olderThan: .zero) == 0)
    #expect(try pair.phone.purge() == 1)
    #expect(try pair.phone.queue.isEmpty)
  }

  /// Its receiver dead-letters such a file; until then, the purge of a kind passes the file over.
  @Test(.blocking) func aRefusedFileKeepsNoOtherMessageFromThePurge() throws {
    let pair = try Pair()
    for number in 1...2 { try pair.phone.send(number, .quick()) }
    let first = try #require(try pair.files("inbox").first)
    let inbox = try pair.meeting.folder("members/watch/inbox")
    try inbox.unlink(first)
    try inbox.makeSymbolicLink(first, to: "elsewhere")
    #expect(try pair.phone.purge(kind: "Int") == 1)
    #expect(try pair.files("inbox") == [first])
    #expect(try pair.phone.purge(olderThan: .zero) == 0)
    #expect(try pair.phone.purge() == 1)
    #expect(try pair.files("inbox") == [])
  }

  @Test(.blocking) func aQueueIsPurgedAndNobodyHasNone() throws {
    let meeting = try Meeting()
    let container = meeting.container
    let jobs = container.queue("jobs", of: Int.self)
    #expect(try jobs.purge() == 0)
    try jobs.send(contentsOf: [1, 2, 3])
    #expect(try jobs.purge(kind: "Int") == 3)
    #expect(try jobs.messages.isEmpty)
    #expect(try container.peer("nobody").purge() == 0)
  }
}
