import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Erasures on file systems without hard links, and saves of several values.
@Suite(.blocking) struct ErasureTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot
  private let noLinks = FaultRule(
    .link, path: "1.d/kept", persistent: true, .fail(.notPermitted))

  init() throws {
    (folder, container, slot) = try Container.forTest()
    try slot.add(durability: .power)
  }

  private func names(_ path: String = "channels/n") throws -> Set<String> {
    Set(try container.root.descriptor.open(path, .readOnlyDirectory).names())
  }

  private func erase() throws {
    try slot.change("clear", erasing: true) { _ in .put(try BinaryEncoder().encode(0)) }
  }

  @Test func withoutLinksThePreviousValueIsRemoved() throws {
    try slot.add(durability: .power)
    #expect(try names() == ["kept.plist", "lock", "value.plist"])
    try FaultPoints.with([noLinks]) { try erase() }
    #expect(try names() == ["lock", "value.plist"])
    #expect(try slot.number() == 0)
    #expect(try slot.add() == 1)
  }

  /// Where there was no previous value, none can be read any more.
  @Test func withoutLinksAMissingPreviousValueIsNoFailure() throws {
    #expect(try names() == ["lock", "value.plist"])
    try FaultPoints.with([noLinks]) { for _ in 1...2 { try erase() } }
    #expect(try names() == ["lock", "value.plist"])
    #expect(try slot.number() == 0)
  }

  @Test func aPreviousValueThatStaysIsTold() throws {
    try slot.add(durability: .power)
    let failing = FaultRule(.unlink, path: "n/kept.plist", .fail(.inputOutput))
    try FaultPoints.with([noLinks, failing]) {
      let error = try failure { try erase() }
      #expect(error.code == .partlyDone)
      #expect(error.operation == "clear channel")
      #expect(
        error.reason == "the change is done, but the previous value can still be read: "
          + "\(Errno.inputOutput)")
      #expect(error.hint == "repeat the operation")
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try slot.number() == 0)
    try FaultPoints.with([noLinks]) { try erase() }
    #expect(try names() == ["lock", "value.plist"])
  }

  /// A dead holder's save has a name for the erased value.
  @Test func anErasureLeavesNothingOfADeadSave() throws {
    try container.root.descriptor.open("channels/n", .readOnlyDirectory)
      .link("value.plist", to: container.root.descriptor, "channels/n/lock/1.d/save")
    #expect(try names("channels/n/lock/1.d") == ["save"])
    try erase()
    #expect(try names("channels/n/lock/1.d") == [])
    #expect(try names() == ["kept.plist", "lock", "value.plist"])
  }

  /// The first sync then writes the journal for all values; a single value needs no such call.
  @Test(arguments: [1, 2, 3]) func valuesThatAreSavedTogetherAreWrittenFirst(_ count: Int) throws {
    let saver = ValueSaver()
    let slots = try (1...count).map { try container.slot(.channels, "saved\($0)") }
    for slot in slots {
      for _ in 1...2 { try slot.add() }
      #expect(saver.add(slot, due: .distantFuture))
    }
    let calls = FaultPoints.with { saver.finish(container) }
    let starts = calls.indices.filter { calls[$0].hasPrefix("syncRange ") }
    let syncs = calls.indices.filter { calls[$0].hasPrefix("fsync ") }
    #expect(starts.count == (count == 1 ? 0 : count), "\(calls)")
    #expect(syncs.count == count, "\(calls)")
    let first = try #require(syncs.first, "\(calls)")
    #expect(starts.allSatisfy { $0 < first }, "\(calls)")
    for number in 1...count {
      let path = "\(container.path)/channels/saved\(number)"
      let kept = try Descriptor.status(ofPath: path + "/kept.plist")
      let value = try Descriptor.status(ofPath: path + "/value.plist")
      #expect(kept.isSameFile(as: value))
    }
  }

  /// The new epoch is on disk before it is used, and so is its name.
  @Test func aRaisedEpochIsSynced() throws {
    func open(boot: String) throws -> Container {
      var options = ContainerOptions.testing()
      options.environment.bootIdentifier = { boot }
      return try Container.open(container.path, options: options)
    }
    #expect(try open(boot: "a").epoch() == 1)
    let later = try open(boot: "b")
    var epoch = 0
    let calls = try FaultPoints.with { epoch = try later.epoch() }
    #expect(epoch == 2)
    let renames = calls.indices.filter {
      calls[$0].hasPrefix("rename ") && calls[$0].hasSuffix("epoch/value.plist")
    }
    // First the epoch is undecided.
    try #require(renames.count == 2, "\(calls)")
    let isContentSynced = calls[renames[0]..<renames[1]].contains {
      $0.hasPrefix("fsync ") && $0.hasSuffix("/next")
    }
    #expect(isContentSynced, "\(calls)")
    let isNameSynced = calls[renames[1]...].contains {
      $0.hasPrefix("fsync ") && $0.hasSuffix("/epoch")
    }
    #expect(isNameSynced, "\(calls)")
  }
}
