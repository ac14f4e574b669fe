internal import Synchronization
internal import WormholeSyscalls

/// A hub of three real servers with JetStream, and machines with a leaf each.
///
/// The servers are a cluster, whose domain is `hub`, so that streams may have three replicas. A
/// leaf is a server without storage; it listens on the loopback of its machine, demands a token and
/// is connected to the hub over TLS, each end with a certificate.
///
/// Each server and machine has a network namespace of its own, so that it can be cut off from the
/// others. Without the rights for this the nodes share the loopback of this process, on different
/// ports, and every function except cuts works: ``network`` is nil then.
package final class TestHub: Sendable {
  /// A server of the hub, or a machine with its leaf; numbers begin at 0.
  package enum Node: Hashable, Sendable, CustomStringConvertible {
    case server(Int), machine(Int)

    package var description: String {
      switch self {
      case .server(let number): "s\(number + 1)"
      case .machine(let number): "m\(number + 1)"
      }
    }
  }

  /// What a test demands of the hub.
  package struct Options: Sendable {
    package var machines = 3
    package var token = "secret"
    /// Whether the servers sync each write before they acknowledge it.
    package var syncAlways = true
    package var usesTLS = true
    package var usesNamespaces = true
    /// The directories of the servers' data, as of file systems that the test cuts off; nil for
    /// directories of the hub's.
    package var data: [String]?
    /// Further lines of the configuration of each server and of each leaf.
    package var serverConfiguration = ""
    package var leafConfiguration = ""
    /// The permissions of a machine's user on the hub; nil for machines that may do everything.
    ///
    /// They are written as in `publish: "a.>", subscribe: "b.>"`. The hub finds the users by their
    /// certificates, so there are no permissions without TLS.
    package var permissions: (@Sendable (_ machine: Int) -> String)?
    /// The seconds between two pings of a server; after two that nothing replied to, the server
    /// closes the connection.
    package var pingSeconds = 1

    package init(machines: Int = 3) { self.machines = machines }
  }

  package let options: Options
  /// The directory of all files; each node has one in it, with its name.
  package let folder: TemporaryDirectory
  /// The namespaces of the nodes; nil where the nodes share the loopback of this process.
  package let network: TestNetwork?
  /// Whether the leaves are connected over TLS.
  package var hasTLS: Bool { certificates != nil }
  package let servers: [Node] = [.server(0), .server(1), .server(2)]
  package let machines: [Node]
  package var nodes: [Node] { servers + machines }

  let certificates: TestCertificates?
  let ports: [Node: Ports]
  let processes: [Node: ServerProcess]

  /// The ports of a node.
  struct Ports: Sendable {
    let client, cluster, leaves, monitor: Int
  }

  /// Starts a hub and waits until it serves; nil, and a notice, where the program is missing.
  ///
  /// - Parameter what: the subject of the test, for notices.
  package static func start(
    _ options: Options = Options(), for what: String = "a hub of real servers"
  ) throws -> TestHub? {
    guard let program = try ServerProgram.path(for: what) else { return nil }
    let hub = try TestHub(program, options, what)
    try hub.startAll()
    try hub.waitUntilReady()
    return hub
  }

  private init(_ program: String, _ options: Options, _ what: String) throws {
    self.options = options
    let folder = try TemporaryDirectory()
    let machines = (0..<options.machines).map(Node.machine)
    let nodes = servers + machines
    network =
      options.usesNamespaces
      ? try TestNetwork.make(nodes: nodes.map(\.description), for: what + " with cuts") : nil
    certificates =
      options.usesTLS
      ? try TestCertificates.make(in: folder.path, for: what + " with TLS") : nil
    self.folder = folder
    self.machines = machines
    var ports: [Node: Ports] = [:]
    var processes: [Node: ServerProcess] = [:]
    for node in nodes {
      try folder.descriptor.makeDirectory("\(node)", mode: 0o700)
      ports[node] = try network.map { _ in Ports.usual } ?? Ports.free()
      let own = "\(folder.path)/\(node)"
      let prefix = network?.words(for: "\(node)") ?? []
      processes[node] = ServerProcess(
        name: "\(node)", command: prefix + [program, "-c", own + "/configuration"],
        log: own + "/log")
    }
    self.ports = ports
    self.processes = processes
    try writeConfigurations()
  }

  deinit { stop() }

  /// Kills all servers and leaves, and all that runs in their namespaces, and removes the
  /// namespaces.
  package func stop() {
    for process in processes.values { try? process.kill() }
    network?.remove()
  }
}

