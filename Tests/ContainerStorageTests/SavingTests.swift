import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// P7: no put waits for the disk before its watchers are notified, as long as the values before it
/// were saved in time.
@Suite(.blocking) struct SavingTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  /// No thread saves the values: the tests do.
  init() throws { (folder, container, slot) = try Container.forTest() }

  /// Another process's view of the slot.
  private func other() throws -> Slot {
    try Container.open(container.path, options: .testing()).slot(.channels, "n")
  }

  /// Adds 1, and returns the syncs before the call returned.
  private func syncsOfAdd(_ slot: Slot) throws -> [String] {
    try FaultPoints.with { try slot.add() }.filter { $0.hasPrefix("fsync") }
  }

  private func syncsOfSave() -> [String] {
    FaultPoints.with { slot.save() }.filter { $0.hasPrefix("fsync") }
  }

  private func kept(_ name: String = "kept.plist") throws -> Int {
    let file = try Descriptor.open(path: container.path + "/channels/n/" + name, [.readOnly])
    return try BinaryDecoder().decode(Int.self, from: file.contents())
  }

  /// Makes the previous value, and the value if both are one file, as old as an hour.
  private func wait() throws {
    let path = container.path + "/channels/n/kept.plist"
    #expect(try run("touch", ["-d", "1 hour ago", path]).status == .exited(0))
  }

  @Test func aRarePutWaitsForNoDisk() throws {
    for _ in 1...2 { try slot.add() }
    slot.save()
    for number in 3...5 {
      let writer = try other()
      #expect(try syncsOfAdd(writer) == [])
      #expect(try kept() == number - 1)
      writer.save()
      #expect(try kept() == number)
      try wait()
    }
    // The previous value's time is the time at which an unsynced value took its place.
    #expect(try syncsOfAdd(other()) == [])
    #expect(try syncsOfAdd(other()) == [])
  }

  /// The writer was killed before its save, or the disk falls behind.
  @Test func withoutASaveALaterPutIsSyncedFirst() throws {
    for _ in 1...3 { try slot.add() }
    #expect(try kept() == 1)
    try wait()
    #expect(try syncsOfAdd(other()).first?.hasSuffix("next") == true)
  }

  @Test func aSaveSyncsBeforeTheValueIsKeptAndWakesNoWatcher() throws {
    for _ in 1...3 { try slot.add() }
    let calls = FaultPoints.with { slot.save() }
    let sync = try #require(calls.firstIndex { $0.hasPrefix("fsync") }, "\(calls)")
    let kept = try #require(calls.lastIndex { $0.hasPrefix("link") }, "\(calls)")
    #expect(sync < kept)
    #expect(calls.count { $0.hasPrefix("fsync") } == 1)
    // Watchers of the value wait for renames to names of its directory.
    #expect(!calls.contains { $0.hasPrefix("rename") && $0.hasSuffix("n/kept.plist") }, "\(calls)")
    #expect(try self.kept() == 3)
    #expect(syncsOfSave() == [], "once")
    let lock = try Descriptor.open(
      path: container.path + "/channels/n/lock/1.d", [.readOnly, .directory])
    #expect(try lock.names() == [])
  }

  /// A process that goes on running saves its values by itself.
  @Test func aRunningProcessSavesItsValues() throws {
    var options = ContainerOptions.testing()
    options.callLater = { moment, call in
      try? Thread("saving") {
        let _: Void? = Monitor(()).wait(until: moment) { _ in nil }
        call()
      }.detach()
    }
    let container = try Container.open(folder.path + "/running", options: options)
    let slot = try container.slot(.channels, "n")
    for _ in 1...3 { try slot.add() }
    let path = container.path + "/channels/n/"
    #expect(throws: Never.self) {
      try eventually("the value is saved") {
        // For a moment there is no previous value.
        let kept = try? Descriptor.status(ofPath: path + "kept.plist", following: false)
        let value = try Descriptor.status(ofPath: path + "value.plist", following: false)
        return kept?.isSameFile(as: value) == true
      }
    }
  }

  /// Changes a channel that the program uses once, and releases; the saver is this test's own.
  private func addOnce(_ saver: ValueSaver, due: Instant) throws {
    let slot = try container.slot(.channels, "once")
    try slot.add()
    #expect(saver.add(slot, due: due))
  }

  private func isSaved() throws -> Bool {
    let path = container.path + "/channels/once"
    let kept = try? Descriptor.status(ofPath: path + "/kept.plist", following: false)
    let value = try Descriptor.status(ofPath: path + "/value.plist", following: false)
    return kept?.isSameFile(as: value) == true
  }

  @Test func aValueThatWaitsForItsSaveHoldsNoDirectory() throws {
    let saver = ValueSaver()
    for _ in 1...3 { try addOnce(saver, due: .distantFuture) }
    let path = container.path + "/channels/once"
    #expect(try Processes.openFiles(below: path).count == 1)
    saver.finish(container)
    #expect(try isSaved())
    #expect(try Processes.openFiles(below: path) == [])
  }

  /// A program may request the channel anew for each change, and change it all the time.
  @Test func furtherChangesDoNotPutASaveOff() throws {
    let saver = ValueSaver()
    try addOnce(saver, due: .now)
    for _ in 1...2 { try addOnce(saver, due: .distantFuture) }
    saver.saveDue()
    #expect(try isSaved())
  }

  /// The call for the earliest value was requested alone.
  @Test func aSaveRequestsTheCallForTheValueThatIsDueLater() throws {
    let moments = Heard<Instant>()
    var options = ContainerOptions.testing()
    options.callLater = { moment, _ in moments.add(moment) }
    let container = try Container.open(folder.path + "/two", options: options)
    let slots = try ["a", "b"].map { try container.slot(.channels, $0) }
    let (saver, now) = (ValueSaver(), Instant.now)
    let later = now + .seconds(3600)
    #expect(saver.add(slots[0], due: now))
    #expect(saver.add(slots[1], due: later))
    #expect(moments.all == [now])
    saver.saveDue()
    #expect(moments.all == [now, later])
    // A call that comes too early finds nothing to save, and the request stands.
    saver.saveDue()
    #expect(moments.all == [now, later])
    saver.finish(container)
  }

  /// The names of all files of channels.
  private func channelFiles() throws -> [Substring] {
    let outcome = try run("find", [container.path + "/channels"])
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    return outcome.output.split(separator: "\n").sorted()
  }

  /// Somebody removes the channel, from the inside out, and has come so far.
  @Test(arguments: ["n", "n/lock", "n/lock/1", "n/lock/1.d"])
  func aSaveMakesNothingThatWasRemoved(_ name: String) throws {
    for isOpen in [true, false] {
      for _ in 1...2 { try slot.add() }
      let saver = ValueSaver()
      #expect(saver.add(slot, due: .distantFuture))
      if !isOpen { #expect(slot.closeIfIdle()) }
      let path = container.path + "/channels/" + name
      #expect(try run("rm", ["-r", path]).status == .exited(0))
      let left = try channelFiles()
      saver.finish(container)
      #expect(try channelFiles() == left)
      #expect(try slot.add() == (name == "n" ? 1 : 3))
      _ = try slot.remove("remove", durability: .process) { _ in (try BinaryEncoder().encode(0), 1)
      }
    }
  }

  /// The kernel drops data that it could not write: a second sync of the file proves nothing.
  @Test func whatCouldNotBeSyncedIsNotKept() throws {
    for _ in 1...3 { try slot.add() }
    let calls = FaultPoints.with([FaultRule(.fsync, .fail(.inputOutput))]) {
      slot.save()
    }
    #expect(calls.contains { $0.hasPrefix("fsync") })
    #expect(try kept() == 1)
    #expect(syncsOfSave() == [])
    #expect(try slot.number() == 3)
    try wait()
    #expect(try syncsOfAdd(other()).first?.hasSuffix("next") == true)
  }

  /// A save whose process was suspended, or whose disk is slow, comes after newer synced values.
  @Test func aLateSaveReplacesNoNewerValue() throws {
    for _ in 1...2 { try slot.add() }
    var save = try #require(slot.beginSave(.unlimited))
    save.sync()
    let other = try other()
    try other.add(durability: .power)
    try other.add()
    #expect(try kept() == 3)
    slot.endSave(save, .unlimited)
    #expect(try kept() == 3)
  }

  /// Values change while one of them is synced.
  @Test func aSavedValueIsKeptThoughItIsNoLongerTheLatest() throws {
    for _ in 1...2 { try slot.add() }
    var save = try #require(slot.beginSave(.unlimited))
    try slot.add()
    save.sync()
    slot.endSave(save, .unlimited)
    #expect(try kept() == 2)
    #expect(try slot.number() == 3)
  }

  /// A power cut before the sync of the name leaves the earlier previous value.
  @Test func aSavedValueThatIsNoLongerTheLatestCountsOnceItsNameIsOnDisk() throws {
    for isRefused in [true, false] {
      for _ in 1...2 { try slot.add() }
      var save = try #require(slot.beginSave(.unlimited))
      try slot.add()
      let number = try slot.number()
      save.sync()
      let refusal = FaultRule(.fsync, path: "channels/n", persistent: true, .fail(.inputOutput))
      let calls = FaultPoints.with(isRefused ? [refusal] : []) { slot.endSave(save, .unlimited) }
      let name = try #require(calls.firstIndex { $0.hasSuffix("n/kept.plist") }, "\(calls)")
      #expect(calls[name...].contains { $0.hasPrefix("fsync") }, "\(calls)")
      #expect(try kept() == number - 1)
      // Another process judges by the file alone.
      let syncs = try syncsOfAdd(other())
      #expect(isRefused ? syncs.first?.hasSuffix("next") == true : syncs == [], "\(syncs)")
    }
  }

  @Test func aSaveBringsBackNothingThatWasErased() throws {
    for _ in 1...2 { try slot.add() }
    var save = try #require(slot.beginSave(.unlimited))
    save.sync()
    try slot.change("clear", erasing: true) { _ in .put(try BinaryEncoder().encode(9)) }
    slot.endSave(save, .unlimited)
    #expect(try kept() == 9)
    #expect(try slot.number() == 9)
  }

  /// Where files cannot be exchanged, every change is synced, and no previous value stays.
  @Test func withoutAnExchangeEveryChangeIsSynced() throws {
    try slot.add()
    // The first call exchanges, the second one replaces.
    let rules = [1, 2].map {
      FaultRule(.rename, path: "value.plist", number: $0, .fail(.invalidArgument))
    }
    for (count, rules) in [(2, rules), (1, [rules[0]])] {
      let calls = try FaultPoints.with(rules) { try slot.add() }
      #expect(calls.contains { $0.hasPrefix("fsync") }, "\(calls)")
      #expect(calls.count { $0.hasPrefix("rename") && $0.hasSuffix("value.plist") } == count + 1)
    }
    #expect(try slot.number() == 3)
    #expect(throws: (any Error).self) { try kept() }
  }

  /// The writer is suspended right after its commit, before anything is synced.
  @Test(arguments: [Processes.Signal.kill, .go])
  func aWriterThatStopsAfterItsCommitHoldsUpNoPut(_ end: Processes.Signal) throws {
    for _ in 1...2 { try slot.add() }
    slot.save()
    try wait()
    let writer = try Running(
      .add(container.path, "n", times: 1),
      environment: ["WORMHOLE_FAULTS=rename~value.plist:after:stop"])
    try writer.waitUntilStopped()
    #expect(try slot.number() == 3)
    #expect(try kept() == 2)
    // The previous value is not renewed yet, so the next put is synced.
    #expect(try syncsOfAdd(other()).first?.hasSuffix("next") == true)
    try writer.child.send(end)
    _ = try writer.outcome()
    #expect(try slot.number() == 4)
    #expect(try slot.add() == 5)
  }

  /// Other processes may know the earlier previous value to be young enough.
  @Test func aSaveThatCannotBeNamedLeavesThePreviousValue() throws {
    for _ in 1...3 { try slot.add() }
    #expect(try kept() == 1)
    let calls = FaultPoints.with([FaultRule(.link, path: "kept.plist", .fail(.noSpace))]) {
      slot.save()
    }
    #expect(calls.contains { $0.hasPrefix("link") && $0.hasSuffix("kept.plist") }, "\(calls)")
    #expect(try kept() == 1)
    #expect(try slot.add() == 4)
    slot.save()
    #expect(try kept() == 4)
  }

  @Test func withoutAPreviousValueThePutAfterAFailedSaveIsSyncedFirst() throws {
    for _ in 1...3 { try slot.add() }
    let rules = [Call.link, .rename].map {
      FaultRule($0, path: "kept.plist", .fail(.noSpace))
    }
    FaultPoints.with(rules) { slot.save() }
    #expect(throws: (any Error).self) { try kept() }
    #expect(try syncsOfAdd(slot).first?.hasSuffix("next") == true)
    #expect(try slot.number() == 4)
  }

  /// The process is suspended while there is no previous value, and its lock is taken over by a
  /// process that knows the earlier previous value to be young enough.
  @Test func afterATakeoverThePreviousValueIsLookedForAgain() throws {
    let path = folder.path + "/over"
    var options = ContainerOptions.testing()
    options.keptAge = .seconds(3600)
    let slot = try Container.open(path, options: options).slot(.channels, "n")
    for _ in 1...3 { try slot.add() }
    let saver = try Running(
      .addSaved(path, "n", times: 2), environment: ["WORMHOLE_FAULTS=rename~past:after:stop"])
    try saver.waitUntilStopped()
    #expect(throws: Errno.noSuchFile) {
      try Descriptor.status(ofPath: path + "/channels/n/kept.plist").size
    }
    #expect(try syncsOfAdd(slot).first?.hasSuffix("next") == true)
    #expect(try slot.number() == 6)
    try saver.child.send(.go)
    #expect(try saver.outcome().status == .exited(0))
    #expect(try slot.number() == 7)
  }

  /// The name of the previous value is free for a moment, and the process is killed then.
  @Test func whoeverDiesBetweenTwoPreviousValuesLeavesTheFirst() throws {
    let (past, save) = ("lock/1.d/past", "lock/1.d/save")
    for _ in 1...2 { try slot.add() }
    slot.save()
    _ = try Running(
      .addSaved(container.path, "n", times: 1),
      environment: ["WORMHOLE_FAULTS=rename~past:after:kill"]
    ).outcome()
    #expect(throws: Errno.noSuchFile) { try kept() }
    let number = try kept(past)
    let value = container.path + "/channels/n/value.plist"
    #expect(try run("truncate", ["-s", "0", value]).status == .exited(0))
    guard case .value(_, recovered: true) = try slot.read() else {
      Issue.record("not recovered")
      return
    }
    #expect(try slot.number() == number)
    let findings = try container.inspect().filter { $0.subject == "channels/n/value.plist" }
    #expect(findings.map(\.isRepairable) == [true])
    let writer = try other()
    for step in 1...2 { #expect(try writer.add() == number + step) }
    #expect(try kept() == number + 1)
    // The next save leaves nothing of the one that was not finished.
    writer.save()
    for name in [past, save] { #expect(throws: Errno.noSuchFile) { try kept(name) } }
    #expect(try kept() == number + 2)
  }

  /// Each step of a save, with the process killed there.
  @Test func whoeverDiesInASaveLosesNothing() throws {
    let path = folder.path + "/killed"
    var number = 0
    for call in ["link~save", "fsync~value.plist", "rename~past", "link~kept.plist", "unlink~save"]
    {
      for moment in ["before", "after"] {
        let fault = "WORMHOLE_FAULTS=\(call):\(moment):kill"
        _ = try Running(.addSaved(path, "n", times: 2), environment: [fault]).outcome()
        let slot = try Container.open(path, options: .testing()).slot(.channels, "n")
        let found = try slot.number()
        #expect(found == number + 2, "\(fault)")
        number = try slot.add()
      }
    }
  }
}

extension Slot {
  /// Saves the value now, as the thread for saves does.
  fileprivate func save() {
    guard var save = beginSave(.unlimited) else { return }
    save.sync()
    endSave(save, .unlimited)
  }
}
