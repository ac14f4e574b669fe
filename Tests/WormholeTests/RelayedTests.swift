import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeSyscalls

/// P1 and P4 if names and locks come from another program, as through FUSE: a replaced name leads
/// nowhere for a moment, and a link is a file of its own to the kernel.
@Suite(.blocking) struct RelayedTests {
  @Test func aValueThatIsReplacedIsAlwaysThere() throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "reading through FUSE") else { return }
    let path = disk.path + "/c"
    let sum = try SharedContainer(directory: path).channel("sum", of: Int.self)
    try sum.put(0)
    let counting = try (0..<2).map { _ in try Running(.countAloud(path, "sum")) }
    let end = Instant.now + .seconds(3)
    var reads = 0
    var last = 0
    while Instant.now < end || last < 100 {
      last = try #require(try sum.value, "read \(reads), after \(last)")
      reads += 1
    }
    for process in counting {
      try process.child.send(.kill)
      _ = try process.outcome()
    }
    #expect(reads > 100)
  }

  /// Sends with the command, which is suspended before its message is enqueued.
  private func stoppedSender(_ path: String, _ what: [String]) throws -> Running {
    let sender = try Running(
      Programs.built("wormhole"),
      ["--container", path, "send", "--to", "watch", "--no-sync"] + what,
      environment: ["WORMHOLE_FAULTS=rename~inbox/:before:stop"])
    try sender.waitUntilStopped()
    return sender
  }

  @Test func theFileOfASenderThatStandsStillIsNotSwept() throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "files through FUSE") else { return }
    let path = disk.path + "/c"
    let container = try SharedContainer(directory: path)
    try makeFile(disk.path + "/film", size: 100_000)
    let digest = try Digest(disk.path + "/film")
    try container.join(as: "watch").leave()
    let sender = try stoppedSender(path, ["--file", disk.path + "/film"])
    let watch = try container.join(as: "watch")
    _ = try sender.waitOrGo()
    let heard = Heard<Digest>()
    let receiving = try watch.receive { message in
      guard let file = message.file else { throw Missing() }
      heard.add(try Digest(file.path))
    }
    try heard.wait("it comes with its file") { $0 == [digest] }
    receiving.stop()
  }

  @Test func ofTwoWithOneIdOneIsSent() throws {
    guard let disk = try TestFileSystem.make(.fuse, for: "ids through FUSE") else { return }
    let path = disk.path + "/c"
    let container = try SharedContainer(directory: path)
    try container.join(as: "watch").leave()
    let sender = try stoppedSender(path, ["--id", "ticket", "1"])
    #expect(
      try failure { try container.peer("watch").send("2", .quick { $0.id = "ticket" }) }.code
        == .conflict)
    _ = try sender.waitOrGo()
    let inbox = try Descriptor.open(
      path: path + "/members/watch/inbox", [.readOnly, .directory])
    #expect(try inbox.names().count == 1)
  }
}
