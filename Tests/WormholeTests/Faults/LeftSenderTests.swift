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
}
