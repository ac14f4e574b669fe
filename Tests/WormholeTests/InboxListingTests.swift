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

  /// Of each kind, several messages were read.
  @Test func messagesThatNoReceiverWantsAreShownAndNotKept() {
    let (odd, even): (MessageLabel, MessageLabel) = ("odd", "even")
    var kinds = KnownKinds()
    for (time, kind) in [(1, odd), (2, even), (3, odd), (4, even)] as [(Int64, MessageLabel)] {
      kinds.note(kind, of: name(time))
    }
    #expect(kinds.count == 4)
    let known = ([1, 2, 3, 4, 5] as [Int64]).map { kinds.kind(of: name($0)) }
    #expect(known == [odd, even, odd, even, nil])
    let skipping = kinds.skipping(but: { $0 == even }, senders: [])
    var listing = InboxListing(window: 8, skipping: skipping)
    for time in [1, 2, 3, 4, 5] as [Int64] { name(time).text.withCString { listing.add($0) } }
    let names = listing.finish()
    #expect(names == [name(2), name(4), name(5)])
    #expect(listing.shown == 5)
    kinds.forget(name(4))
    #expect(kinds.kind(of: name(4)) == nil)
    #expect(kinds.kind(of: name(2)) == even)
  }
}
