import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

@testable import Wormhole

/// The file with the progress of claimed batches, and the effects of other processes on the file.
@Suite(.blocking) struct ProgressTests {
  private func batch() throws -> MessageName {
    try #require(MessageName("1,0000100001f3d77a2b4c,r02,3f9a0c11d2e84b67,phone"))
  }

  @Test func whatIsStoredIsThereForTheNext() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    let name = try batch()
    _ = try #require(try BatchProgress(home, isMute: false).open(name, count: 2))
    let progress = try BatchProgress(home, isMute: false)
    #expect(progress.knows(name))
    let (again, _) = try #require(progress.open(name, count: 2))
    again.store(BatchSlots([0, 0x81]), 1...1)
    #expect(try BatchProgress(home, isMute: false).open(name, count: 2)?.slots?[1] == 0x81)
  }

  /// The next incarnation would keep the record for a batch that never comes again.
  @Test func theRecordOfASettledBatchIsFreeForTheNext() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    let name = try batch()
    let progress = try BatchProgress(home, isMute: false)
    let (record, _) = try #require(progress.open(name, count: 2))
    record.store(BatchSlots([0x81, 0x81]), 0...1)
    progress.close(record)
    let next = try BatchProgress(home, isMute: false)
    #expect(!next.knows(name))
    #expect(try #require(next.open(name, count: 2)).slots == nil)
  }

  /// One bit marks an interrupted message, and a finished one as a dead letter.
  @Test func anInterruptedMessageIsNotADeadLetterForTheNextIncarnation() {
    var slots = BatchSlots([0x40, 0x81])
    #expect(slots.isInterrupted(0))
    #expect(!slots.hasGivenUp)
    let isFirst = slots.finish(0)
    #expect(isFirst && slots.unfinished == 0)
    #expect(!slots.hasGivenUp)
    #expect(BatchSlots([0xC1, 0x81]).hasGivenUp)
  }

  /// The sender waits for the receipt of the batch, and does not know the name of a single message.
  @Test func aMessageThatLeavesItsBatchWantsNoReceipt() throws {
    let name = try batch()
    #expect(name.wantsReceipt && name.count == 2)
    #expect(!name.part(1).wantsReceipt && name.part(1).count == 1)
    #expect(name.part(1).id == name.id + ".1")
  }

  /// If the file were mapped, the next touch of it would kill the process.
  @Test func oneThatIsCutShortBringsNobodyDown() throws {
    let meeting = try Meeting()
    let home = try meeting.container.storage.member("watch")
    let progress = try BatchProgress(home, isMute: false)
    let name = try batch()
    let path = meeting.path + "/members/watch/progress"
    try Descriptor.open(path: path, [.writeOnly]).truncate(to: 0)
    let (record, _) = try #require(progress.open(name, count: 2))
    record.store(BatchSlots([0x81, 0x81]), 0...0)
    try Descriptor.open(path: path, [.writeOnly]).truncate(to: 0)
    record.store(BatchSlots([0x81, 0x81]), 1...1)
    progress.close(record)
    _ = try BatchProgress(home, isMute: false)
  }

  @Test(arguments: [Sharing.owner, .group])
  func itIsItsOwnersAlone(_ sharing: Sharing) throws {
    let meeting = try Meeting { $0.sharing = sharing }
    _ = try BatchProgress(try meeting.container.storage.member("watch"), isMute: false)
    let file = try Descriptor.open(path: meeting.path + "/members/watch/progress", [.readOnly])
    #expect(try file.status().mode == (sharing == .group ? 0o640 : 0o600))
    // No process holds a lock that would keep other processes from reading the file.
    #expect(try file.tryLock(.exclusive))
  }
}
