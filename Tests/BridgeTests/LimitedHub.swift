import TestSupport
import Wormhole
import WormholeSyscalls

/// A hub that limits the rights of one machine, and a leaf of this machine, which hides refusals.
final class LimitedHub {
  let folder: TemporaryDirectory
  /// The address of the leaf of the machine, and of that of the operator.
  let (leaf, administrator): (String, String)
  private var servers: [ServerProcess] = []
  var hub: ServerProcess { servers[0] }

  /// - Parameter rights: the lines below the machine's `permissions`.
  static func start(rights: String, for what: String) throws -> LimitedHub? {
    guard let program = try ServerProgram.path(for: what) else { return nil }
    return try LimitedHub(program, rights)
  }

  private init(_ program: String, _ rights: String) throws {
    folder = try TemporaryDirectory()
    let ports = try (0..<4).map { _ in try ServerProgram.freePort() }
    (leaf, administrator) = ("nats://127.0.0.1:\(ports[2])", "nats://127.0.0.1:\(ports[3])")
    try folder.write(rights, to: "rights.conf")
    try folder.write("secret", to: "token")
    let hub = """
      server_name: hub
      listen: "127.0.0.1:\(ports[0])"
      jetstream { store_dir: "\(folder.path)/data", domain: hub }
      authorization { users: [
        { user: admin, password: admin }
        { user: m, password: m, permissions: { include rights.conf } }
      ] }
      leafnodes { listen: "127.0.0.1:\(ports[1])" }
      """
    try start(program, "hub", hub, ports[0])
    for (name, port) in [("m", ports[2]), ("admin", ports[3])] {
      let text = """
        server_name: \(name)
        listen: "127.0.0.1:\(port)"
        authorization { token: secret }
        jetstream { enabled: false, domain: hub }
        leafnodes { remotes: [{ url: "nats-leaf://\(name):\(name)@127.0.0.1:\(ports[1])" }] }
        """
      try start(program, name, text, port)
    }
  }

  deinit { for server in servers { try? server.kill() } }

  var tokenFile: String { folder.path + "/token" }

  private func start(_ program: String, _ name: String, _ text: String, _ port: Int) throws {
    try folder.write(text, to: "\(name).conf")
    let server = ServerProcess(
      name: name, command: [program, "-c", "\(folder.path)/\(name).conf"],
      log: "\(folder.path)/no log")
    try server.start()
    servers.append(server)
    try server.waitUntil("serves") {
      try TestConnection("127.0.0.1", port).information.contains("server_id")
    }
  }

  /// Runs an action of the bridge's command.
  func run(
    _ words: [String], container: String? = nil, as address: String
  ) throws -> ProcessOutcome {
    try Running(
      Programs.built("wormhole"),
      (container.map { ["--container", $0] } ?? []) + ["bridge"] + words + [
        "--nats", address, "--token-file", tokenFile,
      ]
    ).outcome(within: .seconds(120))
  }

  func setUp() throws {
    let outcome = try run(
      ["setup", "--replicas", "1", "--timeout", "60"], as: administrator)
    guard outcome.status == .exited(0) else {
      throw BridgedMachine.Failed(description: outcome.errors)
    }
  }
}
