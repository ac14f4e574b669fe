import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Disks that lose what was not synced, as in a power cut, and disks that are full.
@Suite(.blocking, .serialized, .notSanitized("about processes")) struct BridgeDiskTests {
  private func options() -> SendOptions {
    var options = SendOptions()
    (options.durability, options.wantsOutcome) = (.process, true)
    return options
  }

  /// The server has acknowledged the messages, and the receiver has not: without `sync_interval:
  /// always` the server loses them, perhaps with the stream.
  @Test(arguments: [true, false])
  func theServersLosePowerAndNothingIsLost(_ syncAlways: Bool) throws {
    let what = "a power cut of the servers"
    guard let disk = try TestFileSystem.make(.ext4, for: what),
      let server = try TestServer.start(
        data: disk.path + "/data", syncAlways: syncAlways, for: what)
    else { return }
    try BridgedMachine.setUp(server)
    let folder = try TemporaryDirectory()
    let here = try BridgedMachine(folder.path + "/here", server)
    let there = try BridgedMachine(folder.path + "/there", server)
    try here.start()
    try there.start()
    let (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
    try here.waitUntilRunning("bob")
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    for number in 0..<20 { try al.peer("bob").send(number, options()) }
    try heard.wait("the first messages", within: .seconds(60)) { $0.count == 20 }
    try there.kill()
    let sent = try (20..<60).map { try al.peer("bob").send($0, options()) }
    try eventually("all is published", within: .seconds(60)) {
      try here.status(["--json"]).contains("\"published\":60,")
    }
    _ = try disk.cut()
    try server.kill()
    try disk.unmount()
    try disk.mount()
    try server.restart()
    // An operator makes the streams again.
    try BridgedMachine.setUp(server)
    try there.start()
    for one in sent { #expect(one.waitForEnd(until: .now + .seconds(120)) == .delivered) }
    #expect(heard.all == Array(0..<60))
    receiving.stop()
  }

  /// Nothing is confirmed that the disk of the receiver does not take.
  ///
  /// The messages arrive when the disk has space again.
  @Test func aFullDiskAtTheReceiverDelaysAndLosesNothing() throws {
    let what = "a full disk of the receiver"
    guard let disk = try TestFileSystem.make(.ext4, for: what),
      let server = try TestServer.start(for: what)
    else { return }
    try BridgedMachine.setUp(server)
    let folder = try TemporaryDirectory()
    let here = try BridgedMachine(folder.path + "/here", server)
    let there = try BridgedMachine(disk.path + "/there", server)
    try here.start()
    try there.start()
    let (al, bob) = (try here.container.join(as: "al"), try there.container.join(as: "bob"))
    try here.waitUntilRunning("bob")
    try disk.fill()
    let path = folder.path + "/file"
    let file = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
    var random = SeededRandom(seed: 1)
    let bytes = random.bytes(8 << 20)
    try bytes.withUnsafeBytes { try file.writeFully($0) }
    let sent = try al.peer("bob").send(file: path, metadata: 1, options())
    let last = try al.peer("bob").send(2, options())
    try eventually("the receiver's bridge reports the disk", within: .seconds(60)) {
      try there.bridge?.errors.contains("cannot carry to and from machine") == true
    }
    let heard = Heard<Int>()
    let receiving = try bob.receive(Int.self) { value, _ in heard.add(value) }
    #expect(heard.all == [])
    try disk.makeRoom()
    for one in [sent, last] {
      #expect(one.waitForEnd(until: .now + .seconds(120)) == .delivered)
    }
    #expect(heard.all == [1, 2])
    receiving.stop()
    bob.leave()
    try there.kill()
    _ = try there.bridge?.outcome()
  }
}
