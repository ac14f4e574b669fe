import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Files in `staging/` are swept once their maker is dead, and not before.
@Suite(.blocking) struct StagingTests {
  private let folder: TemporaryDirectory
  private let path: String

  init() throws {
    folder = try TemporaryDirectory()
    path = folder.path + "/c"
    _ = try Container.open(path, options: .testing())
  }

  private func staged() throws -> [String] {
    try folder.descriptor.open("c/staging", [.readOnly, .directory]).names().sorted()
  }

  /// A process that makes a channel, with a fault on the way.
  private func start(_ rule: String) throws -> Running {
    try Running(
      .add(path, "n", times: 1), environment: ["WORMHOLE_FAULTS=\(rule)"])
  }

  /// With its directory and the first lock file staged, both flocked.
  private static let linking = "link~lock/1:before:"

  @Test func aLivingMakerKeepsWhatItHasStaged() throws {
    let maker = try start(Self.linking + "stop")
    try maker.waitUntilStopped()
    let before = try staged()
    #expect(before.count == 2)
    let container = try Container.open(path, options: .testing())
    #expect(container.counters.swept == 0)
    #expect(try staged() == before)
    try maker.child.send(.go)
    #expect(try maker.outcome().output == "1\n")
    #expect(try staged() == [])
  }

  @Test func aDirectoryInUseIsNotSwept() throws {
    let container = try Container.open(path, options: .testing())
    try container.staging.withDirectory { _ throws(Errno) in
      #expect((try? Container.open(path, options: .testing()).counters.swept) == 0)
      #expect((try? staged().count) == 1)
    }
    #expect(try staged() == [])
  }

  @Test func whatADeadMakerLeftIsSwept() throws {
    let maker = try start(Self.linking + "kill")
    #expect(try maker.outcome().status == .signalled(9))
    #expect(try staged().count == 2)
    let container = try Container.open(path, options: .testing())
    #expect(container.counters.swept == 2)
    #expect(try staged() == [])
    #expect(try container.slot(.channels, "n").add() == 1)
  }

  /// Between making a file and flocking it, a sweeper takes the file for the leftover of a dead
  /// process.
  @Test func aMakerWhoseFileWasSweptMakesAnother() throws {
    let maker = try start("flock~staging:before:stop")
    try maker.waitUntilStopped()
    #expect(try staged().count == 1)
    #expect(try Container.open(path, options: .testing()).counters.swept == 1)
    #expect(try staged() == [])
    try maker.child.send(.go)
    #expect(try maker.outcome().output == "1\n")
    #expect(try staged() == [])
  }

  @Test func foreignNamesStay() throws {
    let staging = try folder.descriptor.open("c/staging", [.readOnly, .directory])
    let foreign = ["0123456789abcde", "0123456789ABCDEF", "0123456789abcdef0", "README"]
    for name in foreign { _ = try staging.open(name, [.writeOnly, .create], mode: 0o600) }
    // A name of ours, but an object that our programs never make.
    try staging.makeSymbolicLink("00000000000000aa", to: "README")
    try staging.makeFIFO("00000000000000bb", mode: 0o600)
    _ = try staging.open("00000000000000cc", [.writeOnly, .create], mode: 0o600)
    let container = try Container.open(path, options: .testing())
    #expect(container.counters.swept == 1)
    #expect(try staged() == (foreign + ["00000000000000aa", "00000000000000bb"]).sorted())
  }

  /// Another tool removes both directories that a placement needs.
  @Test func aFileIsPlacedOnceBothItsDirectoriesAreMadeAgain() throws {
    let container = try Container.open(path, options: .testing())
    let home = try container.member("a")
    try home.place([1], as: "x", in: .inbox)
    for directory in ["staging", "members/a/inbox"] {
      #expect(try run("rm", ["-r", "\(path)/\(directory)"]).status == .exited(0))
    }
    try home.place([2], as: "y", in: .inbox)
    let names = try home.names(in: .inbox) { String(cString: $0) }
    #expect(names == ["y"])
    #expect(try staged() == [])
  }

  /// A part that another tool has removed is opened again after the first failure.
  @Test(arguments: ["free", "replacing", "unique"])
  func aFileForAPartThatIsGoneIsStagedTwice(_ way: String) throws {
    let container = try Container.open(path, options: .testing())
    let home = try container.member("a")
    try home.place([1], as: "x", in: .inbox)
    #expect(try run("rm", ["-r", path + "/members/a/inbox"]).status == .exited(0))
    let calls = try FaultPoints.with {
      switch way {
      case "replacing": try home.place([2], as: "y", in: .inbox, replacing: true)
      case "unique":
        _ = try home.place([2], as: "y", in: .inbox, durability: .process, unique: "u") { true }
      default: try home.place([2], as: "y", in: .inbox)
      }
    }
    #expect(calls.count { $0.hasPrefix("write ") } == 2, "\(calls)")
    let names = try home.names(in: .inbox) { String(cString: $0) }
    #expect(names == ["y"])
  }

  /// No attempt can succeed in a member's directory that another tool has removed with all parts.
  @Test(arguments: ["free", "replacing", "unique"])
  func aFileForAMemberThatIsGoneIsStagedOnce(_ way: String) throws {
    let container = try Container.open(path, options: .testing())
    let home = try container.member("a")
    _ = try home.place([1], as: "x", in: .inbox, durability: .process, unique: "t") { true }
    #expect(try run("rm", ["-r", path + "/members/a"]).status == .exited(0))
    let calls = FaultPoints.with {
      let failure = Errno.of { () throws(Errno) in
        switch way {
        case "replacing": try home.place([2], as: "y", in: .inbox, replacing: true)
        case "unique":
          _ = try home.place([2], as: "y", in: .inbox, durability: .process, unique: "u") { true }
        default: try home.place([2], as: "y", in: .inbox)
        }
      }
      #expect(failure == .noSuchFile)
    }
    #expect(calls.count { $0.hasPrefix("write ") } == 1, "\(calls)")
    #expect(try staged() == [])
  }

  /// A sweep has taken the first file for that of a dead process.
  @Test func aFileThatIsStagedAgainIsSyncedAgain() throws {
    let container = try Container.open(path, options: .testing())
    let home = try container.member("a")
    let rule = FaultRule(.rename, path: "a/inbox", .fail(.wouldBlock))
    let calls = try FaultPoints.with([rule]) {
      try home.place([1], as: "x", in: .inbox, durability: .power)
    }
    let steps = calls.map { String($0.prefix { $0 != " " }) }
    #expect(steps.count { $0 == "rename" } == 2, "\(calls)")
    let syncs = calls.filter { $0.hasPrefix("fsync ") && $0.contains("staging/") }
    #expect(syncs.count == 2, "\(calls)")
    #expect(try staged() == [])
  }

  /// In a container of a group the user's own folder is made when something is first staged.
  @Test func whatWasRemovedBeforeItWasUsedIsMadeAnew() throws {
    let folder = try TemporaryDirectory()
    var options = ContainerOptions.testing()
    options.sharing = .group
    let path = folder.path + "/g"
    _ = try Container.open(path, options: options).member("a")
    try folder.write("content", to: "file")
    for step in ["place", "stage"] {
      let container = try Container.open(path, options: options)
      let home = try container.member("a")
      #expect(try run("rm", ["-r", path + "/staging"]).status == .exited(0))
      if step == "place" {
        try home.place([1], as: "x", in: .inbox)
      } else {
        let file = try UserPath(folder.path + "/file").open("send")
        _ = try Attachment.stage(file, in: container, moving: false, durability: .process) { _ in
          true
        }
      }
    }
  }
}
