import TestSupport
import Testing
import WormholePropertyLists
import WormholeSyscalls

/// Three servers and their leaves, configured as the article *Between machines* prints it: over
/// TLS, with certificates from the printed script, and with the printed rights.
final class PrintedHub {
  static let machines = ["m1", "m2"]
  static let administrator = "operator"
  /// The machine in the printed rights.
  private static let printedName = "0123456789abcdef"

  let article: PrintedArticle
  /// The names that the bridges have given the machines.
  private(set) var names: [String: String] = [:]
  private(set) var bridges: [String: Running] = [:]
  private var leaves: [String: Int] = [:]
  private var servers: [ServerProcess] = []

  private struct Ports {
    let client, routes, leaves: Int
    init() throws {
      client = try ServerProgram.freePort()
      routes = try ServerProgram.freePort()
      leaves = try ServerProgram.freePort()
    }
  }

  /// Starts servers, leaves and bridges; nil, and a notice, where a program is missing.
  static func start(for what: String) throws -> PrintedHub? {
    guard let article = try PrintedArticle.open(for: what) else { return nil }
    let hub = PrintedHub(article)
    try hub.makeFiles()
    try hub.startServers()
    try hub.succeed(
      article.commands("operator: setup", port: hub.port(of: administrator)))
    try hub.startBridges()
    return hub
  }

  private init(_ article: PrintedArticle) { self.article = article }

  deinit {
    for bridge in bridges.values where !bridge.hasEnded { try? bridge.child.send(.kill) }
    for server in servers { try? server.kill() }
  }

  func port(of machine: String) -> Int { leaves[machine]! }

  private func succeed(_ commands: [String]) throws {
    let outcome = try article.run(commands)
    guard outcome.status == .exited(0) else {
      let log = servers.map(\.lastLines).joined(separator: "\n")
      throw PrintedArticle.Failed(description: "\(commands): \(outcome.errors)\n\(log)")
    }
  }

  // MARK: Files

  private func makeFiles() throws {
    try article.write("certificate")
    let hosts = (1...3).map { ("DNS:s\($0).example", "IP:127.0.0.1") }
    try succeed(article.commands("three: certificates", hosts))
    try succeed(article.commands("try: token"))
    for machine in Self.machines + [Self.administrator] {
      leaves[machine] = try ServerProgram.freePort()
    }
    for machine in Self.machines {
      try article.folder.descriptor.makeDirectory(machine, mode: 0o700)
      let (name, rights) = try name(machine)
      names[machine] = name
      let outcome = try article.run([rights], root: machine)
      let printed = try article.text("rights", [(Self.printedName, name)])
      guard outcome.output == printed else {
        throw PrintedArticle.Failed(description: "\(outcome) and not \(printed)")
      }
      try article.folder.write(outcome.output, to: "\(machine).conf")
    }
    try article.write("users.conf")
  }

  /// The name of a machine, before there is any server, and the command that prints its rights.
  private func name(_ machine: String) throws -> (String, String) {
    let commands = try article.commands("machine: name", port: port(of: machine))
    let first = try article.run([commands[0]], root: machine)
    let status = try article.run([commands[1]], root: machine)
    guard commands.count == 3, first.status == .exited(69), status.status == .exited(0),
      let name = try JSONPropertyList.decode(Array(status.output.utf8))["machine"]?.stringValue
    else { throw PrintedArticle.Failed(description: "\(first) \(status)") }
    return (name, commands[2])
  }

  // MARK: Processes

  private func startServers() throws {
    let ports = try (1...3).map { _ in try Ports() }
    let path = article.folder.path
    let shared =
      [("/etc/nats", path)]
      + zip(1..., ports).flatMap { number, ports in
        [
          ("s\(number).example:6222", "127.0.0.1:\(ports.routes)"),
          ("s\(number).example:7422", "127.0.0.1:\(ports.leaves)"),
        ]
      }
    for (number, own) in zip(1..., ports) {
      try start(
        "server.conf", "s\(number)",
        [
          ("server_name: s1", "server_name: s\(number)"),
          ("127.0.0.1:5222", "127.0.0.1:\(own.client)"),
          ("0.0.0.0:6222", "127.0.0.1:\(own.routes)"),
          ("0.0.0.0:7422", "127.0.0.1:\(own.leaves)"),
          ("/var/lib/nats", path + "/data\(number)"),
        ] + shared)
    }
    for (machine, port) in leaves {
      try start("leaf.conf", machine, [("m1", machine), ("4222", "\(port)")] + shared)
    }
  }

  private func start(_ mark: String, _ name: String, _ changes: [(String, String)]) throws {
    try article.write(mark, to: "\(name)-\(mark)", changes)
    let server = ServerProcess(
      name: name, command: [article.program, "-c", "\(article.folder.path)/\(name)-\(mark)"],
      log: article.folder.path + "/no log")
    try server.start()
    servers.append(server)
  }

  private func startBridges() throws {
    let unit = try article.text("wormhole-bridge.service")
    let line = unit.split(separator: "\n").first { $0.hasPrefix("ExecStart=") } ?? ""
    let changes = [
      ("/usr/bin/wormhole", "wormhole"), ("%h/.config/wormhole/token", "token"),
      ("--token-file token", "--token-file token --nats nats://127.0.0.1:\(port(of: "m1"))"),
    ]
    let first = changes.reduce(String(line.dropFirst("ExecStart=".count))) {
      $0.replacing($1.0, with: $1.1)
    }
    let second = try article.commands("machine: run", port: port(of: "m2"))
    for (machine, command) in zip(Self.machines, [first] + second) {
      let bridge = try article.start(command, root: machine)
      bridges[machine] = bridge
      try eventually("the bridge of \(machine) carries", within: .seconds(60)) {
        try bridge.errors.contains("carrying between machines as group 'cinema'")
      }
    }
  }

  func stopBridges() throws {
    for bridge in bridges.values {
      try bridge.child.send(.terminate)
      _ = try bridge.outcome(within: .seconds(60))
    }
  }

  /// A plain connection to the leaf of a machine, which has accepted the token.
  func connect(to machine: String) throws -> TestConnection {
    let token = try article.folder.read("token").split(separator: "\n").first.map(String.init)
    return try TestConnection(
      "127.0.0.1", port(of: machine), token: token ?? "", patience: .seconds(30))
  }
}
