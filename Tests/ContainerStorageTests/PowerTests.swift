import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// P7: the content after a power cut, on real file systems that are lost without flushing.
@Suite(.serialized, .blocking, .notSanitized("about file systems and processes"))
struct PowerTests {
  private static let cuts = TestRun.isLong ? 25 : 5
  private static let kinds: [TestFileSystem.Kind] = [.ext4, .xfs]

  /// Cut while the writers write: at the cut, any step of a put may be in progress.
  @Test(arguments: kinds)
  fileprivate func aCutAmongWritersLosesNothingAcknowledged(_ kind: TestFileSystem.Kind) throws {
    let what = "a power cut among writers on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    let seed = TestRun.seed
    var random = SeededRandom(seed: seed)
    var history: History = [:]
    for cut in 1...Self.cuts {
      let writers = try Self.channels.map { try Writer($0, disk, times: 1_000_000) }
      // Now and then long enough for kept values to be replaced by later values.
      let longest = cut % 5 == 0 ? 1500 : 400
      let length = Duration.milliseconds(Int.random(in: 20...longest, using: &random))
      let end = Instant.now + length
      try eventually("all have written for a while") {
        try writers.allSatisfy { try $0.hasAcknowledged } && Instant.now > end
      }
      let moment = try disk.cut()
      try check(writers, &history, on: disk, at: moment, "cut \(cut) on \(kind), seed \(seed)")
    }
    try disk.unmount()
  }

  /// Cut right after the last acknowledgement: no later write can have forced the value to disk.
  @Test(arguments: kinds)
  fileprivate func aCutAfterTheLastAcknowledgementLosesNothing(_ kind: TestFileSystem.Kind) throws {
    let what = "a power cut after an acknowledgement on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    var history: History = [:]
    for cut in 1...Self.cuts {
      var writers: [Writer] = []
      // One channel after the other, beginning with a different channel each time, so that each
      // channel comes last once.
      let turn = cut % Self.channels.count
      for channel in Self.channels[turn...] + Self.channels[..<turn] {
        let writer = try Writer(channel, disk, times: cut)
        _ = try writer.process.outcome()
        writers.append(writer)
      }
      let moment = try disk.cut()
      try check(writers, &history, on: disk, at: moment, "cut \(cut) on \(kind)")
    }
    try disk.unmount()
  }

  /// A put replaces a value whose file is on disk, and reaches the disk itself as a name only: of
  /// the two values, the old one remains, as the kept value.
  @Test(arguments: kinds)
  fileprivate func aValueThatDidNotReachTheDiskIsAnsweredByTheKeptOne(
    _ kind: TestFileSystem.Kind
  ) throws {
    let what = "a kept value after a power cut on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    let writer = try Writer(("p", .process), disk, times: 40)
    _ = try writer.process.outcome()
    // Names reach the disk without the content of their files.
    try Descriptor.open(path: disk.path, [.readOnly, .directory]).sync()
    try Descriptor.open(
      path: [disk.path, "c", "channels", "p"].joined(separator: "/"), [.readOnly, .directory]
    ).sync()
    _ = try disk.cut()
    try disk.unmount()
    try disk.mount()
    let container = try Container.open(disk.path + "/c", create: false, options: .testing())
    let slot = try container.slot(.channels, "p")
    guard case .value(_, recovered: true) = try slot.read() else {
      Issue.record("not recovered: \(try slot.read())")
      return
    }
    let found = try slot.number()
    // The second put took the place of a synced value, and all puts were made within a second.
    #expect((1...40).contains(found))
    #expect(try slot.add() == found + 1)
    #expect(container.counters.heals == 1)
    guard case .value(_, recovered: false) = try slot.read() else {
      Issue.record("not healed: \(try slot.read())")
      return
    }
    let damaged = try container.root.descriptor.open("damaged", [.readOnly, .directory]).names()
    #expect(damaged.count == 2)
    _ = consume container
  }

