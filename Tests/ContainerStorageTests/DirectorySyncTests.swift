import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// P7: processes that commit at the same time share the syncs of their directory.
@Suite(.blocking) struct DirectorySyncTests {
  private let folder: TemporaryDirectory
  private let slot: Slot

  init() throws {
    folder = try TemporaryDirectory()
    slot = try Container.open(folder.path + "/c", options: .testing()).slot(.channels, "n")
    // From now on an update makes two syncs: the file's and the directory's.
    try slot.add(durability: .power)
    try slot.add(durability: .power)
  }

  /// The second sync of an update.
  private static func ofDirectory(_ action: FaultRule.Action) -> FaultRule {
    FaultRule(.fsync, number: 2, action)
  }

  /// One update whose directory sync takes long, and three updates that commit in the meantime.
  ///
  /// - Returns: how often the three updates synced the directory, and how they ended.
  private func crowd(
    _ others: [FaultRule], _ milliseconds: Int
  ) throws -> (first: WormholeError?, syncs: Int, others: [WormholeError?]) {
    let ended = Monitor((first: WormholeError?.none, syncs: 0, others: [WormholeError?]()))
    let slot = slot
    let before = try slot.number()
    try together(4) { index in
      if index == 0 {
        var error: WormholeError?
        try FaultPoints.with([Self.ofDirectory(.delay(milliseconds: milliseconds))]) {
          error = try Self.failure { try slot.add(durability: .power) }
        }
        ended.withLock { [error] in $0.first = error }
        return
      }
      try eventually("the first has committed") { try slot.number() > before }
      var error: WormholeError?
      let calls = try FaultPoints.with(others) {
        error = try Self.failure { try slot.add(durability: .power) }
      }
      let syncs = calls.count { $0.hasPrefix("fsync ") && $0.hasSuffix("/channels/n") }
      ended.withLock { [error] in
        $0.syncs += syncs
        $0.others.append(error)
      }
    }
    #expect(try slot.number() == before + 4)
    return ended.withLock { $0 }
  }

  /// Tries with longer and longer syncs, until the three updates have committed in time.
  private func crowdInTime(
    _ others: [FaultRule]
  ) throws -> (first: WormholeError?, syncs: Int, others: [WormholeError?]) {
    for milliseconds in [400, 2000] {
      let ended = try crowd(others, milliseconds)
      if ended.syncs < 3 { return ended }
    }
    return try crowd(others, 8000)
  }

  private static func failure(_ body: () throws -> Void) throws -> WormholeError? {
    do {
      try body()
      return nil
    } catch let error as WormholeError {
      return error
    }
  }

  @Test func whoCommitsMeanwhileSharesTheNext() throws {
    let ended = try crowdInTime([])
    #expect(ended.syncs >= 1, "the one under way does not count for them")
    #expect(ended.syncs < 3, "one sync for several")
    #expect(ended.first == nil && ended.others.allSatisfy { $0 == nil })
  }

  @Test func aFailureIsToldToAllWhoShareIt() throws {
    let ended = try crowdInTime([Self.ofDirectory(.fail(.inputOutput))])
    #expect(ended.first == nil, "its own sync went well")
    #expect(ended.syncs < 3)
    #expect(ended.others.count == 3)
    for error in ended.others {
      #expect(error?.code == .notDurable)
      #expect(error?.errno == Errno.inputOutput.rawValue)
    }
    let number = try slot.number()
    #expect(try slot.add(durability: .power) == number + 1, "and the next one is asked again")
  }
}
