import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The reason of a dead letter, for the sender and after retries.
@Suite struct DeadLetterReasonTests {
  /// The dead letters of a queue are in the queue's directory, and not in a member's.
  @Test func theSenderToAQueueLearnsTheReason() async throws {
    let meeting = try Meeting { $0.mailbox.attempts = 1 }
    let phone = try await meeting.container.join(as: "phone")
    let queue = phone.queue("jobs", of: Int.self)
    let sent = try await queue.send(7, .quick())
    let working = try queue.work { _, _ in throw Refusal() }
    let end = try await sent.waitForStatus(within: patience)
    working.stop()
    let letter = try #require(try queue.deadLetters.first)
    let reason = try #require(letter.reason)
    #expect(end == .deadLettered(reason: reason))
    #expect(reason.contains("Refusal"))
  }

  /// The message fails again before the retry has removed the reason of the failure before.
  ///
  /// A message that is retried for the second time keeps its name, and so does its reason.
  @Test(.blocking) func aRetryKeepsTheReasonOfTheNextFailure() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let phone = pair.phone
    let id = try phone.send(1, .quick()).id
    func failOnce() throws {
      let receiving = try pair.watch.receive { _ in throw Refusal() }
      try eventually("the message is a dead letter") {
        try !phone.deadLetters.isEmpty && pair.files("claimed").isEmpty
      }
      receiving.stop()
    }
    try failOnce()
    #expect(try phone.retry(id: id))
    try failOnce()
    let pause = FaultPause()
    let isRetried = Monitor<Bool?>(nil)
    let retrying = try Thread("retrying") {
      FaultPoints.with([FaultRule(.unlink, path: ",reason", .pause(pause))]) {
        let found = try? phone.retry(id: id)
        isRetried.withLock { $0 = found }
      }
    }
    try eventually("the message has left the dead letters") { pause.isReached }
    try failOnce()
    pause.open()
    retrying.join()
    #expect(isRetried.withLock { $0 } == true)
    #expect(try phone.deadLetters.map(\.reason) == ["\(Refusal())"])
  }
}
