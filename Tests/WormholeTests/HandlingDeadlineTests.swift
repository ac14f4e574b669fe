import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// The time limit for closures that receive the messages of a member.
@Suite struct HandlingDeadlineTests {
  private let meeting: Meeting
  private let phone: Peer
  private let logged = Heard<String>()

  init() throws {
    let logged = logged
    meeting = try Meeting {
      $0.mailbox.retryDelay = .milliseconds(1)
      $0.mailbox.handlingDeadline = .seconds(2)
      $0.log = { logged.add($0.text) }
    }
    phone = try meeting.container.join(as: "phone").peer("watch")
  }

  @Test func aClosureThatTakesTooLongIsCancelledAndHasFailed() async throws {
    let (sent, later) = (
      try await phone.send(1, .quick()), try await phone.send(2, .quick())
    )
    let watch = try await meeting.container.join(as: "watch")
    let heard = Heard<String>()
    let receiving = try watch.receive(Int.self) { number, message in
      heard.add("\(number) \(message.attempt) begins")
      if number == 1, message.attempt == 1 {
        // The closure does not see the cancellation for a while; no other call has the message.
        await withTaskCancellationHandler {
          await withCheckedContinuation { continuation in
            Self.ended.signal { $0 = continuation }
          }
        } onCancel: {
          heard.add("cancelled")
        }
      }
      heard.add("\(number) \(message.attempt) returns, \(Task.isCancelled)")
    }
    await #expect(throws: Never.self) {
      try await heard.comes("the cancellation") { $0.contains("cancelled") }
    }
    #expect(heard.all == ["1 1 begins", "cancelled"])
    #expect(try sent.state == .claimed)
    Self.ended.withLock { $0.take() }?.resume()
    #expect(try await sent.waitForStatus() == .delivered)
    #expect(try await later.waitForStatus() == .delivered)
    // Returning after the deadline is a failed attempt. The next calls have a time of their own.
    let all = heard.all
    #expect(all.contains("1 1 returns, true") && all.contains("1 2 returns, false"))
    #expect(all.contains("2 1 returns, false"))
    let line = "the handling deadline of message '\(sent.id)' to 'watch' has passed"
    #expect(logged.all.count { $0.hasPrefix(line) } == 1)
    receiving.stop()
  }

  /// Resumes the call that takes too long.
  private static let ended = Monitor(CheckedContinuation<Void, Never>?.none)

  @Test func theLastAttemptMakesADeadLetterWithTheReason() async throws {
    let container = try await SharedContainer(
      directory: meeting.path,
      options: Options(
        mailbox: MailboxOptions(attempts: 1, handlingDeadline: .milliseconds(100))))
    let sent = try await phone.send(1, .quick())
    let watch = try await container.join(as: "watch")
    let receiving = try watch.receive { _ in
      while !Task.isCancelled { await Task.yield() }
    }
    let status = try await sent.waitForStatus()
    let reason = "the closure took longer than the handling deadline of 0.1 seconds"
    #expect(status == .deadLettered(reason: reason))
    receiving.stop()
  }

  @Test func closuresInTimeAreNotCancelled() async throws {
    let watch = try await meeting.container.join(as: "watch")
    let heard = Heard<Bool>()
    let receiving = try watch.receive(Int.self) { number, _ in
      // Each is in time, and all together are not.
      _ = heard.count
      let end = Instant.now + .milliseconds(number == 1 ? 600 : 1)
      while Instant.now < end { await Task.yield() }
      heard.add(Task.isCancelled)
    }
    for _ in 1...4 { try await phone.send(1, .quick()) }
    try await heard.comes("all") { $0.count == 4 }
    #expect(heard.all == [false, false, false, false] || !logged.all.isEmpty)
    try await phone.send(2, .quick())
    try await heard.comes("the last") { $0.count >= 5 }
    receiving.stop()
  }
}
