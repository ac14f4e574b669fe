import TestSupport
import TestTraits
import Testing
import WormholeContainerStorage
import WormholeSyscalls

/// Where the file system has ways of its own.
@Suite(.blocking, .notSanitized("about file systems and processes")) struct FileSystemTests {
  /// P3 on a file system where a file that is removed while open stays in its directory under
  /// another name.
  @Test(arguments: ["open~1.d/next", "write~1.d/next", "rename~value.plist"])
  func whereOpenFilesStayAStoppedHolderHoldsUpNobody(_ place: String) throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "takeovers through FUSE") else { return }
    let container = try Container.open(disk.path + "/c", options: .testing())
    let slot = try container.slot(.channels, "n")
    for _ in 0..<3 { try slot.add() }
    let peer = try Running(
      .add(container.path, "n", times: 1),
      environment: ["WORMHOLE_FAULTS=\(place):before:stop"])
    try peer.waitUntilStopped()
    for _ in 0..<10 { try slot.add() }
    #expect(try container.contents("channels", "n", "lock").contains("1.d") == false)
    #expect(try peer.waitOrGo() == "14\n")
    #expect(try slot.number() == 14)
    #expect(container.counters.takeovers == 1)
  }

  /// P2 where the lock on a file is not seen through a link to it.
  @Test func whereLinksAreOtherFilesWhoeverHasTakenOverKeepsOthersOut() throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "the lock of a takeover through FUSE")
    else { return }
    let container = try Container.open("\(disk.path)/c", options: .testing())
    let slot = try container.slot(.channels, "n")
    try slot.add()
    let peer = try Running(
      .add(container.path, "n", times: 1),
      environment: ["WORMHOLE_FAULTS=write~1.d/next:before:stop"])
    try peer.waitUntilStopped()
    try slot.add {
      let lock = "\(container.path)/channels/n/lock/2"
      let other = try Descriptor.open(path: lock, [.readWrite])
      #expect(try other.tryLock(.exclusive) == false)
    }
    try peer.child.send(.kill)
    _ = try peer.outcome()
  }

  /// The fence: no process continues before the directory of the suspended holder is gone.
  @Test func whereItsDirectoryStaysATakeoverGoesNoFurther() throws {
    let folder = try TemporaryDirectory()
    let container = try Container.open(folder.path + "/c", options: .testing())
    let slot = try container.slot(.channels, "n")
    try slot.add()
    let stopped = try Running(
      .add(container.path, "n", times: 1),
      environment: ["WORMHOLE_FAULTS=write~1.d/next:before:stop"])
    try stopped.waitUntilStopped()
    let begin = Instant.now
    let other = try run(
      Programs.built("wormhole"), ["--container", container.path, "update", "n", "--add", "1"],
      environment: ["WORMHOLE_FAULTS=rmdir~1.d@1+:before:fail=ENOTEMPTY"])
    #expect(Instant.now - begin < .seconds(20))
    #expect(other.status == .exited(70))
    #expect(other.errors.contains("'channels/n/lock/1.d' of the suspended holder could not be"))
    #expect(other.errors.contains("from the file system ("))
    #expect(other.errors.contains("end the holder, or move the container to a local file system"))
    #expect(try slot.number() == 1)
    #expect(try stopped.waitOrGo() == "2\n")
    #expect(try slot.add() == 3)
  }

  @Test func btrfsIsNotTakenForFull() throws {
    guard let disk = try TestFileSystem.make(.btrfs, for: "an inspection on btrfs") else { return }
    let container = try Container.open(disk.path + "/c", options: .testing())
    try container.slot(.channels, "n").add()
    #expect(try container.inspect().filter { $0.severity == .problem } == [])
  }

  @Test func whatMayOnlyBeReadIsInspected() throws {
    guard let disk = try TestFileSystem.make(.ext4, for: "an inspection of what is read only")
    else { return }
    let path = disk.path + "/c"
    do {
      let container = try Container.open(path, options: .testing())
      try container.slot(.channels, "n").add()
      try container.slot(.system, "lock.l").add()
      try container.root.descriptor.removeDirectory("damaged")
      try container.root.descriptor.removeDirectory("guests")
    }
    try disk.remount(readOnly: true)
    let outcome = try run(Programs.built("wormhole"), ["--container", path, "doctor"])
    #expect(outcome.errors == "")
    #expect(outcome.status == .exited(1))
    #expect(
      outcome.output.contains(
        "problem   file system: mounted read-only: values can be read but not changed\n"))
    #expect(!outcome.output.contains("held by"))
  }

  /// The kernel would write the inode to disk once more.
  @Test func aReadLeavesTheAccessTime() throws {
    let folder = try TemporaryDirectory()
    let container = try Container.open(folder.path + "/c", options: .testing())
    let slot = try container.slot(.channels, "n")
    try slot.add()
    let value = "\(container.path)/channels/n/value.plist"
    // As old as the last change: the next read would be recorded.
    #expect(try run("touch", ["-d", "@1000000000", value]).status == .exited(0))
    #expect(try slot.number() == 1)
    #expect(try run("stat", ["-c", "%X", value]).output == "1000000000\n")
  }

  @Test func withoutProcWhatCannotBeToldIsSaid() throws {
    let folder = try TemporaryDirectory()
    let path = folder.path + "/c"
    let container = try Container.open(path, options: .testing())
    try container.slot(.channels, "n").add(5)
    let stopped = try Running(.stopInside(path, "n"))
    try stopped.waitUntilStopped()
    let hide = "mount -t tmpfs none /proc && exec \"$@\""
    let hidden = ["-m", "sh", "-c", hide, "sh", Programs.built("wormhole"), "--container", path]
    guard Processes.effectiveUser == 0,
      try run("unshare", ["-m", "mount", "-t", "tmpfs", "none", "/proc"]).status == .exited(0)
    else {
      skip("an inspection without /proc", because: "it cannot be hidden here")
      return
    }
    let outcome = try run("unshare", hidden + ["doctor"])
    #expect(outcome.errors == "")
    #expect(outcome.output.contains("problem   /proc: not mounted: the holder of a lock and "))
    #expect(outcome.output.contains("run 'mount -t proc proc /proc'"))
    #expect(!outcome.output.contains("in another container"))
    #expect(!outcome.output.contains("max_user_instances"))
    let watch = try Running(
      "unshare", hidden + ["watch", "other", "--now", "--count", "1", "--timeout", "20"])
    let put = ["--container", path, "put", "other", "seven"]
    #expect(try run(Programs.built("wormhole"), put).status == .exited(0))
    let heard = try watch.outcome()
    #expect(heard.output == "seven\n")
    #expect(heard.status == .exited(0), "\(heard.errors)")
    // The target of a link is looked up in /proc; a path without a link needs no look-up.
    try folder.descriptor.makeSymbolicLink("link", to: path)
    let read = ["coordinate", "read", folder.path + "/c", "--", "true"]
    let root = "WORMHOLE_ROOT=\(folder.path)/groups"
    let straight = try run("env", [root, "unshare"] + hidden.dropLast(2) + read)
    #expect(straight.status == .exited(0), "\(straight.errors)")
    for words in [["coordinate", "read", folder.path + "/link", "--", "true"], ["demo"]] {
      let refused = try run("unshare", Array(hidden.dropLast(2)) + words)
      #expect(refused.status != .exited(0))
      #expect(refused.errors.contains("/proc is not mounted"), "\(refused.errors)")
    }
  }

  /// An inspection may try the lock of a file between the file's making and its locking.
  @Test func aLookAtAStagedFileFailsNoSend() throws {
    let folder = try TemporaryDirectory()
    let path = folder.path + "/c"
    _ = try Container.open(path, options: .testing())
    #expect(
      try run(Programs.built("wormhole"), ["--container", path, "send", "--to", "a", "x"])
        .status == .exited(0))
    let sender = try Running(
      Programs.built("wormhole"), ["--container", path, "send", "--to", "a", "y"],
      environment: ["WORMHOLE_FAULTS=flock~staging:before:stop"])
    try sender.waitUntilStopped()
    let staging = try folder.descriptor.open("c/staging", [.readOnly, .directory])
    let name = try #require(try staging.names().first)
    let look = try staging.open(name, [.readOnly])
    #expect(try look.tryLock(.exclusive))
    try sender.child.send(.go)
    let outcome = try sender.outcome()
    #expect(outcome.errors == "")
    #expect(outcome.status == .exited(0))
    #expect(try staging.names() == [])
  }
}
