import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Cuts between real servers and machines, in both directions and in one.
@Suite(.blocking, .notSanitized("it tests other programs")) struct TestNetworkTests {
  private typealias Node = TestHub.Node

  /// A hub with namespaces; nil, and a notice, where the machine has none.
  private func hub(_ machines: Int = 1) throws -> TestHub? {
    guard let hub = try TestHub.start(.init(machines: machines)), hub.network != nil else {
      return nil
    }
    return hub
  }

  /// The datagrams for ports without a listener that have arrived at a node.
  private func datagrams(_ network: TestNetwork, at node: String) throws -> Int {
    let words = network.words(for: node) + ["cat", "/proc/net/snmp"]
    let lines = try run(words[0], Array(words.dropFirst())).output.split(separator: "\n")
    let fields = lines.filter { $0.hasPrefix("Udp: ") }.map { $0.split(separator: " ") }
    let column = try #require(fields.first?.firstIndex(of: "NoPorts"))
    return try #require(Int(fields[1][column]))
  }

  /// Sends a datagram from one node to another, and checks whether it arrives.
  private func expect(
    _ network: TestNetwork, from sender: String, to receiver: String, arrives: Bool
  ) throws {
    let before = try datagrams(network, at: receiver)
    let text = "echo x > /dev/udp/\(network.address(of: receiver))/9"
    let words = network.words(for: sender) + ["bash", "-c", text]
    // A blackhole in the sender is an error of the call; silence is none.
    _ = try run(words[0], Array(words.dropFirst()))
    guard !arrives else {
      return try eventually("a datagram from \(sender) arrives at \(receiver)") {
        try datagrams(network, at: receiver) > before
      }
    }
    // On one machine a datagram needs no time, except to find the address at first.
    for _ in 0..<10 { #expect(try datagrams(network, at: receiver) == before) }
  }

  @Test func aCutDirectionLetsTheOtherDirectionThrough() throws {
    guard let network = try TestNetwork.make(nodes: ["a", "b", "c"], for: "one-way cuts") else {
      return
    }
    try expect(network, from: "a", to: "b", arrives: true)
    try expect(network, from: "b", to: "a", arrives: true)
    try network.block(from: "a", to: "b")
    try expect(network, from: "a", to: "b", arrives: false)
    try expect(network, from: "b", to: "a", arrives: true)
    try expect(network, from: "a", to: "c", arrives: true)
    try network.heal("b")
    try expect(network, from: "a", to: "b", arrives: true)
    try network.isolate("b")
    try expect(network, from: "a", to: "b", arrives: false)
    try expect(network, from: "b", to: "c", arrives: false)
    try expect(network, from: "a", to: "c", arrives: true)
    try network.heal()
    try expect(network, from: "b", to: "c", arrives: true)
  }

  @Test func parallelNetworksDoNotMeet() throws {
    guard let one = try TestNetwork.make(nodes: ["a", "b"], for: "two networks"),
      let other = try TestNetwork.make(nodes: ["a", "b"], for: "two networks")
    else { return }
    let before = try datagrams(other, at: "b")
    try expect(one, from: "a", to: "b", arrives: true)
    #expect(try datagrams(other, at: "b") == before)
  }

  @Test(arguments: ["both", "sending", "receiving", "servers"])
  func theLeafOfACutMachineIsDisconnectedAndConnectsAgain(_ cut: String) throws {
    guard let hub = try hub() else { return }
    let machine = Node.machine(0)
    switch cut {
    case "both": try hub.cut(machine)
    case "sending": try hub.cutSending(of: machine)
    case "receiving": try hub.cutReceiving(of: machine)
    default: try hub.servers.forEach { try hub.cut(machine, from: $0) }
    }
    try eventually("the leaf is disconnected") { try !hub.isConnected(machine) }
    // The machine's own programs still reach their leaf, and JetStream is gone.
    let connection = try hub.connect(to: machine)
    #expect(try connection.request("$JS.hub.API.INFO") == nil)
    try hub.heal()
    try eventually("the leaf is connected") { try hub.isConnected(machine) }
    try hub.waitUntilReady()
  }

  @Test func aLeaderThatIsCutOffIsReplaced() throws {
    guard let hub = try hub() else { return }
    let leader = try #require(hub.leader())
    try hub.cut(leader)
    _ = try hub.waitForLeader(otherThan: leader)
    try hub.heal(leader)
    try hub.waitUntilReady()
  }

  @Test func aProgramInAMachineSeesTheMachineAlone() throws {
    guard let hub = try hub(2), let network = hub.network else { return }
    let address = network.address(of: "m2")
    let outcome = try hub.run(in: .machine(1), "ip", ["-4", "-o", "addr"])
    #expect(outcome.output.contains("\(address)/24"))
    #expect(!outcome.output.contains("\(network.address(of: "m1"))/24"))
    // Both leaves listen at the same address, each in its machine; here nothing listens.
    #expect(hub.address(of: .machine(0)) == hub.address(of: .machine(1)))
    let names = try hub.machines.map { try hub.connect(to: $0).information }
    #expect(names[0].contains(#""server_name":"m1""#))
    #expect(names[1].contains(#""server_name":"m2""#))
    // A thread of this process may move to a machine for a while.
    let name = try network.inside("m2") {
      try TestConnection("127.0.0.1", 4222, token: "secret").information
    }
    #expect(name.contains(#""server_name":"m2""#))
  }

  @Test func aLaterRunRemovesTheNamespacesOfAKilledRun() throws {
    guard let network = try TestNetwork.make(nodes: ["a"], for: "leftovers") else { return }
    // No process has this ID: it is above the kernel's limit.
    let name = "wormhole4194305x1-a"
    #expect(try run("ip", ["netns", "add", name]).status == .exited(0))
    let other = try TestNetwork.make(nodes: ["b"], for: "leftovers")
    #expect(other != nil)
    #expect(throws: Errno.noSuchFile) {
      _ = try Descriptor.status(ofPath: "/run/netns/" + name)
    }
    _ = try Descriptor.status(ofPath: network.file(of: "a"))
  }
}
