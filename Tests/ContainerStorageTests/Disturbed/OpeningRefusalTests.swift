import TestSupport
import TestTraits
import Testing
import WormholePropertyLists
import WormholeSyscalls

@testable import WormholeContainerStorage

/// Directories and markers that a program may not use, and the remedies that it names.
@Suite(.blocking) struct OpeningRefusalTests {
  private let folder: TemporaryDirectory
  private let user = Processes.effectiveUser

  init() throws { folder = try TemporaryDirectory() }

  private func location(_ group: String) throws -> ContainerLocation {
    try ContainerLocation(
      group: group, environment: ["WORMHOLE_ROOT": folder.path], home: nil)
  }

  /// Gives the path to another user; false, with a notice, where the process may not.
  private func giveAway(_ path: String) throws -> Bool {
    guard user == 0 else {
      skip("directories and files of another user", because: "only root can make them")
      return false
    }
    #expect(try run("chown", ["12345", path]).status == .exited(0))
    return true
  }

  private func expectGroupRefusal(_ error: WormholeError, _ path: String) throws {
    #expect(error.code == .refused)
    #expect(
      error.reason == "'\(path)' belongs to user \(user) and has the mode 700, not the mode of a "
        + "group's directory")
    #expect(
      error.hint?.hasSuffix("if the container made the directory: chmod 2770 '\(path)'") == true,
      "\(error)")
    // A person decides whether the directory is opened to the group.
    #expect(try Descriptor.status(ofPath: path).mode == 0o700)
  }

  @Test func aLocationOfAnotherUserIsRefused() throws {
    let location = try location("a")
    try location.prepare(.owner)
    guard try giveAway(location.directory) else { return }
    let error = try failure { try location.prepare(.owner) }
    #expect(error.code == .refused)
    #expect(error.subject == location.directory)
    #expect(error.reason == "the directory belongs to user 12345, not to user 0")
  }

  @Test func aUsersLocationIsNotOpenedToAGroup() throws {
    let location = try location("a")
    try location.prepare(.owner)
    let error = try failure { try location.prepare(.group) }
    #expect(error.operation == "use directory")
    try expectGroupRefusal(error, location.directory)
  }

  @Test func aUsersDirectoryBecomesNoContainerOfAGroup() throws {
    try folder.descriptor.makeDirectory("private", mode: 0o700)
    var options = ContainerOptions.testing()
    options.sharing = .group
    let path = folder.path + "/private"
    let error = try failure { _ = try Container.open(path, options: options) }
    #expect(error.operation == "open container")
    try expectGroupRefusal(error, path)
    #expect(try folder.descriptor.open("private", .readOnlyDirectory).names() == [])
  }

  @Test func aMarkerOfAnotherUserIsRefused() throws {
    let path = folder.path + "/c"
    _ = try Container.open(path, options: .testing())
    guard try giveAway(path + "/container.plist") else { return }
    let error = try failure { _ = try Container.open(path, options: .testing()) }
    #expect(error.code == .refused)
    #expect(error.reason == "container.plist belongs to user 12345")
    #expect(error.hint == "check the origin of the file, and move the file away")
  }

  /// The sharing of a later program must not be taken for one of the two.
  @Test func anUnknownSharingIsDamage() throws {
    for (sharing, isKnown) in [("owner", true), ("all", false)] {
      let marker = PropertyListValue.dictionary([
        "format": .integer(1), "id": .string("abc"), "created": .real(1),
        "sharing": .string(sharing),
      ])
      let bytes = try BinaryEncoder().encode(marker)
      guard !isKnown else {
        #expect(try ContainerMarker(bytes, path: "c").sharing == .owner)
        continue
      }
      let error = try failure { _ = try ContainerMarker(bytes, path: "c") }
      #expect(error.code == .damaged)
      #expect(error.subject == "c/container.plist")
      #expect(
        error.reason == "cannot read property list at 'sharing': neither 'owner' nor 'group'")
    }
  }

  @Test func withoutAHomeThereIsNoState() throws {
    for variables in [[:], ["HOME": "", "XDG_STATE_HOME": ""]] as [[String: String]] {
      let error = try failure { _ = try AccountState(variable: { variables[$0] }, home: nil) }
      #expect(error.code == .notFound)
      #expect(error.subject == "user \(user)")
      #expect(error.reason == "the user has no home directory")
      #expect(error.hint == "set XDG_STATE_HOME to a directory of the user")
    }
  }

  @Test func aStateDirectoryThatCannotBeCheckedIsRefused() throws {
    for (path, reason) in [
      ("state", "'state' is not an absolute path"), ("/tmp/a/../b", "'/tmp/a/../b' contains '..'"),
    ] {
      let error = try failure {
        _ = try AccountState(variable: { $0 == "XDG_STATE_HOME" ? path : nil }, home: "/tmp")
      }
      #expect(error.code == .refused)
      #expect(error.reason == reason)
    }
  }

  /// Under another user, `sudo` may leave the caller's home in the environment.
  @Test func theHomeOfTheAccountComesBeforeTheHomeOfTheEnvironment() throws {
    func path(home: String?) throws -> String {
      try AccountState(variable: { $0 == "HOME" ? "/tmp/h" : nil }, home: home).path(of: ["a"])
    }
    #expect(try path(home: "/tmp/account") == "/tmp/account/.local/state/a")
    #expect(try path(home: nil) == "/tmp/h/.local/state/a")
  }

  /// A launch command below is on disk only if the names of all new directories are.
  @Test func eachNewDirectoryOfTheStateIsSynced() throws {
    let state = try AccountState(
      variable: { [path = folder.path] in $0 == "XDG_STATE_HOME" ? path : nil }, home: nil)
    func syncs(_ names: String..., syncing: Bool = false) throws -> [String] {
      let calls = try FaultPoints.with {
        _ = try state.open(names, making: true, syncing: syncing)
      }
      return calls.filter { $0.hasPrefix("fsync ") }.map { UserPath($0).name }
    }
    let base = UserPath(folder.path).name
    #expect(try syncs("wormhole", "starts", "key") == [base, "wormhole", "starts"])
    #expect(try syncs("wormhole", "starts", "other") == ["starts"])
    #expect(try syncs("wormhole", "starts", "key") == [], "once")
    // Another process may have been killed before it synced the name of a directory.
    let all = try syncs("wormhole", "starts", "key", syncing: true)
    #expect(all.suffix(3) == [base, "wormhole", "starts"], "\(all)")
    for error in [Errno.accessDenied, .invalidArgument] {
      try FaultPoints.with([FaultRule(.fsync, .fail(error))]) {
        _ = try state.open(["on \(error.rawValue)"], making: true)
      }
    }
    let error = try failure {
      try FaultPoints.with([FaultRule(.fsync, .fail(.inputOutput))]) {
        _ = try state.open(["off"], making: true)
      }
    }
    #expect(error.errno == Errno.inputOutput.rawValue)
    #expect(try syncs("off") == [base], "the next call syncs the name")
  }

  /// A directory above that the user may not read cannot be synced; a failed sync is an error.
  @Test func aParentThatCannotBeSyncedIsNoErrorUnlessTheSyncFails() throws {
    let calls = try FaultPoints.with {
      _ = try Container.open(folder.path + "/a", options: .testing())
    }
    let syncs = calls.filter { $0.hasPrefix("fsync ") }
    let parent = "/" + UserPath(folder.path).name
    let place = try #require(syncs.firstIndex { $0.hasSuffix(parent) }, "\(syncs)")
    func open(_ name: String, failing error: Errno) throws {
      try FaultPoints.with([FaultRule(.fsync, number: place + 1, .fail(error))]) {
        _ = try Container.open("\(folder.path)/\(name)", options: .testing())
      }
    }
    for (name, error) in [("b", Errno.accessDenied), ("c", .tooManyLinks), ("d", .notADirectory)] {
      try open(name, failing: error)
    }
    let error = try failure { try open("e", failing: .inputOutput) }
    #expect(error.code == .system)
    #expect(error.errno == Errno.inputOutput.rawValue)
    #expect(error.subject == folder.path + "/e")
  }
}
