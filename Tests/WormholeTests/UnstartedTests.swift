import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Steps that a process leaves to another one: to start a member, and to deliver what is due.
@Suite(.blocking) struct UnstartedTests {
  /// The process has the name, and has not written its profile: a second start would only fail.
  @Test func aMemberThatIsAboutToJoinIsNotStarted() throws {
    let meeting = try Meeting()
    let container = meeting.container
    try container.registerLaunch(of: "watch", program: "true")
    let home = try #require(try container.storage.existingMember("watch"))
    let call = try WakeCall(container.peer("watch"), .milliseconds(200))
    let presence = try #require(try home.takePresence())
    let error = try failure { try call.run() }
    presence.release()
    #expect(error.code == .timedOut)
    #expect(
      error.reason == "no process has started the program, "
        + "and no process has joined within 0.2 seconds")
    let slot = try WakeRecord.slot(of: "watch", in: container.storage)
    #expect(try WakeRecord(slot.read()) == nil)
  }

  @Test func aListingOfAReaderDeliversNoDueMessage() throws {
    let (clock, entries) = (Monitor(Clocks.sinceEpoch), Heard<LogEntry>())
    let meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    let peer = meeting.container.peer("watch")
    let sent = try peer.send(1, .quick { $0.delay = .seconds(60) })
    let reader = try meeting.another {
      $0.environment.sinceEpoch = { clock.withLock { $0 } }
      $0.isForReading = true
      $0.log = { entries.add($0) }
    }
    clock.withLock { $0 += 120_000_000_000 }
    let queue = try reader.peer("watch").queue
    #expect(queue.map(\.id) == [sent.id] && queue.map(\.state) == [.delayed])
    #expect(try meeting.names("members/watch/later").count == 1)
    #expect(!entries.all.contains { $0.text.hasPrefix("cannot deliver") })
    #expect(try peer.queue.map(\.state) == [.waiting])
    #expect(try meeting.names("members/watch/later") == [])
  }
}
