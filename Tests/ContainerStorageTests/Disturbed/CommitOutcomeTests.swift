import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Commits whose renames and links fail, with the value and the previous value afterwards.
@Suite(.blocking) struct CommitOutcomeTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws {
    (folder, container, slot) = try Container.forTest()
    // Synced: the next change makes it the previous value.
    try slot.add(durability: .power)
  }

  private func directory() throws -> Descriptor {
    try Descriptor.open(path: container.path + "/channels/n", .readOnlyDirectory)
  }

  private func kept() throws -> Int {
    let bytes = try directory().open("kept.plist", .readOnlyNonBlocking).contents()
    return try BinaryDecoder().decode(Int.self, from: bytes)
  }

  /// The names in the directory of the lock's holder.
  private func staged() throws -> [String] {
    try directory().open("lock/1.d", .readOnlyDirectory).names()
  }

  @Test func aNameThatADeadHolderLeftDoesNotBecomeThePreviousValue() throws {
    let left = try directory().open("lock/1.d", .readOnlyDirectory)
    try left.open("kept", .writeOnlyNew, mode: 0o600).write("left")
    #expect(try slot.add() == 2)
    #expect(try slot.number() == 2)
    #expect(try kept() == 1)
    #expect(try staged() == [])
  }

  /// Without links no previous value can be retained before the exchange.
  @Test(arguments: [Errno.notPermitted, .notSupported, .notImplemented])
  func withoutLinksTheNewValueIsSyncedFirst(_ error: Errno) throws {
    let rule = FaultRule(.link, path: "1.d/kept", .fail(error))
    let calls = try FaultPoints.with([rule]) { try slot.add() }
    let sync = try #require(
      calls.firstIndex { $0.hasPrefix("fsync") && $0.hasSuffix("1.d/next") }, "\(calls)")
    let rename = try #require(
      calls.firstIndex { $0.hasPrefix("rename") && $0.hasSuffix("/value.plist") }, "\(calls)")
    #expect(sync < rename, "\(calls)")
    #expect(try slot.number() == 2)
    #expect(try kept() == 1)
    #expect(try staged() == [])
  }

  /// Another tool removes the value during the update.
  @Test func whereTheValueWasRemovedMeanwhileTheNewOneMovesIn() throws {
    var runs = 0
    let sum = try slot.add(durability: .power) {
      runs += 1
      try directory().unlink("value.plist")
    }
    #expect(sum == 2)
    #expect(runs == 1)
    #expect(container.counters.reruns == 0)
    #expect(try slot.number() == 2)
    #expect(try staged() == [])
  }

  /// Another tool removes the value and puts one back: the update runs again on the value there.
  @Test func whereAValueHasComeBackMeanwhileTheUpdateRunsAgain() throws {
    let rule = FaultRule(.rename, path: "n/value.plist", .fail(.noSuchFile))
    var runs = 0
    try FaultPoints.with([rule]) {
      try slot.add(durability: .power) { runs += 1 }
    }
    #expect(runs == 2)
    #expect(container.counters.reruns == 1)
    #expect(try slot.number() == 2)
    #expect(try kept() == 1)
    #expect(try staged() == [])
  }

  @Test func aValueThatCannotMoveInIsAnErrorAndChangesNothing() throws {
    let rules = [(1, Errno.noSuchFile), (2, Errno.noSpace)].map {
      FaultRule(.rename, path: "n/value.plist", number: $0, .fail($1))
    }
    try FaultPoints.with(rules) {
      let error = try failure { try slot.add(durability: .power) }
      #expect(error.code == .full)
      #expect(error.errno == Errno.noSpace.rawValue)
    }
    #expect(try staged() == [])
    #expect(container.counters.reruns == 0)
    #expect(try slot.number() == 1)
    #expect(try slot.add(durability: .power) == 2)
    #expect(try staged() == [])
  }

  /// The new value has the name by then; the next change removes the old file.
  @Test func anOldValueThatCannotBeRemovedIsNoFailure() throws {
    var sum = 0
    try FaultPoints.with([FaultRule(.unlink, path: "1.d/next", .fail(.inputOutput))]) {
      sum = try slot.add()
    }
    #expect(sum == 2)
    #expect(try slot.number() == 2)
    #expect(try kept() == 1)
    #expect(try staged() == ["next"])
    #expect(try slot.add() == 3)
    #expect(try slot.number() == 3)
    #expect(try kept() == 1)
    #expect(try staged() == [])
  }
}
