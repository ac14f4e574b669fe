import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Removals that a failed call, a foreign file or a bound keeps from their end.
@Suite(.blocking) struct UnfinishedRemovalTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  private func names(_ path: String) throws -> [String] {
    try Descriptor.open(path: "\(container.path)/\(path)", .readOnlyDirectory).names()
  }

  // MARK: Slots

  /// Returns a slot after a damaged value was replaced: two files are in `damaged`.
  private func damagedSlot() throws -> Slot {
    let slot = try container.slot(.channels, "n")
    for _ in 0..<3 { try slot.add() }
    let path = container.path + "/channels/n/value.plist"
    try Descriptor.open(path: path, [.writeOnly, .truncate]).write([1, 2, 3])
    try slot.add()
    #expect(try names("damaged").count == 2)
    return slot
  }

  private func remove(_ name: String) throws -> Bool {
    try container.slot(.channels, name).remove("remove channel", durability: .power) { _ in
      (try BinaryEncoder().encode(0), 1)
    }
  }

  @Test func aRemovalWhoseDirectoryCannotBeSyncedIsNotDurable() throws {
    for name in ["a", "b"] { try container.slot(.channels, name).add(durability: .power) }
    var isRemoved = false
    let calls = try FaultPoints.with { isRemoved = try remove("a") }
    #expect(isRemoved)
    let syncs = calls.filter { $0.hasPrefix("fsync ") && $0.contains("/channels") }
    #expect(syncs.last?.hasSuffix("/channels") == true, "\(syncs)")
    let rule = FaultRule(.fsync, path: "/channels", number: syncs.count, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { _ = try remove("b") }
      #expect(error.code == .notDurable)
      #expect(
        error.reason == "the removal is done, but the directory could not be synced: "
          + "\(Errno.inputOutput)")
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try names("channels") == [])
  }

  /// The slot itself is gone after the first call.
  @Test func aRepeatedRemovalEndsAnEarlierOne() throws {
    _ = try damagedSlot()
    try FaultPoints.with([FaultRule(.unlink, path: "/damaged/", .fail(.inputOutput))]) {
      let error = try failure { _ = try remove("n") }
      #expect(error.code == .partlyDone)
    }
    #expect(try names("channels") == [])
    #expect(try names("damaged").count == 2)
    var isRemoved = true
    let calls = try FaultPoints.with { isRemoved = try remove("n") }
    #expect(!isRemoved)
    #expect(try names("damaged") == [])
    let syncs = calls.filter { $0.hasPrefix("fsync ") }
    #expect(syncs.count == 2, "\(calls)")
    #expect(syncs.first?.hasSuffix("/damaged") == true, "\(calls)")
    #expect(syncs.last?.hasSuffix("/channels") == true, "\(calls)")
  }

  /// The record may have been written by a removal that could not sync the name.
  @Test func aRecordOfARemovalThatIsFoundIsSynced() throws {
    try container.noteRemoved(version: 5)
    let rule = FaultRule(.fsync, path: "/system/removed", number: 2, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { try container.noteRemoved(version: 6) }
      #expect(error.code == .notDurable)
    }
    #expect(container.removedVersion() == 6)
    let calls = try FaultPoints.with { try container.noteRemoved(version: 6) }
    let isSynced = calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/system/removed") }
    #expect(isSynced, "\(calls)")
  }

  /// The value is neither lost nor taken away half.
  @Test func aRemovalThatIsOvertakenAgainAndAgainGivesUp() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add(durability: .power)
    let rule = FaultRule(
      .rename, path: "n/value.plist", persistent: true, .fail(.noSuchFile))
    try FaultPoints.with([rule]) {
      let error = try failure { _ = try remove("n") }
      #expect(error.code == .superseded)
      #expect(error.reason == "another process took over the lock during the removal")
      #expect(error.hint == "end the programs that change the value, and try again")
    }
    #expect(try slot.number() == 1)
    #expect(try remove("n"))
    #expect(try names("channels") == [])
  }

  @Test func aDamagedCopyThatStaysIsTold() throws {
    let slot = try damagedSlot()
    try FaultPoints.with([FaultRule(.unlink, path: "/damaged/", .fail(.inputOutput))]) {
      let error = try failure { try slot.discardDamaged() }
      #expect(error.code == .partlyDone)
      #expect(
        error.reason == "the erasure is done, but a damaged copy can still be read: "
          + "\(Errno.inputOutput)")
      #expect(error.hint == "remove the copy from damaged/")
    }
    #expect(try names("damaged").count == 2)
    try slot.discardDamaged()
    #expect(try names("damaged") == [])
  }

  /// A power cut must not bring the copy back; a repeated call finds no copy, and syncs.
  @Test func damagedCopiesAreRemovedDurably() throws {
    let slot = try damagedSlot()
    try FaultPoints.with([FaultRule(.fsync, path: "/damaged", .fail(.inputOutput))]) {
      let error = try failure { try slot.discardDamaged(durability: .power) }
      #expect(error.code == .notDurable)
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try names("damaged") == [])
    func syncs(_ durability: Durability) throws -> [String] {
      try FaultPoints.with { try slot.discardDamaged(durability: durability) }
        .filter { $0.hasPrefix("fsync ") }
    }
    let durable = try syncs(.power)
    #expect(durable.count == 1 && durable[0].hasSuffix("/damaged"), "\(durable)")
    #expect(try syncs(.process) == [])
    // A file system that syncs no directory.
    try FaultPoints.with([FaultRule(.fsync, path: "/damaged", .fail(.invalidArgument))]) {
      try slot.discardDamaged(durability: .power)
    }
  }

  // MARK: Members

  @Test func aMemberWithAForeignFileIsNotRemoved() throws {
    let home = try container.member("a").home
    _ = try home.descriptor.open("notes.txt", .writeOnlyNew, mode: 0o600)
    let before = try Set(home.descriptor.names())
    let error = try failure { _ = try container.removeMember("a") }
    #expect(error.code == .refused)
    #expect(error.reason == "its directory contains a foreign file, 'notes.txt'")
    #expect(error.hint == "move the file out of the directory, and try again")
    #expect(try Set(home.descriptor.names()) == before.union(["presence"]))
    try home.descriptor.unlink("notes.txt")
    #expect(try container.removeMember("a"))
    #expect(try !container.removeMember("a"))
  }

  @Test func aMemberWhosePresenceCannotBeRemovedIsRemovedLater() throws {
    _ = try container.member("a")
    try FaultPoints.with([FaultRule(.unlink, path: "a/presence", .fail(.inputOutput))]) {
      let error = try failure { _ = try container.removeMember("a") }
      #expect(error.code == .system)
      #expect(error.operation == "remove member")
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try names("members") == ["a"])
    #expect(try container.removeMember("a"))
    #expect(try names("members") == [])
  }

  /// The removal ends at the first part that stays: the member keeps all later parts and its files.
  @Test func aMemberWithAPartThatCannotBeRemovedIsRemovedLater() throws {
    _ = try container.member("a")
    try FaultPoints.with([FaultRule(.rmdir, path: "a/inbox", .fail(.inputOutput))]) {
      let error = try failure { _ = try container.removeMember("a") }
      #expect(error.code == .system)
      #expect(error.operation == "remove member")
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    let rest: Set = ["inbox", "claimed", "dead", "receipts", "context", "live", "presence"]
    #expect(try rest.isSubset(of: names("members/a")))
    #expect(try container.removeMember("a"))
    #expect(try names("members") == [])
  }

  // MARK: Trees

  /// Each file counts, the directory, and each time that the directory is listed again.
  @Test func aDirectoryWithMoreNamesThanABatchIsRemovedWithinTheBound() throws {
    for (most, isRemoved) in [(602, false), (603, true)] {
      try folder.descriptor.makeDirectory("tree", mode: 0o700)
      let tree = try folder.descriptor.open("tree", .readOnlyDirectory)
      for number in 1...600 { _ = try tree.open("\(number)", .writeOnlyNew, mode: 0o600) }
      var removal = TreeRemoval(most: most, owner: nil)
      let name = Array("tree".utf8CString)
      let isWhole = try removal.remove(name, in: folder.descriptor)
      #expect(isWhole == isRemoved)
      if isRemoved {
        #expect(try folder.descriptor.names() == ["c"])
      } else {
        #expect(try tree.names().count == 1)
        var rest = TreeRemoval(most: 2, owner: nil)
        let isRestRemoved = try rest.remove(name, in: folder.descriptor)
        #expect(isRestRemoved)
      }
    }
  }

  /// A file may be immutable, or may belong to another user and be in a directory like `/tmp`.
  @Test func aFileThatMayNotBeRemovedIsNotTakenForADirectory() throws {
    try folder.descriptor.makeDirectory("tree", mode: 0o700)
    let tree = try folder.descriptor.open("tree", .readOnlyDirectory)
    _ = try tree.open("file", .writeOnlyNew, mode: 0o600)
    let rule = FaultRule(.unlink, path: "tree/file", persistent: true, .fail(.notPermitted))
    FaultPoints.with([rule]) {
      var removal = TreeRemoval(most: 10, owner: nil)
      let name = Array("tree".utf8CString)
      let failure = Errno.of { () throws(Errno) in
        _ = try removal.remove(name, in: folder.descriptor)
      }
      #expect(failure == .notPermitted)
      #expect(throws: Errno.notPermitted) { try removeTree("tree", in: folder.descriptor) }
    }
    try removeTree("tree", in: folder.descriptor)
    #expect(try folder.descriptor.names() == ["c"])
  }

  /// The file is removed where it is; only if that fails too, the full disk is the error.
  @Test func onAFullDiskAFileIsRemovedWhereItIs() throws {
    let name = AccessName(stamp: 1, process: "0123456789abcdef", number: 1)
    let maker = HiddenDirectory.Maker(
      container: "c", identity: "fedcba9876543210", owner: Processes.effectiveUser)
    let target = AccessPath(folder.path + "/target")
    let path = HiddenFile.path(beside: target, name, 0)
    _ = try HiddenFile(beside: target, at: path, by: maker)
    let made = "\(path)/\(maker.identity)"
    _ = try Descriptor.open(path: made, .readOnlyDirectory)
      .open("part", .writeOnlyNew, mode: 0o600)
    let full = FaultRule(
      .rename, path: "/\(maker.identity).", persistent: true, .fail(.noSpace))
    let refused = FaultRule(.unlink, path: "/\(maker.identity)/part", .fail(.inputOutput))
    let hidden = try #require(try HiddenDirectory.open(path, by: maker))
    var trouble: HiddenDirectory.Trouble?
    FaultPoints.with([full, refused]) {
      trouble = #expect(throws: HiddenDirectory.Trouble.self) { try hidden.fence { false } }
    }
    guard case .system(Errno.noSpace)? = trouble else {
      Issue.record("\(String(describing: trouble))")
      return
    }
    #expect(try Descriptor.open(path: made, .readOnlyDirectory).names() == ["part"])
    try FaultPoints.with([full]) { try hidden.fence { false } }
    #expect(throws: Errno.noSuchFile) { _ = try Descriptor.status(ofPath: made) }
    var removal = TreeRemoval(most: 1, owner: nil)
    let isRemoved = try hidden.remove(&removal) { false }
    #expect(isRemoved)
    #expect(try folder.descriptor.names() == ["c"])
  }
}
