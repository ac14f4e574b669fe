import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholePropertyLists
import WormholeSyscalls

/// Opening containers, by path and by group.
@Suite(.blocking) struct OpeningTests {

  @Test func processesOfAGroupMeetBelowTheRoot() throws {
    let folder = try TemporaryDirectory()
    let root = "WORMHOLE_ROOT=\(folder.path)"
    let put = try run(.putInGroup("group.a", "speed", 88), environment: [root])
    #expect(put.status == .exited(0))
    let container = try SharedContainer(directory: "\(folder.path)/group.a/.wormhole")
    #expect(try container.channel("speed", of: Int.self).value == 88)
  }

  @Test func whatIsNotThereIsNotMadeUnlessItMay() throws {
    let folder = try TemporaryDirectory()
    var options = Options()
    options.createsIfMissing = false
    let missing = try failure {
      _ = try SharedContainer(directory: folder.path + "/c", options: options)
    }
    #expect(missing.code == .notFound)
    let foreign = try failure { _ = try SharedContainer(directory: folder.path, options: options) }
    #expect(foreign.code == .notAContainer)
    #expect(try folder.descriptor.names() == [])
    _ = try SharedContainer(directory: folder.path + "/c")
    _ = try SharedContainer(directory: folder.path + "/c", options: options)
  }

  @Test func aGroupsFilesAreForItsMembers() throws {
    let meeting = try Meeting { $0.sharing = .group }
    try meeting.container.channel("a").put(1)
    let channel = try Descriptor.open(path: meeting.path + "/channels/a", [.readOnly, .directory])
    #expect(try channel.status().mode == 0o2770)
    #expect(try channel.status(of: "value.plist").mode == 0o660)
  }

  @Test func theContainerStaysOpenForItsChannels() throws {
    let folder = try TemporaryDirectory()
    let channel = try SharedContainer(directory: folder.path + "/c").channel("a", of: Int.self)
    try channel.put(1)
    #expect(try channel.value == 1)
  }

  @Test func whoOnlyReadsLetsTheFileSystemBeMountedReadOnly() throws {
    guard let disk = try TestFileSystem.make(.ext4, for: "reading while it is mounted read-only")
    else { return }
    let path = disk.path + "/c"
    let place = ["--container", path]
    let wormhole = Programs.built("wormhole")
    for words in [["put", "a", "1"], ["send", "--to", "b", "1"]] {
      #expect(try run(wormhole, words + place).status == .exited(0))
    }
    let container = try SharedContainer(directory: path)
    let channel = container.channel("a", of: PropertyListValue.self)
    let heard = Heard<Int>()
    let watching = try channel.watch { _ in heard.add(1) }
    try heard.wait("it is watched") { !$0.isEmpty }
    // An epoch that is raised in the meantime removes no file that the channel has open.
    var later = Options()
    later.environment.bootIdentifier = { "later" }
    try SharedContainer(directory: path, options: later).peer("b").send(2, .quick())
    try disk.remount(readOnly: true)
    #expect(try channel.value != nil)
    #expect(try run(wormhole, ["get", "a"] + place).output == "1\n")
    watching.stop()
  }
}
