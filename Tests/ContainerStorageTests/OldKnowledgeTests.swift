import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Knowledge in memory is dropped when its basis is gone.
@Suite(.blocking) struct OldKnowledgeTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let slot: Slot

  init() throws { (folder, container, slot) = try Container.forTest(holding: 2) }

  /// The same, to locks and watches another process.
  private func another() throws -> Container {
    try Container.open(container.path, options: .testing())
  }

  private func remove(_ names: String...) throws {
    let path = container.path(names.joined(separator: "/"))
    #expect(try run("rm", ["-r", path]).status == .exited(0))
  }

  /// The waiting thread is still in the kernel's queue, and would take the lock for no caller.
  @Test func whoeverFailsInWaitingForALockTakesItNoMore() throws {
    let holding = try Holding(another().slot(.channels, "n"))
    let rule = FaultRule(.fstatat, path: "n/lock/2", .fail(.inputOutput))
    FaultPoints.with([rule]) {
      let error = #expect(throws: WormholeError.self) { try slot.add() }
      #expect(error?.errno == Errno.inputOutput.rawValue)
    }
    try holding.end()
    let held = try another().slot(.channels, "n")
      .hold("hold", patience: Patience(until: .now + patience)) { $0 }
    #expect(held.result == 1)
  }

  /// The notice that another directory has the name arrives once.
  @Test func theDirectoryThatHasAPartsNameIsFoundWhenItCanBe() throws {
    let home = try container.member("watch")
    func names() throws -> [String] {
      var names: [String] = []
      try home.list(.inbox) { names.append(String(cString: $0)) }
      return names
    }
    #expect(try names() == [])
    let path = container.path("members/watch/inbox")
    #expect(try run("mv", [path, path + "-away"]).status == .exited(0))
    #expect(try run("mkdir", ["-m", "700", path]).status == .exited(0))
    #expect(try run("touch", [path + "/new"]).status == .exited(0))
    let rule = FaultRule(.open, path: "watch/inbox", .fail(.tooManyOpenFiles))
    let calls = FaultPoints.with([rule]) { home.renew(.inbox) }
    #expect(calls.contains { $0.hasPrefix("open") })
    #expect(try names() == ["new"])
  }

  /// As long as a process has a removed directory open, the kernel shows its last state.
  @Test(arguments: [MemberDirectory.Part.inbox, .files])
  func aPartThatWasRemovedAndMadeAgainIsOpenedAgain(_ part: MemberDirectory.Part) throws {
    let home = try container.member("watch")
    let path = container.path("members/watch/\(part.rawValue)")
    for isReadBetween in [true, false] {
      #expect(try home.lastChange(of: part) != nil)
      try remove("members", "watch", part.rawValue)
      if isReadBetween { #expect(try home.lastChange(of: part) == nil) }
      #expect(try run("mkdir", ["-m", "700", path]).status == .exited(0))
      #expect(try run("touch", [path + "/new"]).status == .exited(0))
      #expect(try run("touch", ["-d", "1 hour ago", path]).status == .exited(0))
      #expect(try home.lastChange(of: part) == Descriptor.status(ofPath: path).modified)
      let directory = try #require(try home.existing(part))
      #expect(try directory.descriptor.names() == ["new"])
    }
  }

  /// Where one thread could not be had, the next tenure tries again.
  @Test func marksAreRenewedAgainOnceThereAreThreads() throws {
    let tries = Monitor(0)
    let leases = LeaseKeeper { body throws(Errno) in
      let isFirst = tries.withLock { tries in
        tries += 1
        return tries == 1
      }
      if isFirst { throw .wouldBlock }
      try Thread("wormhole-lease", body).detach()
    }
    try folder.write("", to: "mark")
    let file = try Descriptor.open(path: folder.path + "/mark", [.readWrite])
    let mark = HolderMark(of: .current)
    for _ in 0..<2 {
      let tenure = try leases.begin(
        mark, in: file, lease: 40_000_000, cap: 600_000_000_000, at: .now)
      defer { _ = leases.end(tenure) }
      guard tries.withLock({ $0 }) == 2 else { continue }
      try eventually("it is renewed") { try HolderMark(in: file).renewals > 0 }
    }
    #expect(tries.withLock { $0 } == 2)
  }

  /// A hold is not run again: no waiter may take its holder for a suspended process.
  @Test func whatIsToBeHeldForLongIsNotWithoutAThread() throws {
    let leases = LeaseKeeper { _ throws(Errno) in throw .wouldBlock }
    try folder.write("", to: "mark")
    let file = try Descriptor.open(path: folder.path + "/mark", [.readWrite])
    #expect(throws: Errno.wouldBlock) {
      try leases.begin(
        HolderMark(of: .current), in: file, lease: 40_000_000, cap: nil, at: .now)
    }
    let error = WormholeError(.wouldBlock, "hold lock", "mark")
    #expect(error.code == .exhausted && error.hint?.contains("ulimit -u") == true)
  }

  @Test func whatIsDamagedIsSetAsideThoughTheFolderWasRemoved() throws {
    for heals in 1...2 {
      let path = container.path("channels", "n", "value.plist")
      try Descriptor.open(path: path, [.writeOnly, .truncate]).write([1, 2, 3])
      try slot.add(durability: .power)
      try slot.add(durability: .power)
      #expect(container.counters.heals == heals)
      #expect(try container.names(in: .damaged).count == 2)
      try remove("damaged")
    }
  }

  @Test func aMemberIsMadeThoughAllWereRemoved() throws {
    _ = try container.member("a")
    try remove("members")
    #expect(try container.existingMember("a") == nil)
    try container.member("a").place([1], as: "x", in: .inbox)
    try remove("members")
    try container.member("b").place([1], as: "x", in: .inbox)
    _ = try container.makeGuest()
    try remove("guests")
    _ = try container.makeGuest()
    #expect(try another().names(in: .members) == ["b"])
  }

  /// If the failed listing counted as done, the listener would receive nothing before the next
  /// change.
  @Test func whatCouldNotBeListedIsToldLater() throws {
    let names = Heard<FolderWatch.FolderChange>()
    let rule = FaultRule(.getdents, path: "channels", .fail(.inputOutput))
    var watch: FolderWatch?
    try FaultPoints.with([rule]) {
      watch = try container.watchNames(in: .channels) { names.add($0) }
    }
    try names.wait("it is told") { $0 == [.came("n")] }
    watch?.stop()
  }

  /// A listener that joins a directory whose watch is paused would not be notified.
  @Test func whoeverListensWhereAnotherPausesIsTold() throws {
    let home = try container.member("a")
    let first = try home.watch(.inbox, pauses: true) { _ in }
    let mask: InotifyMask = [.movedFrom, .deleted]
    try home.watch(.inbox, mask) { _ in }.stop()
    // A pause fails while another listener of the process is being registered.
    try eventually("it pauses") { first.pause() }
    let heard = Heard<WatchSignal>()
    let second = try home.watch(.inbox, mask) { heard.add($0) }
    // A rescan for notices that other tests have caused and lost would be heard as well.
    let masks = try watchMasks(of: home.part(.inbox).descriptor)
    #expect(masks.contains { $0.isSuperset(of: mask) }, "\(masks)")
    try home.place([1], as: "x", in: .inbox)
    #expect(try home.remove("x", from: .inbox))
    try heard.wait("it is told") { !$0.isEmpty }
    first.resume()
    #expect(first.pause() == false, "others listen")
    second.stop()
    try eventually("it pauses again") { first.pause() }
    first.stop()
  }

  /// A synced name belongs to the directory that was synced, and not to a directory that has
  /// replaced it since.
  @Test func aNameThatWasSyncedIsThatOfOneDirectory() throws {
    // On a busy machine the thread may run only after the directory has been replaced.
    for milliseconds in [500, 2000, 8000] {
      let name = "a\(milliseconds)"
      let home = try container.member(name)
      _ = try home.part(.inbox)
      let synced = Monitor<[String]?>(nil)
      // The first sync is for the member's directory, the second for the directory above.
      let slow = FaultRule(
        .fsync, path: "/members", number: 2, .delay(milliseconds: milliseconds))
      let thread = try Thread("syncing") {
        let calls = FaultPoints.with([slow]) { try? home.makeDurable(.inbox) }
        synced.signal { $0 = calls }
      }
      let nap = Duration.milliseconds(milliseconds * 2 / 5)
      let early: [String]? = synced.wait(until: .now + nap) { $0 }
      try remove("members", name, "inbox")
      #expect(home.forgetIfStale(.inbox))
      _ = try home.part(.inbox)
      thread.join()
      let calls = try FaultPoints.with { try home.makeDurable(.inbox) }
      let syncs = try #require(synced.withLock { $0 }).filter { $0.hasPrefix("fsync") }
      guard early == nil, syncs.last?.hasSuffix("/inbox (deleted)") == true else { continue }
      #expect(
        calls.contains { $0.hasPrefix("fsync") && $0.hasSuffix("/members/\(name)") }, "\(calls)")
      return
    }
    Issue.record("the machine is too slow")
  }
}
