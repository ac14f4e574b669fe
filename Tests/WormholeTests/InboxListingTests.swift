import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// The first names of an inbox, however many it has.
@Suite(.blocking) struct InboxListingTests {
  private func name(_ time: Int64, from sender: String = "p") -> MessageName {
    MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: time), wantsReceipt: false, count: 1,
      id: "i", from: sender)
  }

  @Test func ofMoreNamesThanTheLimitTheEarliestAreKept() {
    var listing = InboxListing(window: 2)
    for time in [5, 1, 4, 2, 3] as [Int64] { name(time).text.withCString { listing.add($0) } }
    let names = listing.finish()
    #expect(names == [name(1), name(2)])
    #expect(listing.end == name(2))
    #expect(listing.shown == 5)
  }

  /// With as many names as the limit, every name is known.
  @Test func asManyNamesAsTheLimitHaveNoEnd() {
    var listing = InboxListing(window: 3)
    for time in [3, 1, 2] as [Int64] { name(time).text.withCString { listing.add($0) } }
    let names = listing.finish()
    #expect(names == [name(1), name(2), name(3)])
    #expect(listing.end == nil)
    #expect(listing.shown == 3)
  }

  @Test func theMessagesOfSendersWithTooManyAreShownAndNotKept() {
    var listing = InboxListing(window: 3, skipping: InboxListing.Exclusions(senders: ["q"]))
    for (time, sender) in [(1, "q"), (2, "p"), (3, "q")] as [(Int64, String)] {
      name(time, from: sender).text.withCString { listing.add($0) }
    }
    "foreign".withCString { listing.add($0) }
    let names = listing.finish()
    #expect(names == [name(2)])
    #expect(listing.shown == 3)
  }
}
