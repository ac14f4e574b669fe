import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

/// P7: the files and directories that are synced, the order of the syncs, and failed syncs.
@Suite(.blocking) struct SyncOrderTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest() }

  /// Returns the system calls of these kinds: the call and the last component of its path.
  private static func steps(_ calls: [String], _ kinds: Set<String> = ["fsync"]) -> [String] {
    calls.filter { kinds.contains(String($0.prefix { $0 != " " })) }.map { call in
      "\(call.prefix { $0 != " " }) \(call.split(separator: "/").last ?? "")"
    }
  }

  /// Another process's view of the slot.
  private func other() throws -> Slot {
    try Container.open(container.path, options: .testing()).slot(.channels, "n")
  }

  // MARK: Order

  /// The directory's content is on disk before the directory's name.
  @Test func aNewChannelsDirectoryIsSyncedBeforeItsName() throws {
    let calls = try FaultPoints.with { try slot.add(durability: .power) }
    #expect(Self.steps(calls) == ["fsync next", "fsync n", "fsync channels"])
    let again = try FaultPoints.with { try slot.add(durability: .power) }
    #expect(Self.steps(again) == ["fsync next", "fsync n"], "once")
    let others = try FaultPoints.with { [other = try other()] in try other.add(durability: .power) }
    #expect(
      Self.steps(others) == ["fsync next", "fsync n", "fsync channels"],
      "by each who cannot know of it")
  }

  /// A process that finds the marker takes the folders' names for durable.
  @Test func aContainersNamesAreSyncedBeforeItsMarkerHasOne() throws {
    try folder.descriptor.makeDirectory("below", mode: 0o700)
    let path = "\(folder.path)/below/another"
    let calls = try FaultPoints.with { _ = try Container.open(path, options: .testing()) }
    let marker = try #require(
      calls.firstIndex { !$0.hasPrefix("open") && $0.hasSuffix("/container.plist") }, "\(calls)")
    let made = try #require(calls.lastIndex { $0.hasPrefix("mkdir") }, "\(calls)")
    #expect(made < marker)
    #expect(
      Self.steps(Array(calls[made..<marker])).prefix(2) == ["fsync another", "fsync below"],
      "\(calls)")
    #expect(Self.steps(Array(calls[marker...])) == ["fsync another"], "the marker's own name")
  }

  /// A power cut would take the whole container with a directory above it.
  @Test func theNamesOfAllDirectoriesAboveAreSyncedBeforeTheMarkerHasOne() throws {
    let root = "\(folder.path)/one/two"
    let calls = try FaultPoints.with {
      let location = try ContainerLocation(
        group: "a", environment: ["WORMHOLE_ROOT": root], home: nil)
      try location.prepare(.owner)
      _ = try Container.open(location.container, options: .testing())
    }
    let marker = try #require(
      calls.firstIndex { !$0.hasPrefix("open") && $0.hasSuffix("/container.plist") }, "\(calls)")
    let base = try #require(folder.path.split(separator: "/").last)
    #expect(
      Set(Self.steps(Array(calls[..<marker]))).isSuperset(
        of: ["fsync .wormhole", "fsync a", "fsync two", "fsync one", "fsync \(base)"]),
      "\(calls)")
  }

  /// The names of the folders, of the container and of the marker stay unsynced there, and those of
  /// the directories above.
  @Test func aContainerIsMadeWhereNoDirectoryCanBeSynced() throws {
    let path = "\(folder.path)/unsynced"
    let count = Self.steps(
      try FaultPoints.with { _ = try Container.open("\(folder.path)/other", options: .testing()) }
    ).count
    // The last but one is that of the marker's content.
    let rules = (1...count).filter { $0 != count - 1 }.map {
      FaultRule(.fsync, number: $0, .fail(.invalidArgument))
    }
    let calls = try FaultPoints.with(rules) {
      _ = try Container.open(path, options: .testing())
    }
    let name = path.split(separator: "/").dropLast().last.map { "fsync \($0)" }
    let steps = Self.steps(calls)
    #expect(steps.first == "fsync unsynced", "\(steps)")
    #expect(steps.dropFirst().first == name, "\(steps)")
    #expect(steps.last == "fsync unsynced", "\(steps)")
    #expect(throws: Never.self) {
      try Container.open(path, create: false, options: .testing())
    }
  }

  /// The folder of queues is made with the first queue, when the container has its marker.
  @Test func theFolderOfQueuesIsSyncedOnce() throws {
    let root = try #require(container.path.split(separator: "/").last)
    /// Returns the directories that a send syncs, in their order.
    func send(to name: String, in folder: Container.Folder) throws -> [String] {
      let home = try container.member(name, in: folder)
      try home.place([1], as: "m", in: .inbox, durability: .power)
      let calls = try FaultPoints.with { try home.makeDurable(.inbox) }
      return Self.steps(calls).map { String($0.dropFirst("fsync ".count)) }
    }
    #expect(try send(to: "jobs", in: .queues) == ["jobs", "queues", "\(root)", "inbox"])
    #expect(try send(to: "others", in: .queues) == ["others", "queues", "inbox"])
    #expect(try send(to: "phone", in: .members) == ["phone", "members", "inbox"])
  }

  /// The parent of a worker's directory is a part of the queue, whose own name is synced with it.
  @Test func aWorkersDirectorySaysNothingOfItsQueuesName() throws {
    let root = try #require(container.path.split(separator: "/").last)
    let queue = try container.member("jobs", in: .queues)
    let (worker, presence) = try queue.makeWorker(deadline: nil)
    let own = try #require(worker.path.split(separator: "/").last)
    let first = try FaultPoints.with { try worker.makeDurable(.claimed) }
    #expect(Self.steps(first) == ["fsync \(own)", "fsync workers", "fsync claimed"])
    let second = try FaultPoints.with { try queue.makeDurable(.workers) }
    #expect(
      Self.steps(second) == ["fsync jobs", "fsync queues", "fsync \(root)", "fsync workers"])
    withExtendedLifetime(presence) {}
  }

  /// After a power cut the previous value is used, if one was stored.
  @Test func aValueIsSyncedUnlessThePreviousValueIsRecent() throws {
    let first = try FaultPoints.with { try slot.add() }
    #expect(Self.steps(first) == ["fsync next", "fsync n", "fsync channels"])
    // The synced value becomes the previous value, at whatever time it was written.
    for _ in 0..<3 {
      let calls = try FaultPoints.with { try slot.add() }
      #expect(Self.steps(calls) == [])
    }
    for age in ["2 seconds ago", "tomorrow"] {
      let path = container.path + "/channels/n/kept.plist"
      #expect(try run("touch", ["-d", age, path]).status == .exited(0))
      let calls = try FaultPoints.with { [other = try other()] in try other.add() }
      #expect(
        Self.steps(calls) == ["fsync next", "fsync n", "fsync channels"], "kept \(age)")
      let next = try FaultPoints.with { try slot.add() }
      #expect(Self.steps(next) == ["fsync n"], "the name of another process's value")
      let later = try FaultPoints.with { try slot.add() }
      #expect(Self.steps(later) == [])
    }
  }

  /// A value is synced before it gets its name, and its writer may be killed before the name is
  /// synced: a power cut would bring back the value before it, however old.
  @Test(arguments: [Durability.power, .process])
  func theNameOfASyncedValueIsSyncedBeforeThatValueIsReplaced(_ durability: Durability) throws {
    for _ in 1...2 { try slot.add() }
    let path = container.path + "/channels/n/kept.plist"
    #expect(try run("touch", ["-d", "1 hour ago", path]).status == .exited(0))
    let writer = try Running(
      .acknowledge(container.path, "n", durability: durability, times: 1),
      environment: ["WORMHOLE_FAULTS=rename~value.plist:after:kill"])
    _ = try writer.outcome()
    #expect(try slot.number() == 3)
    let calls = try FaultPoints.with { try slot.add() }
    let steps = Self.steps(calls, ["fsync", "rename"])
    let sync = try #require(steps.firstIndex(of: "fsync n"), "\(steps)")
    let rename = try #require(steps.firstIndex(of: "rename value.plist"), "\(steps)")
    #expect(sync < rename, "\(steps)")
    #expect(!steps.contains("fsync next"), "\(steps)")
    #expect(try slot.number() == 4)
  }

  /// The name cannot be synced: the new value is synced itself, unless no directory can be synced.
  @Test(arguments: [
    (Errno.inputOutput, ["fsync n", "fsync next", "fsync n"]), (.invalidArgument, ["fsync n"]),
  ])
  func withoutTheNameOfTheValueBeforeAValueIsSyncedItself(_ error: Errno, _ expected: [String])
    throws
  {
    for _ in 1...2 { try slot.add() }
    let writer = try Running(
      .acknowledge(container.path, "n", durability: .power, times: 1),
      environment: ["WORMHOLE_FAULTS=rename~value.plist:after:kill"])
    _ = try writer.outcome()
    let rule = FaultRule(.fsync, number: 1, .fail(error))
    let calls = try FaultPoints.with([rule]) { try slot.add() }
    #expect(Self.steps(calls) == expected)
    #expect(try slot.number() == 4)
  }

  /// A put that does not ask for .power reports no error; the next put tries again, for the name of
  /// the value and for the name of the channel.
  @Test(arguments: [2, 3])
  func aNameThatCouldNotBeSyncedIsSyncedByTheNextPut(_ number: Int) throws {
    let rule = FaultRule(.fsync, number: number, .fail(.inputOutput))
    let first = try FaultPoints.with([rule]) { try slot.add() }
    let steps = ["fsync next", "fsync n", "fsync channels"]
    #expect(Self.steps(first) == Array(steps.prefix(number)))
    #expect(Self.steps(try FaultPoints.with { try slot.add() }) == ["fsync n", "fsync channels"])
    #expect(Self.steps(try FaultPoints.with { try slot.add() }) == [])
    #expect(try slot.number() == 3)
  }

  /// A name that its writer has synced needs no second sync; an erased value's name neither.
  @Test func aNameIsSyncedOnce() throws {
    for _ in 1...2 { try slot.add(durability: .power) }
    #expect(Self.steps(try FaultPoints.with { try slot.add() }) == [])
    try slot.change("clear", erasing: true) { _ in .put(try BinaryEncoder().encode(9)) }
    #expect(Self.steps(try FaultPoints.with { try slot.add() }) == [])
    let erasing = try FaultPoints.with {
      try slot.change("clear", erasing: true) { _ in .put(try BinaryEncoder().encode(9)) }
    }
    let steps = Self.steps(erasing, ["fsync", "link"])
    #expect(steps == ["fsync next", "fsync n", "link kept"], "before it is the previous value")
  }

  /// A value that a power cut may have destroyed must not become the previous value.
  @Test func onlyASyncedValueBecomesThePreviousValue() throws {
    func kept() throws -> Int {
      let path = container.path + "/channels/n/kept.plist"
      return try BinaryDecoder().decode(
        Int.self, from: Descriptor.open(path: path, [.readOnly]).contents())
    }
    for _ in 1...2 { try slot.add(durability: .power) }
    #expect(try kept() == 1)
    // The second value is stored as previous value before an unsynced value replaces it.
    for _ in 3...4 { try slot.add() }
    #expect(try kept() == 2)
    // The fourth value was not synced, so it does not become the previous value.
    try slot.add(durability: .power)
    #expect(try kept() == 2)
    try slot.add(durability: .power)
    #expect(try kept() == 5)
  }

  /// A power cut must not bring back the name of a removed channel.
  @Test(arguments: [Durability.power, .process])
  func aRemovalIsAsDurableAsRequested(_ durability: Durability) throws {
    try slot.add(durability: .power)
    let calls = try FaultPoints.with {
      let isRemoved = try slot.remove("remove", durability: durability) { _ in
        (try BinaryEncoder().encode(0), 1)
      }
      #expect(isRemoved)
    }
    let removal = try #require(calls.lastIndex { $0.hasSuffix("/channels/n") }, "\(calls)")
    let after = Self.steps(Array(calls[removal...]))
    #expect(after.contains("fsync channels") == (durability == .power), "\(calls)")
  }

  // MARK: Failures

  /// The kernel drops pages that it could not write: a second sync of that file proves nothing.
  @Test func afterAFailedSyncTheValueIsWrittenToANewFile() throws {
    try slot.add(durability: .power)
    let rule = FaultRule(.fsync, path: "/next", .fail(.inputOutput))
    let calls = try FaultPoints.with([rule]) { try slot.add(durability: .power) }
    let steps = Self.steps(calls, ["open", "write", "pwrite", "fsync", "unlink"])
      .filter { $0.hasSuffix(" next") }
    #expect(
      steps.prefix(7) == [
        "open next", "write next", "fsync next", "unlink next", "open next", "write next",
        "fsync next",
      ])
    #expect(try other().number() == 2)
  }

  /// Without its name, a power cut takes the whole channel, with the later values.
  @Test func aChannelWhoseNameCouldNotBeSyncedIsSyncedByTheNextPut() throws {
    let rule = FaultRule(.fsync, number: 3, .fail(.inputOutput))
    var failure: WormholeError?
    FaultPoints.with([rule]) {
      failure = #expect(throws: WormholeError.self) { try slot.add(durability: .power) }
    }
    #expect(failure?.code == .notDurable)
    let next = try FaultPoints.with { try slot.add(durability: .power) }
    #expect(Self.steps(next).contains("fsync channels"), "\(next)")
  }

  /// After a power cut without the file, two machines would decide on the channel.
  @Test func aHomeWhoseNameCouldNotBeSyncedIsAnError() throws {
    let home = ChannelHome(machine: "away")
    let rule = FaultRule(.fsync, path: "/channels/n", .fail(.inputOutput))
    var failure: WormholeError?
    FaultPoints.with([rule]) {
      failure = #expect(throws: WormholeError.self) { try slot.setHome(home) }
    }
    #expect(failure?.errno == Errno.inputOutput.rawValue)
    let next = try FaultPoints.with { try slot.setHome(home) }
    #expect(Self.steps(next).suffix(2) == ["fsync n", "fsync channels"], "\(next)")
  }

  @Test(arguments: [(Errno.inputOutput, 2), (.noSpace, 1)])
  func aValueThatCannotBeSyncedIsNotCommitted(_ error: Errno, _ times: Int) throws {
    try slot.add(durability: .power)
    let rule = FaultRule(.fsync, path: "/next", persistent: true, .fail(error))
    var failure: WormholeError?
    let calls = FaultPoints.with([rule]) {
      failure = #expect(throws: WormholeError.self) { try slot.add(durability: .power) }
    }
    #expect(failure?.errno == error.rawValue)
    #expect(failure?.code != .notDurable, "it is not done")
    #expect(Self.steps(calls) == Array(repeating: "fsync next", count: times))
    #expect(try slot.number() == 1)
    #expect(try slot.add() == 2)
    let lock = try Descriptor.open(path: container.path + "/channels/n/lock", [.readOnly])
    #expect(try lock.names().sorted() == ["1", "1.d"])
    #expect(try lock.open("1.d", [.readOnly, .directory]).names() == [])
  }
}
