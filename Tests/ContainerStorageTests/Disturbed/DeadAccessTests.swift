import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Accesses and presenters of processes that have died, or that seem to have died.
///
/// A second directory object stands for another process; without its file in `processes/`, this
/// process counts as dead.
@Suite(.blocking) struct DeadAccessTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let theirs: AccessDirectory
  private let ours: AccessDirectory

  init() throws {
    (folder, container) = try Container.forTest()
    theirs = try AccessDirectory(container)
    ours = try AccessDirectory(container)
  }

  private func access(
    _ room: AccessDirectory, _ name: String, beside others: [AccessDirectory] = []
  ) -> AccessExecutor {
    let purpose = room === ours ? "ours" : "theirs"
    let path = AccessPath(folder.path + "/" + name)
    let claim = AccessClaim([.init(path, writes: true)], purpose: purpose)
    var request = AccessRequest(claim, subject: name)
    request.others = { others }
    return AccessExecutor(room, request, .unlimited)
  }

  private func coordination() throws(Errno) -> Descriptor {
    try container.root.descriptor.open("system/coordination", .readOnlyDirectory)
  }

  private func removeProcess(of room: AccessDirectory) throws {
    let name = try #require(room.ownName)
    try coordination().unlink("processes/" + name)
  }

  // MARK: Accesses

  /// The dead process waited for an access of this process, which now wants the file of the dead
  /// one.
  @Test func aDeadProcessClosesNoCycle() throws {
    let (outer, own) = (access(theirs, "a"), access(ours, "b"))
    try outer.begin()
    try own.begin()
    let waiting = access(theirs, "b")
    let runs = try waiting.arrive(inside: [outer.token])
    #expect(!runs)
    try removeProcess(of: theirs)
    let inner = access(ours, "a")
    #expect(throws: Never.self) { try inner.begin(inside: [own.token]) }
    try? inner.end(commits: false)
    try own.end(commits: false)
    try? waiting.end(commits: false)
    try? outer.end(commits: false)
  }

  /// The same accesses of a living process are a cycle.
  @Test func aLivingProcessClosesACycle() throws {
    let (outer, own) = (access(theirs, "a"), access(ours, "b"))
    try outer.begin()
    try own.begin()
    let waiting = access(theirs, "b")
    _ = try waiting.arrive(inside: [outer.token])
    let inner = access(ours, "a")
    let error = try failure { try inner.begin(inside: [own.token]) }
    #expect(error.code == .deadlock)
    try own.end(commits: false)
    try waiting.end(commits: false)
    try outer.end(commits: false)
  }

  /// The first process that had an access in the other container was killed before it had made all
  /// directories.
  @Test func anUnfinishedDirectoryOfAnotherContainerStopsNoInnerAccess() throws {
    let other = try Container.open(folder.path + "/d", options: .testing())
    try other.root.descriptor.makeDirectory("system/coordination", mode: 0o700)
    let room = try AccessDirectory(other)
    let (outer, blocker) = (access(ours, "a"), access(theirs, "b"))
    try outer.begin()
    try blocker.begin()
    let inner = access(ours, "b", beside: [room])
    #expect(throws: Never.self) {
      let runs = try inner.arrive(inside: [outer.token])
      #expect(!runs)
    }
    try blocker.end(commits: false)
    try? inner.begin()
    try? inner.end(commits: false)
    try outer.end(commits: false)
  }

  /// A program that the dead process has started would be refused an access of its own.
  @Test func aDeadProcessHasNoRunningAccess() throws {
    let dead = access(theirs, "a")
    try dead.begin()
    #expect(ours.running(dead.token)?.purpose == "theirs")
    try removeProcess(of: theirs)
    #expect(ours.running(dead.token)?.purpose == nil)
    try? dead.end(commits: false)
  }

  /// The presenters of the file would otherwise never learn that the dead writer has ended.
  @Test func aRemovedWriterIsKnownAlsoAfterALaterError() throws {
    let dead = access(theirs, "a")
    try dead.begin()
    let name = try #require(dead.name)
    try removeProcess(of: theirs)
    let home = try #require(try ours.existingDirectory())
    let rule = FaultRule(.open, path: "coordination/passed", .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      #expect(throws: Errno.tooManyOpenFiles) { _ = try ours.discard(name, in: home) }
    }
    #expect(try ours.names(in: .running, of: home) == [])
    #expect(ours.takeBuried().map(\.purpose) == ["theirs"])
    try? dead.end(commits: false)
  }

  /// The presenters of its own purpose would be told of a change, and the others twice.
  @Test func anOwnAccessThatIsRemovedLateIsNoDeadWriter() throws {
    let own = access(ours, "a")
    try own.begin()
    let rule = FaultRule(.unlink, path: "running/", persistent: true, .fail(.inputOutput))
    FaultPoints.with([rule]) { try? own.end(commits: false) }
    let home = try #require(try ours.existingDirectory())
    #expect(try ours.names(in: .running, of: home).count == 1)
    ours.removeLeftovers()
    #expect(try ours.names(in: .running, of: home) == [])
    #expect(ours.takeBuried().isEmpty)
  }

  /// The system refuses the first sweep of a process, or the access for which it sweeps is over.
  @Test(arguments: [true, false]) func aSweepThatFailsIsRepeated(_ isOver: Bool) throws {
    let dead = access(theirs, "a")
    try dead.begin()
    try removeProcess(of: theirs)
    let home = try #require(try ours.existingDirectory())
    if isOver {
      ours.removeLeftovers { true }
    } else {
      let rule = FaultRule(.open, persistent: true, .fail(.inputOutput))
      FaultPoints.with([rule]) { ours.removeLeftovers() }
    }
    #expect(try ours.names(in: .running, of: home).count == 1)
    ours.removeLeftovers()
    #expect(try ours.names(in: .running, of: home) == [])
    try? dead.end(commits: false)
  }

  /// A member of a group may give a file or a link the name of the directory of skipped accesses.
  @Test(arguments: [true, false])
  func anEntryOfAnotherKindInPlaceOfSkippedAccessesStopsNoSweep(_ isLink: Bool) throws {
    let dead = access(theirs, "a")
    try dead.begin()
    try removeProcess(of: theirs)
    let directory = try coordination()
    if isLink {
      try directory.makeSymbolicLink("passed", to: "running")
    } else {
      _ = try directory.open("passed", .writeOnlyNew, mode: 0o600)
    }
    let next = access(ours, "a")
    #expect(throws: Never.self) { try next.begin() }
    try? next.end(commits: false)
    let home = try #require(try ours.existingDirectory())
    #expect(throws: Never.self) { _ = try ours.sweepDead(in: home) }
    try? dead.end(commits: false)
  }

  /// The report of an access counts it as one of a living process then.
  @Test func aProcessThatCannotBeCheckedHidesNoAccess() throws {
    let running = access(theirs, "a")
    try running.begin()
    let process = try #require(theirs.ownName)
    let rule = FaultRule(
      .open, path: "processes/" + process, persistent: true, .fail(.accessDenied))
    FaultPoints.with([rule]) {
      #expect(throws: Never.self) {
        let found = try container.accesses()
        #expect(found.map(\.state) == ["running"])
        #expect(found.map(\.isAlive) == [true])
      }
    }
    try running.end(commits: false)
  }

  /// However many accesses a process has.
  @Test func aListingChecksEachProcessOnce() throws {
    let running = ["a", "b", "c"].map { access(theirs, $0) }
    for one in running { try one.begin() }
    let process = try #require(theirs.ownName)
    var found: [AccessReport] = []
    let calls = try FaultPoints.with { found = try container.accesses() }
    #expect(found.count == 3)
    let own = ProcessIdentity.current.process
    #expect(found.allSatisfy { $0.isAlive && $0.holder?.process == own })
    // The file is opened to read its heartbeat, and to check its lock.
    let opened = calls.filter { $0.hasPrefix("open ") && $0.hasSuffix("processes/" + process) }
    #expect(opened.count == 2, "\(calls)")
    for one in running { try one.end(commits: false) }
  }

  /// A second name stands for an access that moves on between two listings.
  @Test func anAccessThatMovesOnIsReportedOnce() throws {
    let running = access(theirs, "a")
    try running.begin()
    let name = try #require(running.name)
    let directory = try coordination()
    let waiting = try directory.open("waiting", .readOnlyDirectory)
    try directory.link("running/" + name.text, to: waiting, name.text)
    #expect(try container.accesses().map(\.state) == ["running"])
    try waiting.unlink(name.text)
    try running.end(commits: false)
  }

  /// Conflicting accesses would run side by side: later arrivals list the new directory.
  @Test func anAccessArrivesInTheDirectoryThatItHasListed() throws {
    // While this access runs, the next access of its process lists the directories.
    let first = access(theirs, "b")
    try first.begin()
    let running = "system/coordination/running"
    try container.root.descriptor.rename(running, to: folder.descriptor, "away")
    try container.root.descriptor.makeDirectory(running, mode: 0o700)
    let second = access(theirs, "a")
    try second.begin()
    let other = access(ours, "a")
    let runs = try other.arrive()
    #expect(!runs)
    try second.end(commits: false)
    try other.end(commits: false)
    // The file of the first access is in the moved directory.
    try? first.end(commits: false)
  }

  // MARK: Processes

  /// A presenter takes the asking process for dead if the process's file is missing.
  @Test func aProcessWhoseFileWasRemovedIsShownAgain() throws {
    let first = try ours.showProcess()
    #expect(try ours.showProcess() == first)
    try removeProcess(of: ours)
    let second = try ours.showProcess()
    #expect(second != first)
    let home = try #require(try theirs.existingDirectory())
    #expect(try theirs.isAlive(second, in: home))
    #expect(try !theirs.isAlive(first, in: home))
  }

  /// Otherwise the process, and all its later accesses, would count as dead until it ends.
  @Test(arguments: ["system/coordination/processes", "system/coordination"])
  func aProcessWhoseDirectoryWasMovedAwayIsShownAgain(_ path: String) throws {
    let first = access(theirs, "a")
    try first.begin()
    try first.end(commits: false)
    try container.root.descriptor.rename(path, to: folder.descriptor, "away")
    // The next access makes the directory of accesses again.
    if path.hasSuffix("processes") {
      try container.root.descriptor.makeDirectory(path, mode: 0o700)
    }
    let second = access(theirs, "a")
    try second.begin()
    let process = try #require(theirs.ownName)
    let home = try #require(try ours.existingDirectory())
    #expect(try ours.isAlive(process, in: home))
    try second.end(commits: false)
  }

  /// A failure of the system to look for the file does not give the process another name, under
  /// which its present accesses would count as a dead process's.
  @Test func aProcessWhoseFileCannotBeLookedForKeepsItsName() throws {
    let running = access(theirs, "a")
    try running.begin()
    let process = try #require(theirs.ownName)
    let rule = FaultRule(.fstatat, path: "processes/" + process, .fail(.inputOutput))
    FaultPoints.with([rule]) {
      let next = access(theirs, "b")
      #expect(throws: WormholeError.self) { try next.begin() }
    }
    #expect(theirs.ownName == process)
    let home = try #require(try ours.existingDirectory())
    #expect(try ours.isAlive(process, in: home))
    try running.end(commits: false)
  }

  /// A process that cannot be checked keeps its presenters, and those of dead processes are swept.
  @Test func aProcessThatCannotBeCheckedStopsNoSweepOfPresenters() throws {
    let entry = PresenterEntry(
      [AccessPath(folder.path + "/a")], purpose: "x", guest: "0123456789abcdef",
      mindsReaders: true)
    let kept = try theirs.present(entry) { _ in }
    let other = try AccessDirectory(container)
    let swept = try other.present(entry) { _ in }
    try removeProcess(of: theirs)
    try removeProcess(of: other)
    let home = try #require(try ours.existingDirectory())
    let rule = FaultRule(
      .open, path: "processes/" + kept.process, persistent: true, .fail(.accessDenied))
    FaultPoints.with([rule]) {
      #expect(throws: Never.self) {
        let count = try ours.sweepPresenters(in: home)
        #expect(count == 1)
      }
    }
    let left = try ours.everyPresenter()
    #expect(left.keys.contains(kept))
    #expect(!left.keys.contains(swept))
    theirs.unpresent(kept)
  }

  /// The file of a dead process keeps its last heartbeat, until a process removes the file.
  @Test func theReplyOfAProcessThatHasEndedIsNotAwaited() throws {
    let own = access(ours, "a")
    try own.begin()
    let dead = "0123456789abcdef"
    let file = try coordination().open("processes/" + dead, [.readWrite, .create], mode: 0o600)
    var mark = HolderMark(of: .current)
    mark.begin()
    try mark.write(to: file)
    var asked = AskedProcesses()
    let isLostAtOnce = asked.isLost(dead, in: ours)
    #expect(!isLostAtOnce, "it has just been asked")
    let isLost = asked.isLost(dead, in: ours)
    #expect(isLost)
    try own.end(commits: false)
  }

  /// An access asks all presenters of living processes, and of processes that cannot be checked.
  @Test func aPresenterIsLeftOutOnlyIfItsProcessIsDead() throws {
    let path = AccessPath(folder.path + "/a")
    let entry = PresenterEntry(
      [path], purpose: "x", guest: "0123456789abcdef", mindsReaders: true)
    let own = try theirs.present(entry) { _ in }
    func asked(but purposes: Set<String> = [], isKnown: Bool = false) throws -> [PresenterName] {
      Array(try ours.presenters(of: [path], but: purposes) { _ in isKnown }.keys)
    }
    let rule = FaultRule(
      .open, path: "processes/" + own.process, persistent: true, .fail(.accessDenied))
    var refused: [PresenterName] = []
    try FaultPoints.with([rule]) { refused = try asked() }
    #expect(refused == [own])
    #expect(try asked() == [own])
    #expect(try asked(but: ["x"]) == [])
    try removeProcess(of: theirs)
    #expect(try asked(isKnown: true) == [own])
    #expect(try asked() == [])
    #expect(try ours.everyPresenter().isEmpty)
  }

  // MARK: Files of messages

  /// A member of a group may put anything into another member's `files/`.
  @Test func entriesThatAreNoFilesOfMessagesStopNoSweep() throws {
    let home = try container.member("a")
    let files = try home.part(.files)
    try files.descriptor.makeDirectory("directory", mode: 0o700)
    for name in ["closed", "left"] {
      _ = try files.descriptor.open(name, .writeOnlyNew, mode: 0o600)
    }
    let rule = FaultRule(
      .open, path: "files/closed", persistent: true, .fail(.accessDenied))
    for isLooking in [true, false] {
      FaultPoints.with([rule]) {
        #expect(throws: Never.self) {
          let swept = try home.sweepFiles(isLooking: isLooking) { [$0] }
          #expect(swept == ["left"])
        }
      }
    }
    #expect(try files.descriptor.names().sorted() == ["closed", "directory"])
  }
}
