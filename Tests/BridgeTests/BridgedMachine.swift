import TestSupport
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// A container that stands for a machine, and its bridge, a process of the command.
final class BridgedMachine {
  let path: String
  let container: SharedContainer
  private let server: TestServer
  private(set) var bridge: Running?

  init(_ path: String, _ server: TestServer) throws {
    (self.path, self.server) = (path, server)
    container = try SharedContainer(directory: path)
  }

  /// Creates the streams.
  static func setUp(_ server: TestServer) throws {
    let outcome = try Running(
      Programs.built("wormhole"),
      [
        "bridge", "setup", "--replicas", "1", "--nats", server.address, "--token-file",
        server.tokenFile, "--timeout", "60",
      ]
    ).outcome(within: .seconds(60))
    guard outcome.status == .exited(0) else { throw Failed(description: outcome.errors) }
  }

  struct Failed: Error, CustomStringConvertible { let description: String }

  /// The command's arguments; those at the end count in place of the usual ones.
  func arguments(_ further: [String] = []) -> [String] {
    var words = ["--container", path, "bridge", "--shared-as", "g"]
    let usual = ["--nats": server.address, "--token-file": server.tokenFile]
    for (name, value) in usual.sorted(by: { $0.key < $1.key }) where !further.contains(name) {
      words += [name, value]
    }
    return words + further
  }

  func rejoin(drops: Bool = false) throws -> ProcessOutcome {
    try run(
      Programs.built("wormhole"),
      ["--container", path, "bridge", "rejoin"] + (drops ? ["--drop"] : []))
  }

  /// Starts another bridge, and does not wait for it.
  func startBridge(_ further: [String] = [], environment: [String] = []) throws -> Running {
    try Running(
      Programs.built("wormhole"), arguments(further), environment: environment)
  }

  /// Starts the bridge, and waits until it carries.
  func start(_ further: [String] = []) throws {
    let bridge = try startBridge(further)
    self.bridge = bridge
    try wait("the bridge carries") { try bridge.errors.contains("carrying between machines") }
  }

  func kill() throws { try bridge?.child.send(.kill) }

  /// Waits until a peer is seen as running here.
  func waitUntilRunning(_ name: String, _ isRunning: Bool = true) throws {
    try wait("'\(name)' is seen as \(isRunning ? "running" : "absent")") {
      let peer = container.peer(name)
      let isShown = try peer.reachability == .running
      // While a proxy is made, its presence is held for a moment.
      return try isShown == isRunning && (peer.profile != nil || !isRunning)
    }
  }

  /// The statement of the bridge about itself.
  func status(_ further: [String] = []) throws -> String {
    try Running(Programs.built("wormhole"), ["--container", path, "bridge", "status"] + further)
      .outcome(within: .seconds(60)).output
  }

  private func wait(_ what: String, _ isDone: () throws -> Bool) throws {
    do {
      try eventually(what, within: .seconds(60), isDone)
    } catch {
      throw Failed(description: "\(error): \(try bridge?.errors ?? "no bridge")")
    }
  }
}

/// Two machines with their bridges, over one real server.
final class BridgedMachines {
  let server: TestServer
  let folder: TemporaryDirectory
  let (here, there): (BridgedMachine, BridgedMachine)

  private init(_ server: TestServer) throws {
    self.server = server
    folder = try TemporaryDirectory()
    try BridgedMachine.setUp(server)
    here = try BridgedMachine(folder.path + "/here", server)
    there = try BridgedMachine(folder.path + "/there", server)
    try here.start()
    try there.start()
  }

  /// What both bridges say, for the message of a test that fails.
  func report() throws -> String {
    try [here, there].map { try $0.status() + ($0.bridge?.errors ?? "") }.joined()
  }

  /// Nil, and a notice, where no server can be had.
  static func start() throws -> BridgedMachines? {
    try TestServer.start(for: "a bridge over a real server").map { try BridgedMachines($0) }
  }
}
