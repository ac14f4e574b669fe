import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Files on a disk that has no space for them.
@Suite(.blocking) struct FileDiskTests {
  /// Of the disk, a user may have only a part.
  @Test func anExceededQuotaIsAFullDisk() {
    for failure in [Errno.noSpace, .quotaExceeded] {
      let error = WormholeError(failure, "put", "speed")
      #expect(error.code == .full && error.hint != nil, "\(error)")
    }
  }

  @Test(arguments: [TestFileSystem.Kind.memory, .ext4])
  fileprivate func aFileThatDoesNotFitIsNotSent(_ kind: TestFileSystem.Kind) throws {
    guard let disk = try TestFileSystem.make(kind, for: "a file on a full disk (\(kind))") else {
      return
    }
    let folder = try TemporaryDirectory()
    try folder.write(String(repeating: "x", count: 3 << 20), to: "large")
    let hole = try SharedContainer(directory: disk.path + "/c")
    let container = try Container.open(disk.path + "/c")
    try hole.peer("watch").send(1)
    try disk.fill()
    for durability in [Durability.process, .power] {
      var options = SendOptions()
      options.durability = durability
      do throws(WormholeError) {
        try hole.peer("watch").send(file: folder.path + "/large", options)
        Issue.record("it was sent")
      } catch {
        #expect(error.code == .full, "\(error)")
      }
      #expect(try container.contents("staging") == [])
      #expect(try files(container) == [])
      #expect(try container.contents("members", "watch", "inbox").count == 1)
    }
    try disk.makeRoom()
    try folder.write("small", to: "small")
    try hole.peer("watch").send(file: folder.path + "/small")
    #expect(try files(container).count == 1)
  }

  @Test func aFileThatCannotBeTakenStays() throws {
    guard let disk = try TestFileSystem.make(.memory, for: "taking a file to a full disk") else {
      return
    }
    let folder = try TemporaryDirectory()
    try folder.write(String(repeating: "x", count: 3 << 20), to: "large")
    let hole = try SharedContainer(directory: folder.path + "/c")
    let container = try Container.open(folder.path + "/c")
    let watch = try hole.join(as: "watch")
    try watch.peer("watch").send(file: folder.path + "/large")
    let target = disk.path + "/taken"
    let relay = Relay<Message>()
    let receiving = try watch.receive { try relay.pass($0) }
    try relay.handle("the file") { message in
      let file = try #require(message.file)
      do throws(WormholeError) {
        try file.move(to: target)
        Issue.record("it was taken")
      } catch {
        #expect(error.code == .full, "\(error)")
      }
      #expect(try file.exists)
      try file.move(to: folder.path + "/taken")
    }
    receiving.stop()
    let mounted = try Descriptor.open(path: disk.path, [.readOnly, .directory])
    #expect(try mounted.names() == [])
    #expect(try files(container) == [])
    #expect(try folder.descriptor.status(of: "taken").size == 3 << 20)
  }

  /// All files but `room`, which states how much space is left.
  private func files(_ container: Container) throws -> [String] {
    try container.contents("members", "watch", "files").filter { $0 != "room" }
  }
}
