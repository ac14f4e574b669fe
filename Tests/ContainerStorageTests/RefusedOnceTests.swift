import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeContainerStorage

/// What the system refuses once, for lack of descriptors say, is not taken for the truth, and for
/// ever even less.
@Suite(.blocking) struct RefusedOnceTests {
  /// `HOME` would lead to another container, and no program would ever see a value that was put
  /// there.
  @Test func whereTheAccountsAreUnreadableForAMomentNoOtherHomeIsTaken() throws {
    let folder = try TemporaryDirectory()
    let outcome = try run(
      .putInGroup("group.a", "n", 1),
      environment: [
        "WORMHOLE_ROOT=", "XDG_STATE_HOME=", "HOME=\(folder.path)",
        "WORMHOLE_FAULTS=open~/etc/passwd:before:fail=EMFILE",
      ])
    #expect(outcome.status != .exited(0))
    #expect(outcome.errors.contains("too many open files"), "\(outcome.errors)")
    #expect(try folder.descriptor.names() == [])
  }

  /// Without a second try, the process's own mark would make it look ended for its whole run.
  @Test func whoCannotAskWhoItIsAsksAgain() throws {
    let (folder, container, slot) = try Container.forTest(holding: 1)
    let peer = try Running(
      .add(container.path, "n", times: 2),
      environment: [
        "WORMHOLE_FAULTS=open~/stat:before:fail=EMFILE;rename~value.plist@2:before:stop"
      ])
    try peer.waitUntilStopped()
    let error = #expect(throws: WormholeError.self) {
      try slot.add(
        policy: LockPolicy(lease: nil, cap: nil),
        patience: Patience(until: .now + .milliseconds(200)))
    }
    #expect(
      error?.reason.hasSuffix("held by 'TestPeer' (process \(peer.child.process), stopped)") == true
    )
    #expect(try peer.waitOrGo() == "2\n3\n")
    withExtendedLifetime(folder) {}
  }

  /// To see that the container is gone, no file needs to be opened.
  @Test func theEndOfAContainerIsSeenWithoutDescriptors() throws {
    let (folder, container) = try Container.forTest()
    try container.root.descriptor.unlink("container.plist")
    let rule = FaultRule(.open, persistent: true, .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      #expect(container.end(at: container.path)?.way == .removed)
    }
    withExtendedLifetime(folder) {}
  }

  /// The container is removed between two checks: at the first check its name still exists.
  @Test func aContainerThatIsRemovedMeanwhileWasNotMoved() throws {
    let (folder, container) = try Container.forTest()
    #expect(try run("rm", ["-r", container.path]).status == .exited(0))
    FaultPoints.with([FaultRule(.fstat, .fail(.inputOutput))]) {
      #expect(container.end(at: container.path)?.way == .removed)
    }
    withExtendedLifetime(folder) {}
  }

  /// An access that names the target itself would not be excluded.
  @Test func whereALinkLeadsIsNotLeftOut() throws {
    let folder = try TemporaryDirectory()
    try folder.write("", to: "file")
    try folder.descriptor.makeSymbolicLink("link", to: "file")
    // The first check only makes further checks unnecessary.
    let refused = FaultRule(.open, path: "/link", .fail(.tooManyOpenFiles))
    try FaultPoints.with([refused]) {
      let found = try AccessPath.resolve(folder.path + "/link")
      #expect(found.count == 2)
    }
    for rule in [
      FaultRule(.open, path: "/link", number: 2, .fail(.tooManyOpenFiles)),
      FaultRule(.fstatat, path: "/link", .fail(.inputOutput)),
    ] {
      FaultPoints.with([rule]) {
        #expect(throws: WormholeError.self) { try AccessPath.resolve(folder.path + "/link") }
      }
    }
    #expect(try AccessPath.resolve(folder.path + "/link").count == 2)
  }

  /// An access in the user's container would not meet the accesses of programs that use the group's
  /// container.
  @Test func aGroupsFileIsNotTakenForTheUsers() throws {
    let folder = try TemporaryDirectory()
    let groups = folder.path + "/groups"
    let arbiters = Arbiters(.testing(), root: groups)
    let user = try arbiters.room(for: AccessPath(folder.path + "/file"))
    try folder.descriptor.makeDirectory("groups/group.a", mode: 0o700)
    let path = AccessPath("\(groups)/group.a/file")
    let group = try arbiters.room(for: path)
    #expect(user.key != group.key)
    for rule in [
      FaultRule(.open, path: "/groups", persistent: true, .fail(.tooManyOpenFiles)),
      FaultRule(.fstatat, path: "/group.a", .fail(.inputOutput)),
    ] {
      FaultPoints.with([rule]) {
        #expect(throws: WormholeError.self) { try arbiters.room(for: path) }
      }
    }
    #expect(try arbiters.room(for: path) === group)
  }

  /// Another process may make the directory of the groups, and the group of the path, meanwhile.
  @Test func groupsThatCannotBeFoundForAMomentAreNotLeftOut() throws {
    let folder = try TemporaryDirectory()
    let arbiters = Arbiters(.testing(), root: folder.path + "/system/groups")
    let path = AccessPath(folder.path + "/file")
    FaultPoints.with([FaultRule(.readlink, .fail(.inputOutput))]) {
      #expect(throws: WormholeError.self) { try arbiters.room(for: path) }
    }
    #expect(throws: Never.self) { try arbiters.room(for: path) }
  }

  /// A kernel that has the call is not taken for a kernel without it.
  @Test func whatCannotBeOpenedForAMomentIsOpenedLater() throws {
    let folder = try TemporaryDirectory()
    try folder.descriptor.makeDirectory("a", mode: 0o700)
    try folder.write("", to: "a/b")
    let outcome = try run(
      "bash",
      ["-c", "ulimit -n 40; exec \"$0\" \"$@\"", Programs.built("TestPeer")]
        + PeerJob.openBeneath(folder.path, "a/b").arguments)
    #expect(outcome.output == "EMFILE none\n", "\(outcome.errors)")
  }

  /// If the damaged file only made way for the new value, it would look like the leftover of a dead
  /// process, and the next change would remove it.
  @Test func whatIsDamagedIsNotReplacedWhereItCannotBeSetAside() throws {
    let (folder, container, slot) = try Container.forTest(holding: 3)
    let path = container.path("channels", "n", "value.plist")
    try Descriptor.open(path: path, [.writeOnly, .truncate]).write([1, 2, 3])
    let rule = FaultRule(.open, path: "/damaged", .fail(.tooManyOpenFiles))
    FaultPoints.with([rule]) {
      let error = #expect(throws: WormholeError.self) { try slot.add() }
      #expect(error?.code == .exhausted)
    }
    #expect(try slot.add() == 3)
    #expect(try container.names(in: .damaged).count == 2)
    withExtendedLifetime(folder) {}
  }
}
