import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeSyscalls

/// A bridge whose leaf stays connected to it while the hub loses everything.
@Suite(.blocking, .notSanitized("about processes")) struct LostRecordsTests {
  @Test func theRecordsAreWrittenAgain() throws {
    var options = TestHub.Options(machines: 1)
    options.usesNamespaces = false
    options.leafConfiguration = "jetstream { enabled: false, domain: hub }"
    guard let hub = try TestHub.start(options, for: "lost records of a bridge") else { return }
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/here")
    let member = try container.join(as: "al")
    try setUp(hub)
    let bridge = try start(
      hub, ["--container", folder.path + "/here", "bridge", "--shared-as", "g"])
    try eventually("the home is recorded", within: .seconds(60)) { try isRecorded("m.al", hub) }
    try hub.killServers()
    try hub.removeData()
    for server in hub.servers { try hub.start(server) }
    try hub.waitUntilReady()
    try setUp(hub)
    try eventually("the home is recorded again", within: .seconds(60)) {
      try isRecorded("m.al", hub)
    }
    let errors = try bridge.errors
    #expect(!bridge.hasEnded, "\(errors)")
    withExtendedLifetime(member) {}
    try bridge.child.send(.terminate)
    #expect(try bridge.outcome(within: .seconds(60)).status == .exited(0))
  }

  /// The servers acknowledge the claim, and lose the record before the bridge reads it.
  @Test(arguments: ["m.al", "h.seats"])
  func aRecordThatWasLostUnreadIsWrittenAgain(_ record: String) throws {
    guard let server = try TestServer.start(for: "records that are lost unread") else { return }
    try BridgedMachine.setUp(server)
    let folder = try TemporaryDirectory()
    let container = try SharedContainer(directory: folder.path + "/here")
    try container.channel("seats").put(3)
    #expect(try Bridge.addChannel("seats", of: container))
    let machine = try ProxiedMachine(folder.path + "/here", "al", server, group: "g", 1) { proxy in
      proxy.isHonest = true
      proxy.withholds = { $0.hasPrefix("HMSG whs.0.g.\(record) ") }
    }
    defer { _ = machine.stop() }
    let stored = "$JS.hub.API.DIRECT.GET.WHS_0.whs.0.g.\(record)"
    // The reader begins again after the first loss, long after the acknowledgement.
    try eventually("the record is withheld twice", within: .seconds(60)) {
      machine.proxy.withLock { $0.proxy.counts["withheld", default: 0] >= 2 }
    }
    #expect(try server.connect().request(stored) != nil)
    let deleted = try server.connect().request("$JS.hub.API.STREAM.DELETE.WHS_0")
    #expect(deleted?.contains(#""success":true"#) == true, "\(deleted ?? "no reply")")
    machine.proxy.withLock { $0.proxy.withholds = { _ in false } }
    try BridgedMachine.setUp(server)
    #expect(throws: Never.self) {
      try eventually("the record is stored again", within: .seconds(60)) {
        try server.connect().request(stored) != nil
      }
    }
    #expect(machine.failure == nil)
  }

  private func start(_ hub: TestHub, _ arguments: [String]) throws -> Running {
    try Running(
      Programs.built("wormhole"),
      arguments + ["--nats", hub.address(of: .machine(0)), "--token-file", hub.tokenFile])
  }

  private func setUp(_ hub: TestHub) throws {
    let outcome = try start(hub, ["bridge", "setup", "--timeout", "60"])
      .outcome(within: .seconds(90))
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
  }

  private func isRecorded(_ record: String, _ hub: TestHub) throws -> Bool {
    do {
      return try hub.connect(to: .machine(0))
        .request("$JS.hub.API.DIRECT.GET.WHS_0.whs.0.g.\(record)") != nil
    } catch is TooLate {
      // A stream without a leader does not reply.
      return false
    }
  }
}
