import SharedContainer
import Syscalls
import TestSupport
import TestTraits
import Testing

/// Where the container of a group lies, and how its place is made.
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

  @Test func aDirectoryThatOthersMayWriteToIsRefused() throws {
    let folder = try TemporaryDirectory()
    let location = try ContainerLocation(
      group: "a", environment: ["WORMHOLE_ROOT": folder.path], home: nil)
    try location.prepare(.owner)
    try Descriptor.open(path: location.directory, [.readOnly, .directory]).setMode(0o777)
    let error = #expect(throws: WormholeError.self) { try location.prepare(.owner) }
    #expect(error?.code == .refused)
    try folder.descriptor.makeSymbolicLink("b", to: "a")
    let link = try ContainerLocation(
      group: "b", environment: ["WORMHOLE_ROOT": folder.path], home: nil)
    #expect(throws: WormholeError.self) { try link.prepare(.owner) }
  }
}
