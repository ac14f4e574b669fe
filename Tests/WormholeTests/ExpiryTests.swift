import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing

@testable import Wormhole

/// Messages whose time passes while nobody receives.
@Suite struct ExpiryTests {
  private static let soon = Wormhole.SendOptions.quick { $0.timeToLive = .milliseconds(20) }
  private static let never = Wormhole.SendOptions.quick { $0.timeToLive = .seconds(3600) }

  @Test func whoWaitsIsToldWithoutAReceiver() async throws {
    let pair = try Pair()
    let single = try await pair.phone.send(1, Self.soon)
    let batch = try await pair.phone.send(contentsOf: [2, 3], Self.soon)[0]
    let late = try await pair.phone.send(4, Self.never)
    for sent in [single, batch] { #expect(try await sent.outcome(within: patience) == .expired) }
    #expect(try pair.files("inbox").count == 1)
    #expect(late.end == nil)
    #expect(try late.cancel())
  }

  /// Whoever keeps nothing of what was sent is told as well, also if it was a guest.
  @Test(.blocking) func whoeverListensIsToldWithoutAReceiver() throws {
    let pair = try Pair()
    let heard = Heard<Wormhole.Outcome.End>()
    let watching = try pair.sender.watchOutcomes { heard.add($0.end) }
    for number in 1...50 { try pair.phone.send(number, Self.soon) }
    try heard.wait("all") { $0.count == 50 }
    #expect(Set(heard.all) == [.expired])
    #expect(try pair.files("inbox") == [])
    try eventually("nothing is left to tell") { try pair.files("receipts", of: "phone") == [] }
    watching.stop()
  }

  /// An earlier life has sent it, and is no more.
  @Test func whoAsksForWhatIsOutstandingIsTold() async throws {
    // It stands still until the test has asked.
    let clock = Monitor(Clocks.sinceEpoch)
    func stand(_ options: inout Wormhole.Options) {
      options.environment.sinceEpoch = { clock.withLock { $0 } }
    }
    let pair = try Pair(stand)
    try await pair.phone.send(1, Self.soon)
    await pair.sender.leave()
    let again = try await pair.meeting.another(stand).join(as: "phone")
    let outstanding = try again.peer("watch").outstanding
    try #require(outstanding.count == 1)
    clock.withLock { $0 += 1_000_000_000 }
    #expect(try await outstanding[0].outcome(within: patience) == .expired)
    #expect(try pair.files("inbox") == [])
  }

  /// Nobody waits for what these were, and the next sender finds room.
  @Test(.blocking) func whatHasExpiredFillsNoQueue() throws {
    let pair = try Pair()
    let hole = try pair.meeting.another { $0.mail.largestQueue = 20 }
    let peer = hole.peer("watch")
    for number in 0..<20 {
      let life: Duration = number % 2 == 0 ? .milliseconds(1) : .seconds(3600)
      try peer.send(number, .quick { $0.timeToLive = life })
    }
    try eventually("half of them have expired") {
      for _ in 0..<10 { try peer.send(0, .quick()) }
      return true
    }
    #expect(try failure { try peer.send(0, .quick()) }.code == .full)
    #expect(try pair.files("inbox").count == 20)
  }

  @Test(.blocking) func whoeverLooksAtAQueueEndsWhatHasExpired() throws {
    let pair = try Pair()
    let peer = pair.meeting.hole.peer("watch")
    try peer.send(1, Self.soon)
    try peer.send(2, Self.never)
    try eventually("one is left") { try peer.queue.count == 1 }
    #expect(try pair.files("inbox").count == 1)
  }

  /// Of those who claim a message and its end by time, one wins, and the sender hears the truth.
  @Test func expiringMeetsClaiming() async throws {
    let pair = try Pair()
    let heard = Heard<Handed>()
    let receiving = try pair.watch.note(heard)
    var counts: [Wormhole.Outcome.End: [Int]] = [:]
    for number in 0..<200 {
      let sent = try await pair.phone.send(
        number, .quick { $0.timeToLive = .microseconds(Int64(number) * 20) })
      counts[try await sent.outcome(within: patience), default: []].append(number)
    }
    receiving.stop()
    #expect(heard.all.map(\.number) == counts[.delivered] ?? [])
    #expect(counts.values.reduce(0) { $0 + $1.count } == 200)
    #expect(counts.keys.allSatisfy { [.delivered, .expired].contains($0) })
  }

  /// Or those that are to end would be turned away some day.
  @Test(.blocking) func whatHasEndedIsNotKeptUntilItsTimeHasPassed() throws {
    let pair = try Pair()
    let receiving = try pair.watch.receive { _ in }
    for number in 1...50 { try pair.phone.send(number, Self.never) }
    try eventually("all have ended") { pair.sender.outbox.expiries.count == 0 }
    receiving.stop()
  }

  /// Whoever ends messages in place of a receiver keeps to what their sender may have there.
  @Test(.blocking) func whatNobodyReadsOfExpiredMessagesIsBounded() throws {
    let clock = Monitor(Clocks.sinceEpoch)
    let meeting = try Meeting { $0.environment.sinceEpoch = { clock.withLock { $0 } } }
    let phone = try meeting.hole.join(as: "phone")
    for number in 1...100 { try phone.peer("watch").send(number, Self.soon) }
    phone.leave()
    let later = try meeting.another {
      $0.environment.sinceEpoch = { clock.withLock { $0 } + 1_000_000_000 }
      $0.mail.largestReceipts = 16 * 4096
    }
    #expect(try later.peer("watch").queue.isEmpty)
    let left = try meeting.names("members/phone/receipts").count
    #expect((14...16).contains(left), "\(left)")
  }
}
