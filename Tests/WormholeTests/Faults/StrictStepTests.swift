import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// Small decisions of the mail: which names are claims, and which requesters have ended.
@Suite(.blocking) struct StrictStepTests {
  private let name = MessageName(
    isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 2), wantsReceipt: false, count: 1,
    id: "one", from: "phone")

  @Test func onlyTheLibrarysOwnFormsAreClaims() {
    let last = ClaimedName(name, attempt: ClaimedName.limit, claim: ClaimedName.lastClaim)
    for claimed in [
      ClaimedName(name, attempt: 1), ClaimedName(name, attempt: 1, isInterrupted: true),
      ClaimedName(name, attempt: 0, isInterrupted: true), ClaimedName(name, attempt: 2, claim: 1),
      last,
    ] {
      #expect(ClaimedName(claimed.text) == claimed)
    }
    for end in ["0", "1000", "02", "007", "+7", "-1", "", "7.", "7.0", "7.A", "7.1.1", "7.1000000"]
    {
      #expect(ClaimedName("\(name.text)~\(end)") == nil, "\(end)")
    }
  }

  /// A request of a requester whose end is not certain is answered.
  @Test func anErrorOfTheSystemIsNotTheEndOfARequester() throws {
    let meeting = try Meeting()
    let storage = meeting.container.storage
    let phone = try meeting.container.join(as: "phone")
    let incarnation = phone.incarnation
    #expect(!LiveFolders(storage).isGone("phone", incarnation))
    #expect(LiveFolders(storage).isGone("phone", nil))
    #expect(LiveFolders(storage).isGone("nobody", incarnation))
    let rule = FaultRule(.open, path: "members/phone", persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      #expect(!LiveFolders(storage).isGone("phone", incarnation))
    }
    phone.leave()
    let folders = LiveFolders(storage)
    #expect(folders.isGone("phone", incarnation))
    // The answer stays: no incarnation comes back.
    FaultPoints.with([rule]) { #expect(folders.isGone("phone", incarnation)) }
  }

  /// Only the end of a requester is remembered for good, because a running one may still end.
  @Test func aRequesterThatEndsAfterALookIsGoneThen() throws {
    let meeting = try Meeting()
    let phone = try meeting.container.join(as: "phone")
    let (folders, incarnation) = (LiveFolders(meeting.container.storage), phone.incarnation)
    #expect(!folders.isGone("phone", incarnation))
    phone.leave()
    #expect(throws: Never.self) {
      try eventually("the end is noticed") { folders.isGone("phone", incarnation) }
    }
  }

  /// Another member has stated the requester's incarnation as its own before, and would receive
  /// the reply.
  @Test func aReplyGoesToTheFolderOfItsRequester() throws {
    let meeting = try Meeting()
    let (phone, other) = (
      try meeting.container.join(as: "phone"), try meeting.another().join(as: "other")
    )
    try meeting.folder("members/other/live")
      .makeDirectory(phone.incarnation.rawValue, mode: 0o700)
    let folders = LiveFolders(meeting.container.storage)
    let foreign = try #require(try folders.folder("other", phone.incarnation))
    let own = try #require(try folders.folder("phone", phone.incarnation))
    #expect(own !== foreign)
    #expect(try folders.folder("phone", phone.incarnation) === own)
    for member in [phone, other] { member.leave() }
  }
}
