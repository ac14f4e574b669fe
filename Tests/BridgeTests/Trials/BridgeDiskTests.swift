import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// Disks that are full, and disks that lose what was not synced, as in a power cut.
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

  /// The other machine confirms nothing that its disk does not take, and continues by itself when
  /// there is space.
  @Test func theDiskOfTheReceiverIsFull() throws {
    let what = "a full disk between machines"
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
    let heard = Heard<Int>()
    let receiving = try bob.receive(String.self) { text, _ in
      heard.add(text.split(separator: " ").first.flatMap { Int($0) } ?? -1)
    }
    // What a receiver releases meanwhile is too little for one of them.
    let rest = String(repeating: "x", count: 200_000)
    func send(_ number: Int) throws -> Sent {
      try al.peer("bob").send("\(number) \(rest)", options())
    }
    for number in 0..<5 { _ = try send(number) }
    try heard.wait("the first messages", within: .seconds(60)) { $0.count == 5 }
    try disk.fill()
    let sent = try (5..<15).map { try send($0) }
    // The status of the bridge cannot be written either.
    do {
      try eventually("the bridge has noticed", within: .seconds(60)) {
        try there.bridge?.errors.contains("cannot carry to and from machine") == true
      }
    } catch {
      Issue.record("\(error) \(heard.all) \(try here.status()) \(try there.bridge?.errors ?? "")")
    }
    #expect(there.bridge?.hasEnded == false)
    try disk.makeRoom()
    for one in sent { #expect(one.waitForEnd(until: .now + .seconds(120)) == .delivered) }
    #expect(heard.all == Array(0..<15))
    receiving.stop()
    bob.leave()
    try there.kill()
  }
}
