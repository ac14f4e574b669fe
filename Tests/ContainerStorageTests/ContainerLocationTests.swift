import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// The location of a group's container, and the creation of its directories.
@Suite(.blocking) struct ContainerLocationTests {
  private func directory(
    _ environment: [String: String], home: String? = nil, group: String = "group.a"
  ) throws -> String {
    try ContainerLocation(group: group, environment: environment, home: home).directory
  }

  @Test func theRulesInTheirOrder() throws {
    let (state, root) = (["XDG_STATE_HOME": "/tmp/s"], ["WORMHOLE_ROOT": "/tmp/r"])
    #expect(try directory(["HOME": "/tmp/h"]) == "/tmp/h/.local/state/wormhole/groups/group.a")
    #expect(
      try directory(["HOME": "/tmp/h"], home: "/tmp/a")
        == "/tmp/a/.local/state/wormhole/groups/group.a")
    #expect(try directory(state, home: "/tmp/a") == "/tmp/s/wormhole/groups/group.a")
    #expect(try directory(state.merging(root) { $1 }, home: "/tmp/a") == "/tmp/r/group.a")
    #expect(try directory(["WORMHOLE_ROOT": "/tmp/r/"]) == "/tmp/r/group.a")
    #expect(try directory(root, group: "../a/b") == "/tmp/r/%2E.%2Fa%2Fb")
    let location = try ContainerLocation(group: "a", environment: root, home: nil)
    #expect(location.container == "/tmp/r/a/.wormhole")
  }

  @Test func whatCannotBeUsedIsRefused() throws {
    func code(_ environment: [String: String], group: String = "a") -> WormholeError.Code? {
      do {
        _ = try directory(environment, group: group)
        return nil
      } catch {
        return (error as? WormholeError)?.code
      }
    }
    #expect(code([:]) == .notFound)
    #expect(code(["WORMHOLE_ROOT": "relative"]) == .refused)
    #expect(code(["WORMHOLE_ROOT": "", "HOME": "/tmp/h"]) == nil)
    #expect(code(["HOME": "/tmp/h"], group: "") == .invalidName)
  }

  @Test func theAccountsHomeIsFound() {
    let accounts = "root:x:0:0:root:/tmp/root:/bin/sh\nbroken\nme:x:1000:1000::/tmp/me:/bin/sh\n"
    #expect(ContainerLocation.home(of: 1000, in: accounts) == "/tmp/me")
    #expect(ContainerLocation.home(of: 0, in: accounts) == "/tmp/root")
    #expect(ContainerLocation.home(of: 1, in: accounts) == nil)
    let accented = "a:x:7:7:\u{301}x\u{600}:/\u{301}home\u{600}:/bin/sh\n"
    #expect(ContainerLocation.home(of: 7, in: accented) == "/\u{301}home\u{600}")
  }

  /// Swift combines a slash and the accent after it to one character, which is not a slash.
  @Test func directoriesMayHaveAnyName() throws {
    let folder = try TemporaryDirectory()
    let root = "\(folder.path)/\u{301}x\u{600}/\u{301}y\u{600}/"
    let location = try ContainerLocation(
      group: "a", environment: ["WORMHOLE_ROOT": root], home: nil)
    #expect(Array(location.directory.utf8) == Array((root + "a").utf8))
    try location.prepare(.owner)
    #expect(try Container.open(location.container).path == location.container)
    let container = root + "\u{301}c"
    let identity = try Container.open(container + "//.").identity
    #expect(try Container.open(container).identity == identity)
    #expect(try Descriptor.open(path: root, [.readOnly, .directory]).names().count == 2)
  }

  /// Each access to a file asks for the location, so the last result is cached.
  ///
  /// A program may be given another root while it runs.
  @Test func whatIsKnownOfAPlaceEndsWithWhatItWasKnownBy() throws {
    for root in ["/tmp/one", "/tmp/two", "/tmp/one"] {
      #expect(try ContainerLocation(group: "known", root: root).directory == "\(root)/known")
      #expect(try ContainerLocation(group: "other", root: root).directory == "\(root)/other")
    }
    // Swift compares the two names as equal.
    for name in ["\u{e9}", "e\u{301}"] {
      let (root, escaped) = ("/tmp/" + name, try Container.escape(name))
      let location = try ContainerLocation(group: name, root: root)
      #expect(Array(location.directory.utf8) == Array("\(root)/\(escaped)".utf8))
    }
  }

  @Test func directoriesAreMadePrivate() throws {
    let folder = try TemporaryDirectory()
    let location = try ContainerLocation(
      group: "a", environment: ["XDG_STATE_HOME": "\(folder.path)/x/y"], home: nil)
    try location.prepare(.owner)
    try location.prepare(.owner)
    for path in [location.base, "\(location.base)/wormhole/groups", location.directory] {
      #expect(try Descriptor.open(path: path, [.readOnly, .directory]).status().mode == 0o700)
    }
    _ = try Container.open(location.container)
  }

  /// As for services, whose homes are none.
  @Test func whereNothingCanBeMadeTheWayOutIsNamed() throws {
    let location = try ContainerLocation(
      group: "a", environment: ["XDG_STATE_HOME": "/proc/none"], home: nil)
    let error = try failure { try location.prepare(.owner) }
    #expect(error.hint?.contains("set WORMHOLE_ROOT") == true, "\(error)")
  }

  @Test func aGroupsDirectoryIsForItsMembers() throws {
    let folder = try TemporaryDirectory()
    let location = try ContainerLocation(
      group: "a", environment: ["XDG_STATE_HOME": folder.path], home: nil)
    try location.prepare(.group)
    let mode = try Descriptor.open(path: location.directory, [.readOnly, .directory]).status().mode
    #expect(mode == 0o2770)
    let above = "\(folder.path)/wormhole/groups"
    #expect(try Descriptor.open(path: above, [.readOnly, .directory]).status().mode == 0o700)
  }

  /// A group may be named like one of the directories above its own.
  @Test(arguments: ["wormhole", "groups"])
  func aGroupOpensNoDirectoryAboveItsOwn(_ group: String) throws {
    let folder = try TemporaryDirectory()
    let location = try ContainerLocation(
      group: group, environment: ["XDG_STATE_HOME": folder.path], home: nil)
    try location.prepare(.group)
    for (path, mode) in [
      ("wormhole", 0o700), ("wormhole/groups", 0o700), ("wormhole/groups/\(group)", 0o2770),
    ] as [(String, FileMode)] {
      #expect(try Descriptor.status(ofPath: "\(folder.path)/\(path)").mode == mode, "\(path)")
    }
    // The directories above may be those of another group.
    let other = try ContainerLocation(
      group: "a", environment: ["XDG_STATE_HOME": folder.path], home: nil)
    #expect(throws: Never.self) { try other.prepare(.group) }
  }

  @Test(arguments: [0o777, 0o770, 0o702] as [FileMode])
  func aDirectoryThatOthersMayWriteToIsRefused(_ mode: FileMode) throws {
    let folder = try TemporaryDirectory()
    let location = try ContainerLocation(
      group: "a", environment: ["WORMHOLE_ROOT": folder.path], home: nil)
    try location.prepare(.owner)
    try Descriptor.open(path: location.directory, [.readOnly, .directory]).setMode(mode)
    let error = #expect(throws: WormholeError.self) { try location.prepare(.owner) }
    #expect(error?.code == .refused)
    try folder.descriptor.makeSymbolicLink("b", to: "a")
    let link = try ContainerLocation(
      group: "b", environment: ["WORMHOLE_ROOT": folder.path], home: nil)
    #expect(throws: WormholeError.self) { try link.prepare(.owner) }
  }

  /// The user's own container is among the groups only where no other user can change the root.
  @Test func whereTheGroupsAreSharedTheUsersOwnLiesInItsState() throws {
    let folder = try TemporaryDirectory()
    try folder.descriptor.makeDirectory("root", mode: 0o700)
    let root = try folder.descriptor.open("root", [.readOnly, .directory])
    var environment = Environment()
    environment.variable = { $0 == "XDG_STATE_HOME" ? folder.path + "/state" : nil }
    func location(_ group: String = "wormhole.user") throws -> ContainerLocation {
      try ContainerLocation(group: group, root: folder.path + "/root", environment)
    }
    let own = "\(folder.path)/root/wormhole.user/.wormhole"
    #expect(try location().container == own)
    let status = try root.status()
    let state = "\(folder.path)/state/wormhole/roots/\(status.device)-\(status.inode)"
    for mode in [0o770, 0o707, 0o1777, 0o2770] as [FileMode] {
      try root.setMode(mode)
      #expect(try location().container == state + "/.wormhole", "\(mode)")
      #expect(try location("cinema").directory == "\(folder.path)/root/cinema")
    }
    #expect(try folder.descriptor.names() == ["root"])
    try location().prepare(.owner)
    #expect(try Container.open(location().container).root.descriptor.status().mode == 0o700)
    #expect(try Descriptor.status(ofPath: state).mode == 0o700)
    #expect(try root.names() == [])
    // No other user may decide on the content of the directory.
    try folder.descriptor.open("state", [.readOnly, .directory]).setMode(0o770)
    #expect(try failure { try location().prepare(.owner) }.code == .refused)
    try root.setMode(0o755)
    #expect(try location().container == own)
    // A missing directory is made by this user.
    let missing = try ContainerLocation(
      group: "wormhole.user", root: folder.path + "/none", environment)
    #expect(missing.container == "\(folder.path)/none/wormhole.user/.wormhole")
  }

  @Test func theUsersOwnLiesInItsStateWhereTheGroupsAreAnothersToo() throws {
    guard Processes.effectiveUser == 0 else {
      skip("a directory of groups that is another user's", because: "only root can make one")
      return
    }
    let folder = try TemporaryDirectory()
    try folder.descriptor.makeDirectory("root", mode: 0o755)
    #expect(try run("chown", ["12345", folder.path + "/root"]).status == .exited(0))
    var environment = Environment()
    environment.variable = { $0 == "XDG_STATE_HOME" ? folder.path + "/state" : nil }
    let location = try ContainerLocation(
      group: "wormhole.user", root: folder.path + "/root", environment)
    #expect(location.container.hasPrefix("\(folder.path)/state/wormhole/roots/"))
  }
}
