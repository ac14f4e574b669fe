import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Changes that are repeated because the first call could not sync them.
@Suite(.blocking) struct RepeatedChangeTests {
  private let meeting: Meeting
  private var seats: Channel<Int> { meeting.container.channel("seats") }

  init() throws { meeting = try Meeting { $0.durability = .power } }

  /// Makes a change whose directory cannot be synced, and repeats the change.
  ///
  /// - Returns: the syncs of the second call.
  private func repeated(_ directory: String, _ change: () throws -> Void) throws -> [String] {
    // The first sync is that of the file.
    let rule = FaultRule(.fsync, path: directory, number: 2, .fail(.inputOutput))
    try FaultPoints.with([rule]) {
      let error = try failure { try change() }
      #expect(error.code == .notDurable)
    }
    let calls = try FaultPoints.with { try change() }
    return calls.filter { $0.hasPrefix("fsync ") && $0.contains(directory) }
  }

  @Test func aClearThatIsFoundMadeIsSynced() throws {
    try seats.put(1)
    let syncs = try repeated("/channels/seats") { try seats.clear() }
    #expect(syncs.count == 1 && syncs[0].hasSuffix("/channels/seats"), "\(syncs)")
    #expect(try seats.metadata?.version == 2)
    // Without the request, nothing waits for the disk.
    let calls = try FaultPoints.with { try seats.clear(durability: .process) }
    #expect(!calls.contains { $0.hasPrefix("fsync ") }, "\(calls)")
  }

  @Test func anUpdateThatIsFoundMadeIsSynced() throws {
    try seats.put(1)
    let syncs = try repeated("/channels/seats") { try seats.update { $0 = 2 } }
    #expect(syncs.count == 1 && syncs[0].hasSuffix("/channels/seats"), "\(syncs)")
    #expect(try seats.metadata?.version == 2)
    // A body that keeps the value asks for nothing.
    let calls = try FaultPoints.with { try seats.updateIfNeeded { _ in .keep } }
    #expect(!calls.contains { $0.hasPrefix("fsync ") }, "\(calls)")
  }

  @Test func aChangeOfSeveralValuesThatIsFoundMadeIsSynced() throws {
    let rows: Channel<Int> = meeting.container.channel("rows")
    try meeting.container.update(rows, seats) { ($0, $1) = (1, 1) }
    let syncs = try repeated("/channels/seats") {
      try meeting.container.update(rows, seats) { ($0, $1) = (2, 2) }
    }
    #expect(syncs.count == 1 && syncs[0].hasSuffix("/channels/seats"), "\(syncs)")
    #expect(try seats.metadata?.version == 2)
    #expect(try rows.metadata?.version == 2)
  }

  @Test func aSettingThatIsFoundMadeIsSynced() throws {
    let defaults = meeting.container.defaults("till")
    try defaults.set(1, forKey: "seats")
    let syncs = try repeated("/system/") { try defaults.set(2, forKey: "seats") }
    #expect(syncs.count == 1, "\(syncs)")
    #expect(try defaults.integer(forKey: "seats") == 2)
  }

  /// Another call has put the value, and a power cut would undo that.
  @Test func aValueThatWasPutWithoutASyncIsWrittenAgain() throws {
    func isFileSynced(_ change: () throws -> Void) throws -> Bool {
      try FaultPoints.with { try change() }
        .contains { $0.hasPrefix("fsync ") && $0.hasSuffix("/next") }
    }
    try seats.put(0)
    let wasSynced = try isFileSynced { try seats.put(1, durability: .process) }
    #expect(try isFileSynced { try seats.update { $0 = 1 } } != wasSynced)
    #expect(try !isFileSynced { try seats.update { $0 = 1 } }, "once")
    let wasClearSynced = try isFileSynced { try seats.clear(durability: .process) }
    #expect(try isFileSynced { try seats.clear() } != wasClearSynced)
    #expect(try !isFileSynced { try seats.clear() }, "once")
    let rows: Channel<Int> = meeting.container.channel("rows")
    try rows.put(0)
    let wasRowSynced = try isFileSynced { try rows.put(1, durability: .process) }
    func updateBoth() throws { try meeting.container.update(rows, seats) { ($0, $1) = (1, nil) } }
    #expect(try isFileSynced(updateBoth) != wasRowSynced)
    #expect(try !isFileSynced(updateBoth), "once")
  }

  /// There, no call can make a name durable, and no repetition changes that.
  @Test func whereNoDirectoryCanBeSyncedTheRepetitionSucceeds() throws {
    try seats.put(1)
    let rule = FaultRule(
      .fsync, path: "/channels/seats", number: 2, persistent: true, .fail(.invalidArgument))
    try FaultPoints.with([rule]) {
      let error = try failure { try seats.update { $0 = 2 } }
      #expect(error.code == .notDurable)
      try seats.update { $0 = 2 }
    }
    #expect(try seats.metadata?.version == 2)
  }
}
