import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage

/// Sending through a member or a guest that has left.
@Suite(.blocking) struct LeftSenderTests {
  @Test func aSenderThatHasLeftIsToldHowToSendAgain() throws {
    let meeting = try Meeting()
    let (member, guest) = (try meeting.container.join(as: "phone"), try meeting.container.guest())
    let peers = (member.peer("watch"), guest.peer("watch"))
    member.leave()
    guest.leave()
    let error = try failure { try peers.0.send(1) }
    #expect(error.code == .notJoined)
    #expect(error.reason == "'phone' has left")
    #expect(error.hint == "join again, and send through that member")
    let other = try failure { try peers.1.send(1) }
    #expect(other.code == .notJoined)
    #expect(other.reason == "the guest has left")
    #expect(other.hint == "become a guest again")
  }

  /// The directory for the outcome is gone with the guest; the message is still there.
  @Test func theMessagesOfAGuestThatHasLeftAreCancelled() throws {
    let meeting = try Meeting()
    let guest = try meeting.container.guest()
    let watch = guest.peer("watch")
    let sent = [
      try watch.send(1, .quick { $0.wantsOutcome = true }),
      try watch.send(
        2,
        .quick {
          $0.wantsOutcome = true
          $0.delay = .seconds(600)
        }),
    ]
    guest.leave()
    for one in sent { #expect(try one.cancel() == .cancelled) }
    #expect(try meeting.container.peer("watch").queue.isEmpty)
    for one in sent { #expect(try one.cancel() == .tooLate) }
  }

  @Test func aSenderThatWasRemovedAndHasJoinedAgainIsNotifiedOfTheCancellation() throws {
    let meeting = try Meeting()
    let phone = try meeting.container.join(as: "phone")
    let sent = try phone.peer("watch").send(1, .quick { $0.wantsOutcome = true })
    phone.leave()
    #expect(try meeting.container.removeMember("phone"))
    let next = try meeting.container.join(as: "phone")
    #expect(try sent.cancel() == .cancelled)
    let outcomes = try meeting.container.peer("phone").pendingOutcomes
    #expect(outcomes.map(\.id) == [sent.id])
    #expect(outcomes.map(\.status) == [.cancelled])
    next.leave()
  }
}