extension TestHub.Ports {
  /// Those of a node that has all ports for itself.
  fileprivate static let usual = Self(client: 4222, cluster: 6222, leaves: 7422, monitor: 8222)

  fileprivate static func free() throws -> Self {
    Self(
      client: try ServerProgram.freePort(), cluster: try ServerProgram.freePort(),
      leaves: try ServerProgram.freePort(), monitor: try ServerProgram.freePort())
  }
}

extension TestHub {
  /// The address of a node, as the other nodes see it.
  package func host(of node: Node) -> String {
    network?.address(of: "\(node)") ?? "127.0.0.1"
  }

  /// The port for clients: of a server at ``host(of:)``, of a leaf at 127.0.0.1 in its machine.
  package func port(of node: Node) -> Int { ports[node]!.client }

  /// `nats://127.0.0.1:PORT`, which programs in the machine use.
  package func address(of machine: Node) -> String { "nats://127.0.0.1:\(port(of: machine))" }

  /// The address of the monitor of a server, for HTTP; all nodes reach it.
  package func monitor(of server: Node) -> String {
    "http://\(host(of: server)):\(ports[server]!.monitor)"
  }

  /// A file of mode 0600 with the token, which is the same for all machines.
  package var tokenFile: String { folder.path + "/token" }

  /// The directory of a node, for whatever a test stores for it.
  package func directory(of node: Node) -> String { "\(folder.path)/\(node)" }

  /// The data of a server.
  package func data(of server: Node) -> ServerData {
    if case .server(let number) = server, let data = options.data {
      return ServerData(path: data[number])
    }
    return ServerData(path: directory(of: server) + "/data")
  }

  /// Where a node's own programs find the server of the node.
  private func ownHost(of node: Node) -> String {
    if case .server = node { host(of: node) } else { "127.0.0.1" }
  }

  /// The file of a node's namespace; nil without namespaces.
  package func namespace(of node: Node) -> String? { network?.file(of: "\(node)") }

  /// A plain connection from inside a node to its server or leaf, which has accepted the token.
  package func connect(
    to node: Node, patience: Duration = .seconds(5)
  ) throws -> TestConnection {
    try TestConnection(
      ownHost(of: node), port(of: node), token: options.token, network: namespace(of: node),
      patience: patience)
  }

  /// A page of the monitor of a server or leaf, such as `/jsz`.
  package func page(
    _ path: String, of node: Node, patience: Duration = .seconds(5)
  ) throws -> String {
    try TestConnection.page(
      path, ownHost(of: node), ports[node]!.monitor, network: namespace(of: node),
      patience: patience)
  }

  /// Starts a program in a machine; it ends with the hub.
  package func start(
    in node: Node, _ program: String, _ arguments: [String] = [], environment: [String] = [],
    input: String = ""
  ) throws -> Running {
    let words = (network?.words(for: "\(node)") ?? []) + [program] + arguments
    return try Running(words[0], Array(words.dropFirst()), environment: environment, input: input)
  }

  /// Runs a program in a machine to its end.
  package func run(
    in node: Node, _ program: String, _ arguments: [String] = [], environment: [String] = [],
    input: String = "", within time: Duration = patience
  ) throws -> ProcessOutcome {
    try start(in: node, program, arguments, environment: environment, input: input)
      .outcome(within: time)
  }
}
