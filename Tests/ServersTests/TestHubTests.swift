import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// Three real servers and machines with leaves: what the trials between machines build upon.
@Suite(.blocking, .notSanitized("it tests other programs")) struct TestHubTests {
  private static let stream =
    #"{"name":"T","subjects":["t.>"],"storage":"file","num_replicas":3}"#

  private func options(_ machines: Int = 1) -> TestHub.Options { .init(machines: machines) }

  /// Makes a stream with three replicas, through the leaf of the first machine.
  private func makeStream(_ hub: TestHub) throws {
    let made = try hub.request(
      "$JS.hub.API.STREAM.CREATE.T", Self.stream, through: .machine(0))
    #expect(made.contains(/"num_replicas": ?3/))
  }

  private func messages(_ hub: TestHub, through node: TestHub.Node) throws -> String? {
    let reply = try hub.request("$JS.hub.API.STREAM.INFO.T", through: node)
    return reply.firstMatch(of: /"messages": ?([0-9]+)/).map { String($0.output.1) }
  }

  @Test func threeServersElectALeaderAndStoreWithThreeReplicas() throws {
    guard let hub = try TestHub.start(options(2)) else { return }
    #expect(hub.nodes.map(\.description) == ["s1", "s2", "s3", "m1", "m2"])
    #expect(try hub.servers.contains(#require(hub.leader())))
    try makeStream(hub)
    // What one machine stores, another machine reads.
    let sender = try hub.connect(to: .machine(0))
    #expect(try hub.store("one", on: "t.a", through: .machine(0)).contains(/"seq": ?1/))
    #expect(try messages(hub, through: .machine(1)) == "1")
    // A leaf has no storage of its own, and demands the token.
    #expect(try sender.request("$JS.API.INFO") == nil)
    #expect(throws: TestConnection.Refused.self) {
      _ = try TestConnection(
        "127.0.0.1", hub.port(of: .machine(0)), token: "wrong",
        network: hub.namespace(of: .machine(0)))
    }
  }

  @Test func theLeavesAreConnectedOverTLS() throws {
    guard let hub = try TestHub.start(options()), hub.hasTLS else { return }
    let page = try hub.servers.map { try hub.page("/varz", of: $0) }.joined()
    #expect(page.contains(/"tls_required": ?true/))
    #expect(page.contains(/"tls_verify": ?true/))
    #expect(try hub.isConnected(.machine(0)))
  }

  @Test func aMachineHasTheRightsOfItsCertificate() throws {
    var options = options(2)
    options.permissions = { #"publish: { deny: "secret.\#($0)" }"# }
    guard let hub = try TestHub.start(options), hub.hasTLS else { return }
    _ = try hub.request(
      "$JS.hub.API.STREAM.CREATE.T", #"{"name":"T","subjects":["secret.>"]}"#,
      through: .machine(0))
    #expect(try hub.store("x", on: "secret.1", through: .machine(0)).contains("seq"))
    #expect(try hub.connect(to: .machine(0)).request("secret.0", "x")?.contains("seq") != true)
  }

  @Test func killedServersStartAgainWithTheirData() throws {
    guard let hub = try TestHub.start(options()) else { return }
    try makeStream(hub)
    try hub.store("one", on: "t.a", through: .machine(0))
    try hub.killServers()
    #expect(hub.servers.allSatisfy { hub.process(of: $0) == nil })
    try eventually("the leaf notices") { try !hub.isConnected(.machine(0)) }
    try hub.servers.forEach { try hub.start($0) }
    try hub.waitUntilReady()
    #expect(try messages(hub, through: .machine(0)) == "1")
    // One server may fail, and a leaf is killed like a server.
    let leader = try hub.waitForLeader()
    try hub.kill(leader)
    try hub.restart(.machine(0))
    _ = try hub.waitForLeader(otherThan: leader)
    #expect(try messages(hub, through: .machine(0)) == "1")
  }

  @Test func aSuspendedLeaderIsReplaced() throws {
    guard let hub = try TestHub.start(options()) else { return }
    let leader = try #require(hub.leader())
    try hub.suspend(leader)
    _ = try hub.waitForLeader(otherThan: leader)
    try hub.resume(leader)
    try hub.waitUntilReady()
  }

  @Test func dataAreRemovedCopiedAndRestored() throws {
    guard let hub = try TestHub.start(options()) else { return }
    let backup = try TemporaryDirectory().path
    try makeStream(hub)
    try hub.store("one", on: "t.a", through: .machine(0))
    #expect(throws: ServerFailure.self, "they run") { try hub.removeData() }
    try hub.killServers()
    try hub.copyData(to: backup)
    try hub.removeData()
    try hub.servers.forEach { try hub.start($0) }
    try hub.waitUntilReady()
    let list = try hub.request("$JS.hub.API.STREAM.NAMES", through: .machine(0))
    #expect(!list.contains("\"T\""))
    try hub.killServers()
    try hub.restoreData(from: backup)
    try hub.servers.forEach { try hub.start($0) }
    try hub.waitUntilReady()
    #expect(try messages(hub, through: .machine(0)) == "1")
  }

  /// The same without namespaces: all but cuts.
  @Test func aHubWithoutNamespacesHasPortsOfItsOwn() throws {
    var options = options(2)
    options.usesNamespaces = false
    guard let hub = try TestHub.start(options) else { return }
    #expect(hub.network == nil)
    #expect(hub.port(of: .machine(0)) != hub.port(of: .machine(1)))
    try makeStream(hub)
    try hub.store("one", on: "t.a", through: .machine(0))
    #expect(try messages(hub, through: .machine(1)) == "1")
    let outcome = try hub.run(in: .machine(0), "echo", ["here"])
    #expect(outcome.output == "here\n")
    #expect(throws: ServerFailure.self) { try hub.cut(.machine(0)) }
  }

  @Test func aReleasedHubLeavesNoProcessAndNoNamespace() throws {
    var hub = try TestHub.start(options())
    guard let nodes = hub?.nodes else { return }
    let processes = nodes.compactMap { hub?.process(of: $0) }
    #expect(processes.count == 4)
    let namespaces = hub?.network?.files ?? []
    // A program that a test has started in a machine ends, too.
    let program = try hub?.start(in: .machine(0), "sleep", ["600"])
    let hasNetwork = hub?.network != nil
    hub = nil
    for process in processes {
      #expect(throws: Errno.noSuchProcess) { try Processes.send(.go, to: process) }
    }
    for path in namespaces {
      #expect(throws: Errno.noSuchFile) { _ = try Descriptor.status(ofPath: path) }
    }
    if hasNetwork { #expect(try program?.outcome().status == .signalled(9)) }
    // Links are in the namespaces and end with them; none was ever in this process's own.
    let links = try Descriptor.open(path: "/sys/class/net", [.readOnly, .directory]).names()
    #expect(Set(links).isDisjoint(with: nodes.map(\.description)))
  }
}
