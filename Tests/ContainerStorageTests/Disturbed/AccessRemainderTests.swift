import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Accesses whose files are disturbed by failed calls and by other programs.
@Suite(.blocking) struct AccessRemainderTests {
  private let folder: TemporaryDirectory
  private let container: Container
  private let logged: Heard<LogEntry>

  init() throws {
    let logged = Heard<LogEntry>()
    self.logged = logged
    folder = try TemporaryDirectory()
    var options = ContainerOptions.testing()
    options.environment.log = { logged.add($0) }
    container = try Container.open(folder.path + "/c", options: options)
  }

  private var target: AccessPath { AccessPath(folder.path + "/target") }

  // MARK: Presenters

  /// A file of a presenter that no program can read is reported once, and hides no other presenter.
  @Test func eachUnreadablePresenterIsReportedOnce() throws {
    let room = try AccessDirectory(container)
    let entry = PresenterEntry(
      [target], purpose: "x", guest: "0123456789abcdef", mindsReaders: true)
    let own = try room.present(entry) { _ in }
    let presenters = try container.root.descriptor.open(
      "system/coordination/presenters", .readOnlyDirectory)
    let process = "fedcba9876543210"
    _ = try presenters.open("\(process),1", .writeOnlyNew, mode: 0o600)
    try presenters.open("\(process),2", .writeOnlyNew, mode: 0o600)
      .write(BinaryEncoder().encode(1))
    try presenters.makeSymbolicLink("\(process),3", to: own.text)
    // Not the name of a presenter.
    _ = try presenters.open("\(process),04", .writeOnlyNew, mode: 0o600)
    let other = try AccessDirectory(container)
    for _ in 1...2 { #expect(try other.everyPresenter().map(\.key) == [own]) }
    let reasons = [
      "the file is empty", "the format is unknown", "the file was not created by a presenter",
    ]
    let expected = reasons.enumerated().map { index, reason in
      "warning: cannot read presenter '\(process),\(index + 1)': \(reason)"
    }
    let found = logged.all.map(\.description).filter { $0.contains("presenter") }
    #expect(found.sorted() == expected)
    room.unpresent(own)
  }

  /// Nobody would ask a presenter whose file cannot be read.
  @Test func aPresenterWithTooLongAPathIsRefused() throws {
    let room = try AccessDirectory(container)
    let path = AccessPath("/" + String(repeating: "x", count: PresenterEntry.largestFile))
    let entry = PresenterEntry(
      [path], purpose: "x", guest: "0123456789abcdef", mindsReaders: true)
    var isPrepared = false
    let error = try failure { _ = try room.present(entry) { _ in isPrepared = true } }
    #expect(error.errno == Errno.invalidArgument.rawValue)
    #expect(!isPrepared)
    #expect(try room.everyPresenter().isEmpty)
  }

  /// The guest of an entry becomes the name of a directory.
  @Test func anEntryOfAPresenterIsReadOnlyWithPathsAndAGuest() throws {
    func read(_ paths: [String], _ guest: String, minds: Bool = true) throws -> PresenterEntry? {
      let entry = PresenterEntry(
        paths.map { AccessPath($0) }, purpose: "x", guest: guest, mindsReaders: minds)
      let bytes = try entry.encoded()
      return try? PresenterEntry(bytes)
    }
    let guest = "0123456789abcdef"
    let sound = try #require(try read(["/a", "/b"], guest, minds: false))
    #expect(sound.paths.map(\.text) == ["/a", "/b"])
    #expect(sound.guest == guest && sound.purpose == "x" && !sound.mindsReaders)
    let others: [(paths: [String], guest: String)] = [
      ([], guest), (["/a", "b"], guest), (["/a"], "../x"), (["/a"], ""),
    ]
    for other in others {
      let isRead = try read(other.paths, other.guest) != nil
      #expect(!isRead, "\(other)")
    }
  }

  // MARK: Notices

  /// Accesses that were in the directory have no end of which the kernel tells.
  @Test(arguments: ["waiting", "running", "overtaken", "processes"])
  func aDirectoryThatIsTakenAwayConcernsAllWaiters(_ name: String) throws {
    let room = try AccessDirectory(container)
    _ = try room.showProcess()
    let bell = room.bell
    bell.enter(room)
    defer { bell.leave() }
    let before = bell.rings
    try container.root.descriptor.rename(
      "system/coordination/\(name)", to: folder.descriptor, "away")
    #expect(throws: Never.self) {
      try eventually("all waiters are told") { bell.rings > before }
    }
  }

