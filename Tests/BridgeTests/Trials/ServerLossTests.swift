import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

@testable import WormholeTrial

/// The servers lose or change acknowledged messages: while the senders live, no message is lost.
@Suite(.blocking, .serialized, .notSanitized("about processes")) struct ServerLossTests {
  private let bridged: BridgedHub?

  init() throws { bridged = try BridgedHub.start(2, for: "servers that lose their data") }

  /// A sender on one machine, and a receiver on the other one.
  private struct Pair {
    let (sender, receiver): (Member, Member)
    let heard = Heard<Int>()

    init(_ bridged: BridgedHub) throws {
      sender = try bridged.machines[0].container.join(as: bridged.machines[0].member)
      receiver = try bridged.machines[1].container.join(as: bridged.machines[1].member)
      try bridged.waitUntilAllAreSeen()
    }

    func receive() throws -> Subscription {
      try receiver.receive(Int.self) { [heard] number, _ in heard.add(number) }
    }

    func send(_ numbers: Range<Int>) throws {
      for number in numbers { try sender.peer(receiver.name).send(number) }
    }
  }

  /// Waits until the status of the sender's bridge contains a text.
  private func wait(for text: String, of what: String, _ bridged: BridgedHub) throws {
    let machine = bridged.machines[0]
    try eventually(what, within: .seconds(60)) {
      let status = try run(
        Programs.built("wormhole"), ["--container", machine.path, "--json", "bridge", "status"])
      return status.output.contains(text)
    }
  }

  private func waitUntilPublished(_ count: Int, _ bridged: BridgedHub) throws {
    try wait(for: "\"published\":\(count),", of: "\(count) entries are published", bridged)
  }

  /// Kills the bridge of the receiver once it has confirmed so many entries.
  ///
  /// If each entry is a bundle of its own, the sender's bridge stops at 32 bundles that are not
  /// confirmed, and would publish nothing further.
  private func killReceiver(afterConfirming count: Int, _ bridged: BridgedHub) throws {
    try wait(for: "\"confirmed\":\(count),", of: "\(count) entries are confirmed", bridged)
    try bridged.killBridge(of: bridged.machines[1])
  }

  private func check(_ pair: Pair, _ count: Int, _ bridged: BridgedHub) throws {
    do {
      try pair.heard.wait("\(count) messages", within: .seconds(120)) { $0.count >= count }
    } catch {
      Issue.record("\(error): \(try bridged.report())")
    }
    #expect(pair.heard.all == Array(0..<count))
    try eventually("all is settled", within: .seconds(60)) {
      try bridged.machines.allSatisfy { try $0.pending().isEmpty }
    }
  }

  @Test func theDataOfAllServersAreRemoved() throws {
    guard let bridged else { return }
    let pair = try Pair(bridged)
    let receiving = try pair.receive()
    try pair.send(0..<40)
    try pair.heard.wait("the first messages", within: .seconds(60)) { $0.count == 40 }
    try killReceiver(afterConfirming: 40, bridged)
    try pair.send(40..<60)
    try waitUntilPublished(60, bridged)
    try bridged.hub.killServers()
    try bridged.hub.removeData()
    for server in bridged.hub.servers { try bridged.hub.start(server) }
    try bridged.startBridge(of: bridged.machines[1])
    try pair.send(60..<80)
    try bridged.setUp()
    try check(pair, 80, bridged)
    // The records are written again, too: both see each other.
    try bridged.waitUntilAllAreSeen()
    try pair.send(80..<100)
    try check(pair, 100, bridged)
    receiving.stop()
  }

  @Test func theServersAreRestoredFromABackup() throws {
    guard let bridged else { return }
    let pair = try Pair(bridged)
    let receiving = try pair.receive()
    try pair.send(0..<20)
    try pair.heard.wait("the first messages", within: .seconds(60)) { $0.count == 20 }
    try bridged.hub.killServers()
    let backup = bridged.hub.folder.path + "/backup"
    try bridged.hub.copyData(to: backup)
    for server in bridged.hub.servers { try bridged.hub.start(server) }
    try bridged.hub.waitUntilReady()
    // Received, and forgotten by the servers.
    try pair.send(20..<40)
    try pair.heard.wait("what follows the backup", within: .seconds(60)) { $0.count == 40 }
    try killReceiver(afterConfirming: 40, bridged)
    // Acknowledged by the servers, not received, and forgotten.
    try pair.send(40..<60)
    try waitUntilPublished(60, bridged)
    try bridged.hub.killServers()
    try bridged.hub.restoreData(from: backup)
    for server in bridged.hub.servers { try bridged.hub.start(server) }
    try bridged.startBridge(of: bridged.machines[1])
    try pair.send(60..<80)
    try check(pair, 80, bridged)
    receiving.stop()
  }

  /// A bad disk changes a bit in the messages of one server; each server is the one in its turn.
  @Test func aBlockOfOneServerIsChanged() throws {
    guard let bridged else { return }
    let pair = try Pair(bridged)
    let receiving = try pair.receive()
    var count = 0
    for server in bridged.hub.servers {
      try killReceiver(afterConfirming: count, bridged)
      try pair.send(count..<count + 20)
      count += 20
      try waitUntilPublished(count, bridged)
      try bridged.hub.kill(server)
      let files = try bridged.hub.data(of: server).changeMessages(ofStream: "WHF_0")
      #expect(files > 0)
      try bridged.hub.start(server)
      try bridged.startBridge(of: bridged.machines[1])
      try pair.heard.wait("\(server): \(count) messages", within: .seconds(120)) {
        $0.count >= count
      }
    }
    try check(pair, count, bridged)
    receiving.stop()
  }
}
