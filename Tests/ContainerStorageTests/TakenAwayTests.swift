import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Files and directories that another tool takes away while processes use them.
@Suite(.blocking) struct TakenAwayTests {
  private let folder: TemporaryDirectory
  private let path: String

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
  }

  /// The slot, in a new instance of the container: to the lock, another process.
  private func slot() throws -> Slot {
    try Container.open(path, options: .testing()).slot(.channels, "n")
  }

  private func channels() throws -> Descriptor {
    try Descriptor.open(path: path + "/channels", [.readOnly, .directory])
  }

  /// Only the highest lock file is removed, again and again, while some threads have it open and
  /// other threads open it.
  @Test func aLockFileThatIsRemovedLosesNothing() throws {
    try slot().add()
    let isOver = Monitor(false)
    let removed = Monitor(0)
    let hand = try Thread("hand") {
      while isOver.wait(until: .now + .milliseconds(2), { $0 ? true : nil }) == nil {
        guard let locks = try? channels().open("n/lock", [.readOnly, .directory]),
          let highest = try? locks.names().compactMap({ Int($0) }).max(),
          (try? locks.unlink("\(highest)")) != nil
        else { continue }
        removed.withLock { $0 += 1 }
      }
    }
    defer {
      isOver.signal { $0 = true }
      hand.join()
    }
    try together(4) { index in
      var slot = try self.slot()
      for round in 0..<200 {
        // Two threads stay with the file that they have open, two open the slot again.
        if index % 2 == 0, round % 5 == 0 { slot = try self.slot() }
        try slot.add()
      }
    }
    #expect(try slot().number() == 801)
    #expect(removed.withLock { $0 } > 3)
  }

  /// A generation that is removed without a trace does no harm: processes that have it open and
  /// processes that arrive at the generation before it, whose directory they make again, do not
  /// commit side by side.
  ///
  /// The first may find that directory removed already, when it was the second.
  @Test func aGenerationThatIsRemovedWithItsDirectoryLosesNothing() throws {
    let first = try slot()
    try first.add()
    // A next generation from another tool: `first` goes up to it, and removes the generation below.
    let locks = try channels().open("n/lock", [.readOnly, .directory])
    _ = try locks.open("2", [.writeOnly, .create], mode: 0o600)
    let before = try first.add()
    try locks.unlink("2")
    try locks.removeDirectory("2.d")
    // Another thread comes to the generation before, and pauses in the middle of its update.
    let (inside, exit) = (Gate(), Gate())
    let other = try Thread("other") {
      _ = try? slot().add {
        inside.open()
        try? exit.wait()
      }
    }
    try inside.wait()
    try first.add()
    exit.open()
    other.join()
    #expect(try self.slot().number() == before + 2)
  }

  /// A third process must not commit beside the holder of a removed lock file.
  ///
  /// The second process makes a lock file under the removed name. The third finds that file.
  @Test func aLockFileThatIsMadeTwiceIsUsedOnce() throws {
    try slot().add()
    let locks = try channels().open("n/lock", [.readOnly, .directory])
    try locks.unlink("1")
    // The second process pauses before it gives the name 2 to its lock file, and before it gives
    // the name 3 or 4 to its next lock file.
    let (two, later) = (FaultPause(), FaultPause())
    let rules = [FaultRule(.link, .pause(two)), FaultRule(.link, number: 2, .pause(later))]
    let isOver = Monitor(false)
    let second = try Thread("second") {
      FaultPoints.with(rules) { _ = try? self.slot().add() }
      isOver.signal { $0 = true }
    }
    try eventually("the second process has its lock file") { two.isReached }
    let (inside, exit) = (Gate(), Gate())
    let first = try Thread("first") {
      _ = try? self.slot().add {
        inside.open()
        try? exit.wait()
      }
    }
    try inside.wait()
    try locks.unlink("2")
    // The second process makes the file anew, under the removed name, and retracts it.
    two.open()
    try eventually("the second process goes on to the next") {
      later.isReached || isOver.withLock { $0 }
    }
    try slot().add()
    exit.open()
    first.join()
    later.open()
    second.join()
    #expect(try slot().number() == 4)
  }

  /// A process that has opened the second lock file of a name before its maker retracts the file
  /// does not commit beside the holder of the first one.
  @Test func aRetractedLockFileIsNotUsed() throws {
    try slot().add()
    let locks = try channels().open("n/lock", [.readOnly, .directory])
    try locks.unlink("1")
    // The second process pauses before it gives the name 2 to its lock file, before it retracts
    // the file, and before it gives a higher name to its next lock file.
    let (two, retracting, later) = (FaultPause(), FaultPause(), FaultPause())
    let rules = [
      FaultRule(.link, .pause(two)), FaultRule(.unlink, path: "n/lock/2", .pause(retracting)),
      FaultRule(.link, number: 2, .pause(later)),
    ]
    let second = try Thread("second") {
      FaultPoints.with(rules) { _ = try? self.slot().add() }
    }
    try eventually("the second process has its lock file") { two.isReached }
    let (inside, exit) = (Gate(), Gate())
    let first = try Thread("first") {
      _ = try? self.slot().add {
        inside.open()
        try? exit.wait()
      }
    }
    try inside.wait()
    try locks.unlink("2")
    two.open()
    try eventually("the second process is about to retract it") { retracting.isReached }
    let opened = FaultPause()
    let rule = FaultRule(.open, path: "n/lock/2", moment: .after, .pause(opened))
    let third = try Thread("third") {
      FaultPoints.with([rule]) { _ = try? self.slot().add() }
    }
    try eventually("the third process has it open") { opened.isReached }
    retracting.open()
    try eventually("the second process goes on to the next") { later.isReached }
    opened.open()
    third.join()
    exit.open()
    first.join()
    later.open()
    second.join()
    #expect(try slot().number() == 4)
  }

  /// A process at a generation far below the others, all of whose directories were hidden from its
  /// listing, does not commit beside them.
  @Test func aGenerationFarBelowIsFoundByTheHighest() throws {
    let highest = try slot()
    try highest.add()
    let locks = try channels().open("n/lock", [.readOnly, .directory])
    _ = try locks.open("40", [.writeOnly, .create], mode: 0o600)
    for number in 2..<40 { _ = try locks.open("\(number)", [.writeOnly, .create], mode: 0o600) }
    let before = try highest.add()
    // Another tool hides the higher generations from the process that arrives now.
    for number in 2...40 { try locks.unlink("\(number)") }
    try locks.removeDirectory("40.d")
    let (inside, exit) = (Gate(), Gate())
    let other = try Thread("other") {
      _ = try? self.slot().add {
        inside.open()
        try? exit.wait()
      }
    }
    try inside.wait()
    // The highest process continues with its generation.
    _ = try locks.open("40", [.writeOnly, .create], mode: 0o600)
    try highest.add()
    exit.open()
    other.join()
    #expect(try self.slot().number() == before + 2)
  }

  enum Taken: String, CaseIterable { case channel = "n", locks = "n/lock" }

  /// A process that has the directory open puts under the name all the same.
  @Test(arguments: Taken.allCases)
  func whatIsMovedAwayIsNotPutTo(_ taken: Taken) throws {
    let slot = try slot()
    for _ in 0..<3 { try slot.add() }
    let channels = try channels()
    let elsewhere = try Descriptor.open(path: folder.path, [.readOnly, .directory])
    try channels.rename(taken.rawValue, to: elsewhere, "moved")
    // Another instance comes first and uses the directory that has the name now.
    let start = taken == .channel ? 0 : 3
    #expect(try self.slot().add() == start + 1)
    #expect(try slot.add() == start + 2)
    #expect(try self.slot().add() == start + 3)
    #expect(try self.slot().number() == start + 3)
    guard taken == .channel else { return }
    // And without another, too.
    try channels.rename("n", to: elsewhere, "moved again")
    #expect(try slot.add() == 1)
    #expect(try self.slot().number() == 1)
    let isHeld = try slot.hold("hold") { _ in
      try channels.open("n/lock/1", [.readWrite]).tryLock(.exclusive) == false
    }
    #expect(isHeld.result)
  }
}
