import TestSupport
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

/// The last attempts of messages of a queue.
@Suite struct QueueEndTests {
  private struct Refused: Error {}

  private let clock = TestClock()
  private let meeting: Meeting
  private let queue: Wormhole.Queue<Int>

  init() throws {
    let clock = clock
    meeting = try Meeting {
      $0.clock = clock
      $0.mailbox.attempts = 2
      $0.mailbox.maximumDeadLetters = 1
    }
    queue = meeting.container.queue("jobs")
  }

  /// Returns the only waiting message, as if its worker had died so often.
  private func interrupt(_ attempts: Int) throws {
    let home = try meeting.folder("queues/jobs")
    let name = try #require(try home.open("inbox", [.readOnly, .directory]).names().first)
    try home.rename("inbox/\(name)", to: home, "claimed/\(name)~\(attempts)")
  }

  /// Attempts count whether they were interrupted or failed.
  @Test func anInterruptedLastAttemptIsTheLast() async throws {
    let heard = Heard<Handed>()
    let working = try queue.work { _, message in heard.add(try Handed(message)) }
    working.stop()
    try await working.finished()
    for attempts in [1, 2] {
      try await queue.send(attempts, .quick())
      try interrupt(attempts)
    }
    let next = try queue.work { _, message in heard.add(try Handed(message)) }
    try await WormholeTesting.eventually("both have ended", within: patience) {
      try queue.messages.isEmpty
    }
    next.stop()
    #expect(heard.all == [Handed(1, 2)])
    let letters = try queue.deadLetters
    #expect(letters.map(\.attempts) == [2])
    #expect(letters.first?.reason == "each of 2 attempts failed or was interrupted")
  }

  /// There is no space for another dead letter: the message is kept until there is.
  @Test func aMessageThatCannotBeDeadLetteredIsTriedAgain() async throws {
    let heard = Heard<Int>()
    let working = try queue.work(handlingDeadline: nil) { job, _ in
      heard.add(job)
      throw Refused()
    }
    for number in 1...2 {
      try await queue.send(number, .quick())
      try await WormholeTesting.eventually("two attempts have failed", within: patience) {
        clock.advance(by: .seconds(1))
        return heard.count == 2 * number
      }
    }
    try await WormholeTesting.eventually("one is a dead letter", within: patience) {
      try queue.deadLetters.count == 1 && queue.messages.count == 1
    }
    #expect(try queue.discard(id: #require(queue.deadLetters.first).id))
    try await WormholeTesting.eventually("the other one is a dead letter", within: patience) {
      clock.advance(by: .seconds(30))
      return try queue.deadLetters.count == 1
    }
    working.stop()
    #expect(try queue.messages.isEmpty)
    #expect(heard.all == [1, 1, 2, 2])
  }
}
