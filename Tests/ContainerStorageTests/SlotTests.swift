import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// A value, changed by one process or by two.
@Suite(.blocking) struct SlotTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  @Test func nothingIsThereBeforeTheFirstPut() throws {
    let slot = try container.slot(.channels, "n")
    guard case .nothing = try slot.read() else {
      Issue.record("something was there")
      return
    }
    #expect(try container.names(in: .channels) == [])
  }

  @Test func whatIsPutIsRead() throws {
    let slot = try container.slot(.channels, "tür/1 🚪")
    for sum in 1...20 { #expect(try slot.add() == sum) }
    #expect(try slot.number() == 20)
    #expect(try container.names(in: .channels) == ["tür/1 🚪"])
  }

  @Test func anotherProcessReadsAndAdds() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add(5)
    let outcome = try run(.add(container.path, "n", times: 3))
    #expect(outcome.output == "6\n7\n8\n")
    #expect(try slot.number() == 8)
  }

  /// Both have found no directory.
  @Test func theFirstChangesOfTwoProcessesMakeOneDirectory() throws {
    let (pause, sums) = (FaultPause(), Heard<Int>())
    let slot = try container.slot(.channels, "n")
    let rule = FaultRule(.rename, path: "/channels/n", .pause(pause))
    let late = try Thread("late") {
      FaultPoints.with([rule]) {
        if let sum = try? slot.add() { sums.add(sum) }
      }
    }
    try eventually("its directory is about to get the name") { pause.isReached }
    let other = try Container.open(container.path, options: .testing()).slot(.channels, "n")
    #expect(try other.add() == 1)
    pause.open()
    late.join()
    #expect(sums.all == [2])
  }

  @Test func nothingIsLeftBesideTheValue() throws {
    let slot = try container.slot(.channels, "n")
    for _ in 0..<5 { try slot.add(durability: .power) }
    let directory = try Descriptor.open(
      path: container.path + "/channels/n", [.readOnly, .directory])
    #expect(try directory.names().sorted() == ["kept.plist", "lock", "value.plist"])
    let locks = try directory.open("lock", [.readOnly, .directory])
    #expect(try locks.names().sorted() == ["1", "1.d"])
    #expect(try locks.open("1.d", [.readOnly, .directory]).names() == [])
    let staging = try container.root.descriptor.open("staging", [.readOnly, .directory])
    #expect(try staging.names() == [])
  }

  /// On a full disk, the staged file would take up space until the next change.
  @Test(arguments: [
    ("write~1.d/next@1:before:fail=ENOSPC", Durability.process),
    ("write~1.d/next@1:before:fail=ENOSPC", .power),
    ("fsync~1.d/next@1+:before:fail=EIO", .power),
    ("rename~value.plist@1:before:fail=EIO", .process),
    ("rename~value.plist@1:before:fail=EIO", .power),
  ])
  func aChangeThatFailsLeavesNothingStaged(_ fault: String, _ durability: Durability) throws {
    let slot = try container.slot(.channels, "n")
    for _ in 0..<2 { try slot.add(durability: .power) }
    let rule = try #require(FaultRule(fault))
    FaultPoints.with([rule]) {
      #expect(throws: WormholeError.self) { try slot.add(durability: durability) }
    }
    #expect(try container.contents("channels", "n", "lock", "1.d") == [])
    #expect(try slot.number() == 2)
  }

  /// A tool that takes no lock makes the value, and the second try does not change it.
  @Test func aTryThatIsGivenUpLeavesNothingStaged() throws {
    let slot = try container.slot(.channels, "n")
    let bytes = try BinaryEncoder().encode(7)
    var tries = 0
    try slot.change("update") { _ in
      tries += 1
      guard tries == 1 else { return .none }
      let path = container.path("channels", "n", "value.plist")
      try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600).write(bytes)
      return .put(bytes)
    }
    #expect(tries == 2)
    #expect(try container.contents("channels", "n", "lock", "1.d") == [])
  }

  @Test func anUpdateThatThrowsChangesNothing() throws {
    struct Mine: Error {}
    let slot = try container.slot(.channels, "n")
    try slot.add(7)
    #expect(throws: Mine.self) {
      try slot.change("update") { _ in throw Mine() }
    }
    #expect(try slot.number() == 7)
    #expect(try slot.add() == 8)
  }

  @Test func aLockInsideAnUpdateIsNested() throws {
    let slot = try container.slot(.channels, "n")
    let other = try Container.open(container.path, options: .testing()).slot(.channels, "other")
    try slot.change("update") { _ in
      let error = #expect(throws: WormholeError.self) { try other.add() }
      #expect(error?.code == .nested)
      return .none
    }
    #expect(try other.add() == 1)
  }

  /// P3: a process stopped inside an update is overtaken, and its update is not lost either.
  @Test func aStoppedHolderIsPassedBy() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add(10)
    let stopped = try Running(.stopInside(container.path, "n"))
    try stopped.waitUntilStopped()
    for _ in 0..<10 { try slot.add() }
    #expect(try slot.number() == 20)
    #expect(container.counters.takeovers == 1)
    try stopped.child.send(.go)
    #expect(try stopped.waitOrGo() == "done\n")
    #expect(try slot.number() == 21)
  }

  @Test func withoutTakeoverTheErrorNamesTheHolder() throws {
    let slot = try container.slot(.channels, "n")
    let stopped = try Running(.stopInside(container.path, "n"))
    try stopped.waitUntilStopped()
    let error = #expect(throws: WormholeError.self) {
      try slot.add(
        policy: LockPolicy(lease: nil, cap: nil),
        patience: Patience(until: .now + .milliseconds(200)))
    }
    #expect(error?.code == .timedOut)
    let process = stopped.child.process
    let reason = "the deadline passed while waiting for the lock"
    #expect(error?.reason == "\(reason), held by 'TestPeer' (process \(process), stopped)")
    #expect(error?.hint == "resume the process with 'kill -CONT \(process)', or end the process")
  }

  @Test func aDeadHoldersLockIsFreeAtOnce() throws {
    let slot = try container.slot(.channels, "n")
    let stopped = try Running(.stopInside(container.path, "n"))
    try stopped.waitUntilStopped()
    try stopped.child.send(.kill)
    _ = try stopped.outcome()
    #expect(try slot.add(policy: LockPolicy(lease: nil, cap: nil)) == 1)
    #expect(container.counters.takeovers == 0)
  }

  /// The reader finds no value, and then a kept value, because two values were put in between.
  @Test func whatIsPutWhileSomebodyReadsIsNoDamage() throws {
    let slot = try container.slot(.channels, "n")
    try slot.change("look") { _ in .none }
    let reader = try Running(
      .read(container.path, "n"), environment: ["WORMHOLE_FAULTS=open~kept.plist:before:stop"])
    try reader.waitUntilStopped()
    for _ in 0..<2 { try slot.add(durability: .power) }
    #expect(try reader.waitOrGo() == "2\n")
  }

  /// P7: without an earlier value there is nothing to fall back on, however recently a value was
  /// there.
  @Test func aValueIsSyncedWhereNoneIsBeforeIt() throws {
    var options = ContainerOptions.testing()
    options.keptAge = .seconds(1000)
    let slot = try Container.open(container.path, options: options).slot(.channels, "n")
    for _ in 0..<3 { try slot.add() }
    func isSynced() throws -> Bool {
      try FaultPoints.with { try slot.add() }.contains { $0.hasPrefix("fsync") }
    }
    #expect(try !isSynced())
    let directory = try Descriptor.open(
      path: container.path("channels", "n"), [.readOnly, .directory])
    for name in ["kept.plist", "value.plist"] { try directory.unlink(name) }
    #expect(try isSynced())
  }

  @Test func eightThreadsLoseNothing() throws {
    let slot = try container.slot(.channels, "n")
    let threads = try (0..<8).map { _ in
      try Thread("adder") {
        for _ in 0..<50 { _ = try? slot.add() }
      }
    }
    for thread in threads { thread.join() }
    #expect(try slot.number() == 400)
  }

  @Test func eightContainersInOneProcessLoseNothing() throws {
    let path = container.path
    let threads = try (0..<8).map { _ in
      try Thread("adder") {
        guard let slot = try? Container.open(path, options: .testing()).slot(.channels, "n") else {
          return
        }
        for _ in 0..<50 { _ = try? slot.add() }
      }
    }
    for thread in threads { thread.join() }
    #expect(try container.slot(.channels, "n").number() == 400)
  }

  @Test func aChannelRemovedByHandIsMadeAnew() throws {
    let slot = try container.slot(.channels, "n")
    try slot.add(5)
    _ = try run("rm", ["-r", container.path + "/channels/n"])
    #expect(try slot.add() == 1)
    #expect(try slot.number() == 1)
  }
}