  // MARK: New files

  /// Other processes would have to remove what is left after a single error.
  @Test func aHiddenDirectoryIsRemovedAtTheThirdTry() throws {
    let room = try AccessDirectory(container)
    let claim = AccessClaim([.init(target, writes: true)], purpose: "")
    var request = AccessRequest(claim, subject: "target")
    request.replaced = [target]
    let access = AccessExecutor(room, request, .unlimited)
    try access.begin()
    let home = try #require(access.home)
    let path = try #require(access.newPaths.first)
    try Descriptor.open(path: path, .writeOnlyNew, mode: 0o600).write("new")
    let rules = [1, 2].map {
      FaultRule(.rmdir, path: "/.wormhole-", number: $0, .fail(.inputOutput))
    }
    try FaultPoints.with(rules) { try access.end(commits: false) }
    #expect(try folder.descriptor.names() == ["c"])
    #expect(try room.passedNames(in: home) == [])
  }

  /// A new file beside the target, and its path.
  private func makeNew() throws -> HiddenFile {
    let name = AccessName(stamp: 1, process: "0123456789abcdef", number: 1)
    let maker = HiddenDirectory.Maker(
      container: "c", identity: "fedcba9876543210", owner: Processes.effectiveUser)
    let path = HiddenFile.path(beside: target, name, 0)
    let file = try HiddenFile(beside: target, at: path, by: maker)
    try Descriptor.open(path: file.path, .writeOnlyNew, mode: 0o600).write("new")
    return file
  }

  /// Between two attempts a program that does not coordinate has made the file.
  @Test func aFileThatHasComeMeanwhileIsReplaced() throws {
    try folder.write("foreign", to: "target")
    let file = try makeNew()
    let missing = FaultRule(.rename, path: "/target", .fail(.noSuchFile))
    var outcome: HiddenFile.ExchangeOutcome?
    let calls = try FaultPoints.with([missing]) { outcome = try file.exchange() }
    #expect(outcome == .exchanged)
    #expect(calls.count { $0.hasPrefix("rename ") } == 3, "\(calls)")
    #expect(try folder.read("target") == "new")
    let isRemoved = try file.remove()
    #expect(isRemoved)
    #expect(try folder.descriptor.names().sorted() == ["c", "target"])
  }

  /// Some file systems know no rename but the plain one.
  @Test(arguments: [Errno.invalidArgument, .notImplemented, .notSupported])
  func aFirstFileIsPutIntoPlaceByAPlainRename(_ error: Errno) throws {
    let file = try makeNew()
    let unknown = FaultRule(.rename, path: "/target", number: 2, .fail(error))
    var outcome: HiddenFile.ExchangeOutcome?
    try FaultPoints.with([unknown]) { outcome = try file.exchange() }
    #expect(outcome == .exchanged)
    #expect(try folder.read("target") == "new")
    let isRemoved = try file.remove()
    #expect(isRemoved)
    #expect(try folder.descriptor.names().sorted() == ["c", "target"])
  }

  @Test func aFirstFileThatCannotBePutIntoPlaceIsAnError() throws {
    let file = try makeNew()
    let full = FaultRule(.rename, path: "/target", number: 2, .fail(.noSpace))
    FaultPoints.with([full]) {
      #expect(throws: Errno.noSpace) { _ = try file.exchange() }
    }
    #expect(try folder.descriptor.names().contains("target") == false)
    #expect(try file.exchange() == .exchanged)
    #expect(try folder.read("target") == "new")
  }

  // MARK: Paths

  /// Directories that do not exist yet are named below the real place of those that do.
  @Test func aMissingPathIsBelowTheRealPlaceOfItsDirectory() throws {
    try folder.descriptor.makeDirectory("real", mode: 0o700)
    try folder.descriptor.makeSymbolicLink("link", to: "real")
    try folder.write("", to: "file")
    let real = try #require(try AccessPath.resolve(folder.path + "/real").first).text
    for rest in ["a", "a/b", "a/b/c"] {
      let found = try AccessPath.resolve("\(folder.path)/link/\(rest)")
      #expect(found.map(\.text) == ["\(real)/\(rest)"])
    }
    let error = try failure { _ = try AccessPath.resolve("\(folder.path)/file/a/b") }
    #expect(error.code == .refused)
    #expect(error.operation == "coordinate")
    #expect(error.errno == Errno.notADirectory.rawValue)
  }
}
