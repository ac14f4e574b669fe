import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage

@testable import Wormhole

/// Waits for the outcome of one message, one after the other.
@Suite struct RepeatedWaitTests {
  /// A program may wait for a second at a time, for days.
  @Test func aWaitThatHasEndedLeavesNothing() async throws {
    let meeting = try Meeting()
    let phone = try await meeting.container.join(as: "phone")
    let sent = try await phone.peer("watch").send(1, .quick())
    for _ in 0..<3 {
      let error = try await failure { try await sent.waitUntilDelivered(within: .milliseconds(1)) }
      #expect(error.code == .timedOut)
    }
    let waiting = Task { try await failure { try await sent.waitUntilDelivered() }.code }
    waiting.cancel()
    #expect(try await waiting.value == .cancelled)
    #expect(sent.waitCount == 0)
    #expect(try sent.cancel() == .cancelled)
    #expect(try await sent.waitForStatus(within: patience) == .cancelled)
    #expect(sent.waitCount == 0)
    await phone.leave()
  }
}
