import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// The names of messages: their order among other names, their IDs, and their senders.
@Suite(.blocking) struct NameOrderTests {
  private func name(_ number: Int64, id: String = "one", from: String = "phone") -> MessageName {
    MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: number), wantsReceipt: false, count: 1,
      id: id, from: from)
  }

  @Test func aNamePrecedesTheNamesBehindItAndNotItself() {
    let one = name(1)
    #expect(one.precedes(name(2).text))
    #expect(!name(2).precedes(one.text))
    #expect(!one.precedes(one.text))
    #expect(one.precedes(one.text + "~1"))
    #expect(!one.precedes(String(one.text.dropLast())))
    #expect(!one.precedes(""))
    // The bytes of other scripts are above those of ASCII.
    #expect(one.precedes("\u{e9}"))
  }

  /// The clock begins anew with each start of the machine, and so with each epoch.
  @Test func theEpochDecidesBeforeTheTime() {
    let stamps = [(1, 5), (1, 9), (2, 1), (2, 5), (3, 0)].map { epoch, time in
      MessageStamp(epoch: epoch, nanoseconds: Int64(time))
    }
    for (place, stamp) in stamps.enumerated() {
      for (otherPlace, other) in stamps.enumerated() {
        #expect((stamp < other) == (place < otherPlace), "\(stamp), \(other)")
        let (name, otherName) = (name(1).stamped(stamp), name(1).stamped(other))
        #expect((name < otherName) == (place < otherPlace), "\(name), \(otherName)")
      }
    }
  }

  /// A generated ID has 16 hexadecimal digits, with or without an ordering key behind it.
  @Test func onlyAnIdentifierThatTheLibraryMayHaveGeneratedNeedsNoSecondName() {
    #expect(!name(1, id: "0123456789abcdef").mayBeChosen)
    for id in ["0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "0123456789ABCDEF"] {
      #expect(name(1, id: id).mayBeChosen, "\(id)")
    }
    for id in ["0123456789abcdef", "0123456789abcde"] {
      let keyed = MessageName(
        isUrgent: false, MessageStamp(epoch: 1, nanoseconds: 1), wantsReceipt: false, count: 1,
        id: id, key: OrderingKey(of: "key"), from: "phone")
      #expect(keyed.mayBeChosen == (id.utf8.count != 16), "\(id)")
    }
  }

  @Test func aSenderIsHeldBackFromTheLimitUntilHalfOfItsFilesAreLeft() {
    var waiting = WaitingSenders(limit: 4)
    for number in 1...3 { waiting.add(name(Int64(number))) }
    #expect(!waiting.isHeldBack(name(9)))
    waiting.add(name(4))
    #expect(waiting.isHeldBack(name(9)))
    #expect(!waiting.isHeldBack(name(9, from: "office")))
    waiting.add(name(5, from: "office"))
    var isReleased = waiting.remove(name(1))
    #expect(!isReleased && waiting.isHeldBack(name(9)))
    isReleased = waiting.remove(name(2))
    #expect(isReleased && !waiting.isHeldBack(name(9)))
    // The sender is not released twice.
    isReleased = waiting.remove(name(3))
    #expect(!isReleased)
  }
}
