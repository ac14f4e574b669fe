import TestTraits
import Testing

@testable import Wormhole

/// The forms of names that are read, each of which has one spelling.
@Suite(.blocking) struct NameFormTests {
  private static let plain = "1,0000100001f3d77a2b4c,r01,3f9a0c11d2e84b67,phone"
  private static let keyed = "1,0000100001f3d77a2b4c,r01,3f9a0c11d2e84b67~0123456789ab,phone"

  @Test func claimsWithinTheirLimitsAreRead() throws {
    for (end, attempt, claim, isRepeated) in [
      ("~1", 1, nil, false), ("~01", 1, nil, true), ("~00", 0, nil, true), ("~2", 2, nil, true),
      ("~999", 999, nil, true), ("~1.1", 1, 1, false), ("~1.z", 1, 35, false),
      ("~1.zzzzzz", 1, ClaimedName.lastClaim, false),
    ] as [(String, Int, Int?, Bool)] {
      let claimed = try #require(ClaimedName(Self.plain + end), "\(end)")
      #expect(claimed.name.text == Self.plain)
      #expect(claimed.attempt == attempt && claimed.claim == claim, "\(end)")
      #expect(claimed.isRepeated == isRepeated, "\(end)")
    }
    let first = try #require(ClaimedName(Self.keyed + "~0.5"))
    #expect(first.attempt == 0 && first.claim == 5 && !first.isRepeated)
  }

  /// A second spelling of a claim would be a second file of one message.
  @Test func claimsOfAnotherFormAreNone() {
    for end in [
      "", "~", "~0", "~1000", "~+1", "~-1", "~02", "~001", "~1.", "~1.0", "~1.Z", "~1.01",
      "~1.-1", "~1.+1", "~1.1000000", "~1.1.1", "~1,", "~x",
    ] {
      #expect(ClaimedName(Self.plain + end) == nil, "'\(end)'")
    }
    #expect(ClaimedName(Self.keyed) == nil)
    #expect(ClaimedName(Self.keyed + "~1000.5") == nil)
  }

  /// A sender in a form that no member's name has is no member, and its receipts go nowhere.
  @Test func sendersAreMembersOrGuestsOrUnknown() throws {
    #expect(MessageName.Sender("~0123456789abcdef") == MessageName.Sender.guest("0123456789abcdef"))
    #expect(MessageName.Sender("phone") == MessageName.Sender.member("phone"))
    #expect(MessageName.Sender("%2Fa") == MessageName.Sender.member("/a"))
    for text in ["", "%2", "%2f", "%41", "a%"] {
      #expect(MessageName.Sender(text) == nil, "'\(text)'")
    }
    let foreign = try #require(MessageName("1,0000100001f3d77a2b4c,r01,x,%41"))
    #expect(foreign.sender == nil && foreign.senderName == nil)
    let guest = try #require(MessageName("1,0000100001f3d77a2b4c,r01,x,~0123456789abcdef"))
    #expect(guest.senderName == nil)
  }
}
