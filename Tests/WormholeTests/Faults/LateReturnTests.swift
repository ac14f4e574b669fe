import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls
import WormholeTesting

@testable import Wormhole

/// Messages that a receiver puts back after their time to live.
@Suite(.blocking) struct LateReturnTests {
  /// No receiver ever comes again: the sender would wait for ever.
  @Test func aMessageThatIsPutBackAfterItsTimeExpires() throws {
    let (clock, epoch) = (TestClock(), Monitor(Clocks.sinceEpoch))
    let meeting = try Meeting {
      $0.clock = clock
      $0.environment.sinceEpoch = { epoch.withLock { $0 } }
    }
    func pass(_ seconds: Int64) {
      epoch.withLock { $0 += seconds * 1_000_000_000 }
      clock.advance(by: .seconds(seconds))
    }
    let phone = try meeting.container.join(as: "phone")
    let sent = try phone.peer("watch").send(1, .quick { $0.timeToLive = .seconds(60) })
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    let claimed = ClaimedName(sent.name, attempt: 1)
    #expect(try home.claim(claimed))
    pass(61)
    try TestSupport.eventually("the sender is to look again") { clock.alarms > 0 }
    #expect(sent.status == nil)
    #expect(try home.move(claimed.text, from: .claimed, .inbox, as: sent.name.text))
    try TestSupport.eventually("the message has expired") {
      pass(2)
      return sent.status == .expired
    }
    #expect(try meeting.names("members/watch/claimed") == [])
    phone.leave()
  }

  /// A message that was handled in part never expires, and is not looked for any more.
  @Test func aMessageOfALaterAttemptIsLeftAlone() throws {
    let meeting = try Meeting()
    let peer = meeting.container.peer("watch")
    let (first, second) = (try peer.send(1, .quick()), try peer.send(2, .quick()))
    let home = try #require(try meeting.container.storage.existingMember("watch"))
    #expect(try home.claim(ClaimedName(first.name, attempt: 1)))
    #expect(try home.claim(ClaimedName(second.name, attempt: 2)))
    #expect(try Expiry.mayComeBack(first.identity, to: home))
    #expect(try !Expiry.mayComeBack(second.identity, to: home))
    let waiting = try peer.send(3, .quick())
    #expect(try !Expiry.mayComeBack(waiting.identity, to: home))
  }
}