  /// An acknowledged value, then an unsynced value in its place, whose writer is stopped at once.
  ///
  /// Of the two names, only the new value's name is sent to the disk.
  @Test(arguments: kinds)
  fileprivate func anAcknowledgedValueIsKeptBeforeAnUnsyncedOneTakesItsPlace(
    _ kind: TestFileSystem.Kind
  ) throws {
    let what = "an unsynced value over an acknowledged one on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    let path = disk.path + "/c"
    _ = try run(.add(path, "p", times: 3, durability: .power))
    let stopped = try Running(
      .add(path, "p", times: 1),
      environment: ["WORMHOLE_FAULTS=rename~value.plist:after:stop"])
    try stopped.waitUntilStopped()
    for folder in ["channels/p", "channels/p/lock", "channels/p/lock/1.d"] {
      try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory]).sync()
    }
    _ = try disk.cut()
    try stopped.child.send(.kill)
    _ = try stopped.outcome()
    try disk.unmount()
    try disk.mount()
    let slot = try Container.open(path, options: .testing()).slot(.channels, "p")
    #expect(try slot.number() >= 3, "what was acknowledged is lost")
  }

  /// A value that was saved after its commit is the previous value of the next one.
  ///
  /// Only names are sent to the disk, as above.
  @Test(arguments: kinds)
  fileprivate func aSavedValueIsFoundAfterACut(_ kind: TestFileSystem.Kind) throws {
    let what = "a saved value after a power cut on \(kind)"
    guard let disk = try TestFileSystem.make(kind, for: what) else { return }
    let path = disk.path + "/c"
    _ = try run(.addSaved(path, "p", times: 5))
    for folder in ["channels/p", "channels/p/lock", "channels/p/lock/1.d"] {
      try Descriptor.open(path: path + "/" + folder, [.readOnly, .directory]).sync()
    }
    _ = try disk.cut()
    try disk.unmount()
    try disk.mount()
    let slot = try Container.open(path, options: .testing()).slot(.channels, "p")
    var found: Int?
    #expect(throws: Never.self) { found = try slot.number() }
    #expect((5...6).contains(found ?? 0), "the saved value is lost: \(String(describing: found))")
  }

  // MARK: Writers

  private typealias Channel = (name: String, durability: Durability)
  private static let channels: [Channel] = [
    ("power 1", .power), ("process 1", .process), ("power 2", .power), ("process 2", .process),
    ("power 3", .power),
  ]

  private struct Put {
    let sum: Int
    let begin: Instant
    let end: Instant
  }

  /// All that was put in each channel and not lost in a cut, in order.
  private typealias History = [String: [Put]]

  /// A process that writes one channel, and its reports.
  private struct Writer {
    let channel: Channel
    let process: Running

    init(_ channel: Channel, _ disk: TestFileSystem, times: Int) throws {
      self.channel = channel
      process = try Running(
        .acknowledge(disk.path + "/c", channel.name, durability: channel.durability, times: times))
    }

    var hasAcknowledged: Bool { get throws { try process.output.contains("\n") } }

    /// What was acknowledged, in order.
    var puts: [Put] {
      get throws {
        try process.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
          .map { line in
            let numbers = line.split(separator: " ").compactMap { Int64($0) }
            try #require(numbers.count == 3)
            return Put(
              sum: Int(numbers[0]), begin: Instant(nanoseconds: numbers[1]),
              end: Instant(nanoseconds: numbers[2]))
          }
      }
    }
  }

  /// Waits until the writers meet the cut, mounts the disk again, and checks the values.
  private func check(
    _ writers: [Writer], _ history: inout History, on disk: TestFileSystem, at moment: Instant,
    _ when: String
  ) throws {
    for writer in writers { _ = try writer.process.outcome() }
    try disk.unmount()
    try disk.mount()
    let container = try Container.open(disk.path + "/c", options: .testing())
    for writer in writers {
      let name = writer.channel.name
      let what = "'\(name)' after \(when)"
      let puts = history[name, default: []] + (try writer.puts)
      let slot = try container.slot(.channels, name)
      var number: Int?
      #expect(throws: Never.self, "\(what)") { number = try slot.number() }
      guard let found = number else { continue }
      let last = puts.last?.sum ?? 0
      // A stopped machine acknowledges nothing more. A stopped file system does: a sync that
      // overlaps with the stop may find nothing left to wait for, and report success.
      let certain = puts.filter { $0.end < moment }
      // The put in progress may have reached the disk.
      #expect(found <= last + 1, "\(what): \(found) was never put, the latest was \(last)")
      switch writer.channel.durability {
      case .power: #expect(found >= certain.last?.sum ?? 0, "\(what): lost")
      case .process: expectRecent(found, certain, what)
      }
      let begin = Instant.now
      #expect(try slot.add() == found + 1, "\(what)")
      history[name] = puts.filter { $0.sum <= found }
      if found > last { history[name]!.append(Put(sum: found, begin: begin, end: begin)) }
      history[name]!.append(Put(sum: found + 1, begin: begin, end: .now))
      guard case .value(_, recovered: false) = try slot.read() else {
        Issue.record("\(what): not healed")
        continue
      }
    }
    #expect(try container.root.descriptor.open("staging", [.readOnly, .directory]).names() == [])
  }

  /// How old the value found after a cut may be: it was the latest value `keptAge` before the last
  /// unsynced put, or later.
  ///
  /// A put leaves its file unsynced only while a value that is on the disk with its name was the
  /// latest less than `keptAge` ago. Otherwise the put syncs its file, and then the name, before it
  /// is acknowledged. The last acknowledged put is therefore unsynced, or it is found.
  private func expectRecent(_ found: Int, _ puts: [Put], _ what: String) {
    guard let last = puts.last, found < last.sum else { return }
    guard let next = puts.first(where: { $0.sum == found + 1 }) else {
      Issue.record("\(what): \(found) is older than all that was known to be there")
      return
    }
    #expect(
      next.end.nanoseconds >= last.begin.nanoseconds - ContainerOptions().keptAge.inNanoseconds,
      "\(what): \(found) is too much older than the latest, \(last.sum)")
  }
}
