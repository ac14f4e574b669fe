import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Several slots changed in one call.
@Suite(.blocking) struct GroupChangeTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let left: Slot
  private let right: Slot

  init() throws {
    (folder, container) = try Container.forTest()
    left = try container.slot(.channels, "left")
    right = try container.slot(.channels, "right")
  }

  @Test func bothChangeInTheOrderGiven() throws {
    try container.move([right, left])
    #expect(try right.number() == -1)
    #expect(try left.number() == 1)
  }

  @Test func whatThrowsChangesNeither() throws {
    struct Mine: Error {}
    try left.add(3)
    #expect(throws: Mine.self) {
      try container.change([left, right], "move") { _ in throw Mine() }
    }
    #expect(try left.number() == 3)
    #expect(try right.number() == 0)
    #expect(try left.add() == 4)
  }

  @Test func oneSlotTwiceIsAnError() throws {
    let error = #expect(throws: WormholeError.self) {
      try container.change([left, left], "move") { _ in [.none, .none] }
    }
    #expect(error?.code == .nested)
  }

  /// In opposite orders, by threads of two open containers: the sum stays, and none waits for ever.
  @Test func callsInOppositeOrdersDoNotWaitForEachOther() throws {
    let path = container.path
    let takeovers = Monitor(0)
    try together(4) { number in
      // If two calls waited for each other, neither would be overtaken in time.
      let own = try Container.open(path, options: .testing(lease: .seconds(60)))
      let slots = try [own.slot(.channels, "left"), own.slot(.channels, "right")]
      for _ in 0..<50 { try own.move(number % 2 == 0 ? slots : slots.reversed()) }
      takeovers.withLock { $0 += own.counters.takeovers }
    }
    #expect(try left.number() == 0)
    #expect(try right.number() == 0)
    #expect(takeovers.withLock { $0 } == 0)
  }

  @Test func aStoppedHolderOfOneIsPassedBy() throws {
    let stopped = try Running(
      .stopInside(container.path, "right"))
    try stopped.waitUntilStopped()
    try container.move([left, right])
    #expect(try left.number() == -1)
    #expect(try right.number() == 1)
    #expect(try stopped.waitOrGo() == "done\n")
    #expect(try right.number() == 2)
  }

  // MARK: Between two commits

  /// A process that is suspended between two commits reports `.partlyDone` when it resumes.
  ///
  /// In the meantime another process takes over the lock of the second slot. The suspended process
  /// neither repeats its change nor overwrites the other process's value.
  @Test func aTakeoverBetweenTwoCommitsIsReportedAsPartlyDone() throws {
    for slot in [left, right] { try slot.add() }
    let stopped = try Running(
      .move(container.path, from: "left", to: "right"),
      environment: ["WORMHOLE_FAULTS=rename~right/value.plist:before:stop"])
    try stopped.waitUntilStopped()
    #expect(try left.number() == 0, "the first is changed")
    try right.add(10)
    #expect(container.counters.takeovers == 1)
    #expect(try stopped.waitOrGo() == "partlyDone\n")
    #expect(try left.number() == 0)
    #expect(try right.number() == 11)
  }

  /// A process checks all its locks before the first commit, and computes again after a takeover.
  @Test func aTakeoverOfTheSecondLockBeforeTheFirstCommitRunsAgain() throws {
    for slot in [left, right] { try slot.add() }
    let stopped = try Running(
      .move(container.path, from: "left", to: "right"),
      environment: ["WORMHOLE_FAULTS=open~right/value.plist:after:stop"])
    try stopped.waitUntilStopped()
    try right.add(10)
    #expect(container.counters.takeovers == 1)
    #expect(try stopped.waitOrGo() == "done\n")
    #expect(try left.number() == 0)
    #expect(try right.number() == 12)
  }

  /// A process that is suspended before the first commit repeats the whole change.
  @Test func aTakeoverBeforeTheFirstCommitRunsAgain() throws {
    let stopped = try Running(
      .move(container.path, from: "left", to: "right"),
      environment: ["WORMHOLE_FAULTS=rename~left/value.plist:before:stop"])
    try stopped.waitUntilStopped()
    try left.add(10)
    #expect(try stopped.waitOrGo() == "done\n")
    #expect(try left.number() == 9)
    #expect(try right.number() == 1)
  }

  @Test(arguments: [("left", WormholeError.Code.system), ("right", .partlyDone)])
  func aFailureReportsWhetherTheChangeIsPartlyDone(_ place: String, _ code: WormholeError.Code)
    throws
  {
    for slot in [left, right] { try slot.add() }
    let rule = FaultRule(.rename, path: "\(place)/value.plist", .fail(.inputOutput))
    let error = try #require(
      throws: WormholeError.self,
      performing: { try FaultPoints.with([rule]) { try container.move([left, right]) } })
    #expect(error.code == code)
    #expect(error.reason.contains("only 'left' changed") == (place == "right"))
    #expect(try left.number() == (place == "right" ? 0 : 1))
    #expect(try right.number() == 1)
    #expect(try [left.add(), right.add()] == [place == "right" ? 1 : 2, 2], "the locks are free")
  }

  /// The error names the changed slot, not an unchanged slot before it.
  @Test func anUnchangedSlotIsNotNamedAsChanged() throws {
    let slots = try ["first", "second", "third"].map { try container.slot(.channels, $0) }
    let rule = FaultRule(.rename, path: "third/value.plist", .fail(.inputOutput))
    let error = try #require(
      throws: WormholeError.self,
      performing: {
        try FaultPoints.with([rule]) {
          try container.change(slots, "move") { _ in
            let one = SlotChange.put(try BinaryEncoder().encode(1))
            return [.none, one, one]
          }
        }
      })
    #expect(error.code == .partlyDone)
    #expect(error.reason.hasPrefix("only 'second' changed: "), "\(error.reason)")
    #expect(try slots.map { try $0.number() } == [0, 1, 0])
  }

  /// With `.power`, or where the value before was not saved, each changed slot is synced, in order,
  /// after the last commit.
  @Test(arguments: [Durability.power, .process])
  func allChangedSlotsAreSynced(_ durability: Durability) throws {
    for slot in [left, right] { for _ in 1...2 { try slot.add() } }
    for name in ["left", "right"] {
      let path = container.path + "/channels/\(name)/kept.plist"
      #expect(try run("touch", ["-d", "1 hour ago", path]).status == .exited(0))
    }
    let other = try Container.open(container.path, options: .testing())
    let slots = try ["left", "right"].map { try other.slot(.channels, $0) }
    let calls = try FaultPoints.with { try other.move(slots, durability: durability) }
    let syncs = calls.filter { $0.wholeMatch(of: /fsync .*\/(left|right)/) != nil }
    #expect(syncs.map { $0.split(separator: "/").last } == ["left", "right"])
    let last = try #require(calls.lastIndex { $0.hasPrefix("rename ") })
    #expect(last < (try #require(calls.firstIndex { $0 == syncs.first })))
  }
}
