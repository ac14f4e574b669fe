import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

@testable import Wormhole

/// Batches: the records of more than one page, and values that cannot be read.
@Suite(.blocking) struct BatchRecordTests {
  private let names = (0..<BatchProgress.recordsInPage + 2).map { number in
    MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Int64(number + 1)),
      wantsReceipt: false, count: 2, id: "batch", from: "phone")
  }

  private func path(_ meeting: Meeting) -> String { meeting.path + "/members/watch/progress" }

  /// Fills one page and begins the next; each record has a mark of its own.
  private func fill(_ home: MemberDirectory) throws {
    let progress = try BatchProgress(home, isMute: false)
    for (number, name) in names.enumerated() {
      let (record, _) = try #require(progress.open(name, count: 2), "\(number)")
      record.store(BatchSlots([0x81, UInt8(1 + number % 60)]), 0...1)
    }
  }

  @Test func recordsBehindTheFirstPageAreThereForTheNext() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    try fill(home)
    #expect(
      try meeting.bytes(of: "members/watch/progress").count == 2 * BatchProgress.pageSize)
    let next = try BatchProgress(home, isMute: false)
    var found: [[UInt8]] = []
    for name in names {
      let slots = try #require(next.open(name, count: 2)?.slots)
      #expect(slots.count == 2)
      found.append([slots[0], slots[1]])
    }
    #expect(found == names.indices.map { [0x81, UInt8(1 + $0 % 60)] })
  }

  /// A record of the second page is kept, and all others are erased, in both pages.
  @Test func recordsOfAllPagesAreForgottenUnlessTheyAreClaimed() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    try fill(home)
    let kept = names[BatchProgress.recordsInPage]
    try BatchProgress(home, isMute: false).forgetInherited(but: [kept])
    let next = try BatchProgress(home, isMute: false)
    #expect(names.filter { next.knows($0) } == [kept])
    #expect(next.open(kept, count: 2)?.slots?[1] == UInt8(1 + BatchProgress.recordsInPage % 60))
  }

  /// A power cut may leave a part of the last page.
  @Test func aPartOfAPageIsRead() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    try fill(home)
    let size = BatchProgress.pageSize + BatchProgress.recordSize
    try Descriptor.open(path: path(meeting), [.writeOnly]).truncate(to: size)
    let next = try BatchProgress(home, isMute: false)
    #expect(names.filter { next.knows($0) } == Array(names.dropLast()))
  }

  /// Each value of a batch is decoded by itself.
  @Test func aValueOfAnotherTypeSpoilsNoOtherValue() throws {
    let pair = try Pair { $0.mailbox.attempts = 1 }
    let values: [PropertyListValue] = [.integer(1), .string("two"), .integer(3)]
    let sent = try pair.phone.send(contentsOf: values, .quick())[0]
    let heard = Heard<String>()
    let receiving = try pair.watch.receive { message in
      do throws(WormholeError) {
        let number = try message.value(as: Int.self)
        heard.add("\(number)")
      } catch {
        heard.add("\(error.code)")
        throw error
      }
    }
    let end = try sent.waitForEnd()
    receiving.stop()
    #expect(end == .deadLettered(reason: "some messages of the batch are dead letters"))
    #expect(heard.all == ["1", "typeMismatch", "3"])
    #expect(try pair.phone.deadLetters.map(\.id) == [sent.id + ".1"])
  }
}
