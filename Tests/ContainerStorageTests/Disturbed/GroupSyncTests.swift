import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// Changes of several values that fail in part: what was changed is synced all the same.
@Suite(.blocking) struct GroupSyncTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let left: Slot
  private let right: Slot

  init() throws {
    (folder, container) = try Container.forTest()
    left = try container.slot(.channels, "left")
    right = try container.slot(.channels, "right")
    for slot in [left, right] { try slot.add(durability: .power) }
  }

  private func hasSynced(_ name: String, _ calls: [String]) -> Bool {
    calls.contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/channels/\(name)") }
  }

  /// The error says that the first value has changed: a power cut must not undo that.
  @Test func theDonePartOfADurableChangeIsSynced() throws {
    let rule = FaultRule(.rename, path: "right/value.plist", .fail(.inputOutput))
    let calls = try FaultPoints.with([rule]) {
      let error = try failure { try container.move([left, right], durability: .power) }
      #expect(error.code == .partlyDone)
    }
    #expect(try left.number() == 0)
    #expect(try right.number() == 1)
    #expect(hasSynced("left", calls), "\(calls)")
  }

  /// The error of the first directory concerns the first value only.
  @Test func aDirectoryThatCannotBeSyncedKeepsNoOtherFromBeingSynced() throws {
    // The first sync is that of the new file.
    let rule = FaultRule(.fsync, path: "/channels/left", number: 2, .fail(.inputOutput))
    let calls = try FaultPoints.with([rule]) {
      let error = try failure { try container.move([left, right], durability: .power) }
      #expect(error.code == .notDurable)
      #expect(error.subject == "left")
      #expect(error.errno == Errno.inputOutput.rawValue)
    }
    #expect(try left.number() == 0)
    #expect(try right.number() == 2)
    #expect(hasSynced("right", calls), "\(calls)")
  }

  /// The first error is the more important one, and must not hide the second one.
  @Test func aDonePartThatCannotBeSyncedIsStatedBesideTheFailure() throws {
    let rules = [
      FaultRule(.rename, path: "right/value.plist", .fail(.inputOutput)),
      FaultRule(.fsync, path: "/channels/left", number: 2, .fail(.inputOutput)),
    ]
    try FaultPoints.with(rules) {
      let error = try failure { try container.move([left, right], durability: .power) }
      #expect(error.code == .partlyDone)
      #expect(error.reason.hasPrefix("only 'left' changed: "), "\(error)")
      #expect(error.reason.contains("could not be synced"), "\(error)")
    }
  }

  /// A value that is too large for its file is found before the first commit.
  @Test func oneValueThatIsTooLargeKeepsAllAsTheyWere() throws {
    var options = ContainerOptions.testing()
    options.largestFile = 1000
    let small = try Container.open(container.path, options: options)
    let slots = try ["left", "right"].map { try small.slot(.channels, $0) }
    let bytes = try BinaryEncoder().encode(String(repeating: "x", count: 2000))
    let error = try failure {
      try small.change(slots, "move") { _ in [.put(try BinaryEncoder().encode(5)), .put(bytes)] }
    }
    #expect(error.code == .tooLarge)
    #expect(error.subject == "right")
    #expect(error.reason == "the value takes \(bytes.count) bytes, and the limit is 1000")
    #expect(try left.number() == 1)
    #expect(try right.number() == 1)
    // The locks are free.
    #expect(try [left.add(), right.add()] == [2, 2])
  }

  /// The body learns the size of a value that it cannot have, as in a change of one value.
  @Test func aValueThatIsTooLargeToReadIsReplaced() throws {
    let large = try BinaryEncoder().encode(String(repeating: "x", count: 2000))
    try right.change("put") { _ in .put(large) }
    var options = ContainerOptions.testing()
    options.largestFile = 1000
    let small = try Container.open(container.path, options: options)
    let slots = try ["left", "right"].map { try small.slot(.channels, $0) }
    #expect(try failure { _ = try slots[1].read() }.code == .tooLarge)
    try small.change(slots, "move") { contents in
      guard case .tooLarge = contents[1] else { throw Missing() }
      return try [.none, .put(BinaryEncoder().encode(5))]
    }
    #expect(try left.number() == 1)
    #expect(try right.number() == 5)
    #expect(try slots[1].number() == 5)
  }
}
