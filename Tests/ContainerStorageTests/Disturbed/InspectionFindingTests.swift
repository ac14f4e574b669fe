import FoundationEssentials
import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// The findings of an inspection about modes, names, limits, workers and accesses.
@Suite(.blocking) struct InspectionFindingTests {
  private let folder: TemporaryDirectory
  private let container: Container

  init() throws { (folder, container) = try Container.forTest() }

  @Test func aContainerThatOthersMayReadIsNoted() throws {
    #expect(try !container.inspect().contains { $0.what.hasPrefix("readable by more users") })
    try container.root.descriptor.setMode(0o755)
    let expected = Diagnosis(
      .note, "container", "readable by more users than its owner (mode 755)",
      advice: "chmod 700 '\(container.path)'")
    #expect(try container.inspect().contains(expected))
  }

  /// Names that file systems and killed programs give are told apart from a user's.
  @Test func namesOfFileSystemsAndKilledProgramsAreExplained() throws {
    let root = container.root
    for name in [".nfs0001", ".fuse_hidden0001", ".wormhole-short"] {
      _ = try root.descriptor.open(name, .writeOnlyNew, mode: 0o600)
    }
    try root.descriptor.makeDirectory(".wormhole-0123456789abcdef", mode: 0o700)
    _ = try root.descriptor.open("notices/%zz", .writeOnlyNew, mode: 0o600)
    let found = try container.inspect()
    for name in [".nfs0001", ".fuse_hidden0001"] {
      #expect(
        found.filter { $0.subject == name } == [
          Diagnosis(
            .note, name, "a removed file that a process still has open",
            advice: "the file system removes the file after the last close")
        ])
    }
    let left = ".wormhole-0123456789abcdef"
    #expect(
      found.filter { $0.subject == left } == [
        Diagnosis(
          .note, left, "probably left by a process that was killed while creating a directory",
          advice: "run 'rmdir' if the directory is empty")
      ])
    for name in [".wormhole-short", "notices/%zz"] {
      #expect(
        found.filter { $0.subject == name } == [
          Diagnosis(
            .note, name, "a foreign file: ignored, because the library does not use the name",
            advice: "move the file elsewhere if no program needs the file")
        ])
    }
  }

  @Test(arguments: [
    FaultRule(.inotifyInit, .fail(.tooManyOpenFiles)), FaultRule(.inotifyAdd, .fail(.noSpace)),
  ])
  func watchesThatAreNotAvailableAreAProblem(_ rule: FaultRule) throws {
    guard case .fail(let error) = rule.action else { return }
    var found: [Diagnosis] = []
    try FaultPoints.with([rule]) { found = try container.inspect() }
    #expect(
      found.filter { $0.subject == "inotify" } == [
        Diagnosis(
          .problem, "inotify", "no watch is available: \(error)",
          advice: "raise fs.inotify.max_user_instances or fs.inotify.max_user_watches")
      ])
    let fine = Diagnosis(.fine, "inotify", "an instance and a watch are available")
    #expect(try container.inspect().filter { $0.subject == "inotify" } == [fine])
  }

  @Test func aWorkerIsToldUntilItsDirectoryIsGone() throws {
    let queue = try container.member("q", in: .queues)
    let (home, presence) = try queue.makeWorker(deadline: nil)
    func findings() throws -> [Diagnosis] {
      try container.inspect().filter { $0.subject == home.path }
    }
    let living = try findings()
    #expect(living.map(\.severity) == [.note])
    #expect(living.first?.what.hasPrefix("a worker: ") == true, "\(living)")
    presence.release()
    #expect(
      try findings() == [
        Diagnosis(
          .note, home.path, "left by a worker whose process has ended",
          advice: "the next worker of 'q' returns its messages to the queue")
      ])
    #expect(try home.removeDeadWorker())
    #expect(try findings() == [])
  }

  /// A file that cannot be read names no machine to which the messages could be carried.
  @Test func aHomeElsewhereIsAProblemIfItIsNotNamed() throws {
    let home = try container.member("a")
    let path = "members/a/\(MemberDirectory.elsewhereName)"
    let before = "its home is another machine"
    func severities() throws -> [Diagnosis.Severity] {
      try container.inspect().filter { $0.subject == path && $0.what.hasPrefix(before) }
        .map(\.severity)
    }
    #expect(try severities() == [])
    try home.write(Elsewhere(machine: "0123456789abcdef", since: Date()))
    #expect(try severities() == [.note])
    let file = try Descriptor.open(path: container.path(path), [.writeOnly, .truncate])
    try file.write("torn")
    #expect(try severities() == [.problem])
  }

  /// A person pastes the command of the advice into a shell.
  @Test(arguments: [
    ("app", "app"), ("my tv", "'my tv'"), ("it's", "'it'\\''s'"), (".hidden", ".hidden"),
  ])
  func theAdviceForADamagedSuiteIsACommandForThisSuite(_ suite: String, _ word: String) throws {
    let slot = try container.slot(prefix: Container.Folder.suitePrefix, suite)
    try container.root.descriptor.makeDirectory(slot.path, mode: 0o700)
    let path = slot.path + "/value.plist"
    try container.root.descriptor.open(path, .writeOnlyNew, mode: 0o600).write("damaged")
    let found = try container.inspect().filter { $0.subject == path }
    #expect(
      found.map(\.advice) == [
        "remove all settings with 'wormhole defaults delete \(word)'; "
          + "the file moves to damaged/"
      ])
  }

  /// A container may have more accesses than a person can read.
  @Test func ofManyAccessesOnlyTheFirstAreTold() throws {
    let room = try AccessDirectory(container)
    let accesses = (1...52).map { number in
      let path = AccessPath("\(folder.path)/f\(number)")
      let claim = AccessClaim([.init(path, writes: false)], purpose: "")
      return AccessExecutor(room, AccessRequest(claim, subject: "f\(number)"), .unlimited)
    }
    for access in accesses { try access.begin() }
    let home = "system/\(AccessDirectory.slotName)"
    func told() throws -> (single: Int, rest: [Diagnosis]) {
      let found = try container.inspect()
      return (
        found.count { $0.subject.hasPrefix("\(home)/running/") },
        found.filter { $0.subject == home }
      )
    }
    #expect(try told().single == 50)
    #expect(try told().rest == [Diagnosis(.note, home, "2 more accesses to files")])
    for access in accesses[..<2] { try access.end(commits: false) }
    #expect(try told().single == 50)
    #expect(try told().rest == [])
    for access in accesses[2...] { try access.end(commits: false) }
    #expect(try told().single == 0)
  }

  @Test func anAccessIsDescribedByItsFiles() throws {
    let room = try AccessDirectory(container)
    let (one, two) = (folder.path + "/one", folder.path + "/two")
    let claim = AccessClaim(
      [.init(AccessPath(one), writes: true), .init(AccessPath(two), writes: false)], purpose: "")
    let access = AccessExecutor(room, AccessRequest(claim, subject: "two files"), .unlimited)
    try access.begin()
    let words = try container.accesses().map(\.description)
    #expect(words.count == 1)
    let parts = ["write '\(one)'", "read '\(two)'"]
    let possible = [parts, parts.reversed()].map { $0.joined(separator: " and ") }
    #expect(possible.contains(words.first ?? ""), "\(words)")
    try access.end(commits: false)
    #expect(try container.accesses().isEmpty)
  }
}
