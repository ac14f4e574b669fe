import TestSupport
import TestTraits
import Testing
import Wormhole
import WormholeBridge
import WormholeContainerStorage
import WormholeSyscalls

/// Servers that cannot reply yet, and servers without the streams of the bridge.
@Suite(.blocking, .notSanitized("about processes")) struct SlowServersTests {
  private let folder: TemporaryDirectory
  private static let everything = "publish: \">\"\nsubscribe: \">\""
  private static let setup = "wormhole bridge setup"

  init() throws { folder = try TemporaryDirectory() }

  private func start(_ hub: LimitedHub) throws -> Running {
    try Running(
      Programs.built("wormhole"),
      [
        "--container", folder.path + "/c", "bridge", "--shared-as", "g", "--nats", hub.leaf,
        "--token-file", hub.tokenFile,
      ])
  }

  private func wait(_ bridge: Running, until text: String) throws {
    try eventually("'\(text)' is reported", within: .seconds(60)) {
      try bridge.errors.contains(text)
    }
  }

  /// A hub that does not reply may have the streams.
  ///
  /// A leaf that has a connection to a suspended hub receives no reply, and a leaf without a
  /// connection has no responders.
  @Test(arguments: [true, false])
  func aHubThatDoesNotReplyIsNotTakenForANewOne(_ isSuspended: Bool) throws {
    guard let hub = try LimitedHub.start(rights: Self.everything, for: "a slow hub") else { return }
    try hub.setUp()
    if isSuspended { try hub.hub.suspend() } else { try hub.hub.kill() }
    let bridge = try start(hub)
    try wait(bridge, until: "the servers do not answer")
    if isSuspended { try hub.hub.resume() } else { try hub.hub.start() }
    try wait(bridge, until: "carrying between machines")
    let errors = try bridge.errors
    #expect(!errors.contains(Self.setup), "\(errors)")
    #expect(!bridge.hasEnded)
  }

  @Test func aHubWithoutStreamsIsReported() throws {
    guard let hub = try LimitedHub.start(rights: Self.everything, for: "a new hub") else { return }
    let bridge = try start(hub)
    try wait(bridge, until: Self.setup)
    let doctor = try hub.run(["doctor"], container: folder.path + "/c", as: hub.leaf)
    #expect(doctor.output.contains(Self.setup), "\(doctor.output)")
    try hub.setUp()
    try wait(bridge, until: "carrying between machines")
  }

  /// Servers that have not met refuse replicas as servers that are too few do, and may meet later.
  @Test func theSetupWaitsForTheServersThatItNeeds() throws {
    var options = TestHub.Options(machines: 1)
    options.usesNamespaces = false
    guard let hub = try TestHub.start(options, for: "a setup that waits") else { return }
    let machine = hub.machines[0]
    func setUp(replicas: Int) throws -> ProcessOutcome {
      try hub.run(
        in: machine, Programs.built("wormhole"),
        [
          "bridge", "setup", "--nats", hub.address(of: machine), "--token-file", hub.tokenFile,
          "--domain", "hub", "--replicas", "\(replicas)", "--timeout", "5",
        ], within: .seconds(60))
    }
    let begin = Instant.now
    let outcome = try setUp(replicas: 5)
    #expect(outcome.status == .exited(69), "\(outcome.errors)")
    #expect(outcome.errors.contains("error 10005"), "\(outcome.errors)")
    #expect(.now - begin >= .seconds(5))
    let last = try setUp(replicas: 3)
    #expect(last.status == .exited(0), "\(last.errors)")
  }

  /// A leaf knows the subjects of a new stream a moment after the stream was made.
  @Test func aLeafThatDoesNotKnowANewStreamYetIsWaitedFor() throws {
    guard let server = try TestServer.start(for: "a leaf with new streams") else { return }
    var ignored: [String: Int] = [:]
    let proxy = try LyingProxy(to: server.port, seed: 1)
    proxy.isHonest = true
    let parts = ["PUB whs.0.deployment ", "DIRECT.GET.WHS_0.", "PUB whs.0.g.x.", "PUB whf.0."]
    proxy.ignores = { line in
      guard let part = parts.first(where: line.contains) else { return false }
      ignored[part, default: 0] += 1
      return ignored[part]! <= 2
    }
    let address = ["--nats", proxy.address, "--token-file", server.tokenFile]
    let setup = try Running(
      Programs.built("wormhole"), ["bridge", "setup", "--replicas", "1"] + address)
    try eventually("the setup ends", within: .seconds(60)) {
      _ = proxy.step(.now)
      return setup.hasEnded
    }
    let outcome = try setup.outcome()
    #expect(outcome.status == .exited(0), "\(outcome.errors)")
    ignored = [:]
    let bridge = try Running(
      Programs.built("wormhole"),
      ["--container", folder.path + "/c", "bridge", "--shared-as", "g"] + address)
    try eventually("the bridge carries", within: .seconds(60)) {
      _ = proxy.step(.now)
      return try bridge.errors.contains("carrying between machines")
    }
    try eventually("the rights were tried", within: .seconds(60)) {
      _ = proxy.step(.now)
      return ignored["PUB whf.0.", default: 0] > 2
    }
    for part in parts.dropFirst() { #expect(ignored[part, default: 0] > 2, "\(part)") }
    #expect(!bridge.hasEnded)
    #expect(try !bridge.errors.contains(Self.setup))
  }
}
