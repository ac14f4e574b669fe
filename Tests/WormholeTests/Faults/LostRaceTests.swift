import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Calls that another process or thread overtakes between two of their steps.
@Suite(.blocking) struct LostRaceTests {
  /// Whoever has not buried the message has not settled it either.
  @Test func aDirectoryThatAnotherProcessTakesIsNotBuried() throws {
    let meeting = try Meeting()
    let container = meeting.container
    let name = try container.peer("watch").send(1, .quick()).name
    let home = try #require(try container.storage.existingMember("watch"))
    #expect(try home.remove(name.text, from: .inbox))
    let claimed = ClaimedName(name, attempt: 1)
    _ = try home.part(.claimed)
    try meeting.folder("members/watch/claimed").makeDirectory(claimed.text, mode: 0o700)
    let settlement = Settlement(
      container: container, home: home, claims: home, senders: SenderHomes(container.storage),
      supersession: "another process has the message")
    // The first rename is that of the reason.
    let rule = FaultRule(.rename, path: "dead/\(name.text)", number: 2, .fail(.noSuchFile))
    try FaultPoints.with([rule]) {
      let error = try failure { try settlement.giveUp(claimed, attempts: 1, "a reason") }
      #expect(error.code == .superseded, "\(error)")
    }
    #expect(try meeting.names("members/watch/dead") == [])
    try settlement.giveUp(claimed, attempts: 1, "a reason")
    #expect(try container.peer("watch").deadLetters.map(\.reason) == ["a reason"])
    #expect(try meeting.names("members/watch/claimed") == [])
  }
}
