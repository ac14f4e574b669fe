internal import Synchronization
internal import WormholeCTesting
internal import WormholeSyscalls

/// A network of a test's own: each node is a network namespace with one address, and all nodes are
/// attached to one switch, which is a bridge in a namespace of its own.
///
/// Nothing of the network is in this process's own namespace. The names of the namespaces contain
/// the process ID, so that test runs at the same time do not collide; a later run removes what a
/// killed one has left.
///
/// A cut is silent, as in a real network: no program receives an error because of it. A node is cut
/// off from all by taking its link from the switch; one direction between two nodes is cut by a
/// blackhole route in the sending node.
package final class TestNetwork: Sendable {
  package let nodes: [String]
  private let prefix: String
  private let cuts = Mutex(Cuts())

  private struct Cuts {
    var isMade = true
    var isolated: Set<String> = []
    /// The nodes whose packets are dropped, and whom they are for.
    var blocked: Set<[String]> = []
  }

  /// Makes a network; nil, and a notice, where the machine has none to make.
  package static func make(nodes: [String], for what: String) throws -> TestNetwork? {
    guard Processes.effectiveUser == 0 else {
      if Processes.environment("CI") != nil, Processes.environment("WORMHOLE_NO_ROOT") == nil {
        throw ServerFailure(description: "\(what): needs root; set WORMHOLE_NO_ROOT to go without")
      }
      skip(what, because: "only root makes network namespaces")
      return nil
    }
    for program in ["ip", "nsenter"] where Programs.installed(program) == nil {
      skip(what, missing: program)
      return nil
    }
    removeLeftovers()
    let network = TestNetwork(nodes)
    do {
      try network.makeAll()
    } catch let error as ServerFailure {
      network.remove()
      // A container may call its user root and let it make no network all the same; a kernel may
      // lack these links.
      guard refusals.contains(where: error.description.contains) else { throw error }
      skip(what, because: error.description)
      return nil
    }
    return network
  }

  /// Errors of a machine that cannot have such a network.
  private static let refusals = [
    "not permitted", "Permission denied", "not supported", "Unknown device type", "Read-only",
  ]

  private init(_ nodes: [String]) {
    self.nodes = nodes
    prefix = "\(Self.mark)\(Processes.current)x\(made.add(1, ordering: .relaxed).newValue)-"
  }

  deinit { remove() }

  private func makeAll() throws {
    let center = namespace(Self.center)
    try ip("netns", "add", center)
    var lines = ["link add name \(Self.bridge) type bridge", "link set dev \(Self.bridge) up"]
    for node in nodes {
      try ip("netns", "add", namespace(node))
      lines += [
        "link add name \(node) type veth peer name eth0 netns \(namespace(node))",
        "link set dev \(node) master \(Self.bridge) up",
      ]
    }
    try ip(center, lines)
    for node in nodes {
      try ip(
        namespace(node),
        ["addr add \(address(of: node))/24 dev eth0", "link set eth0 up", "link set lo up"])
    }
  }

  /// Removes the network with all that runs in it.
  package func remove() {
    let isFirst = cuts.withLock { cuts in
      defer { cuts.isMade = false }
      return cuts.isMade
    }
    guard isFirst else { return }
    for name in all { Self.remove(namespace(name)) }
  }

  /// What could not be removed is left for a person to look at; the test has reported its result.
  private static func remove(_ namespace: String) {
    let processes = try? run("ip", ["netns", "pids", namespace]).output
    for process in (processes ?? "").split(separator: "\n").compactMap({ Int32($0) }) {
      try? Processes.send(.kill, to: process)
    }
    _ = try? run("ip", ["netns", "delete", namespace])
  }

  /// Removes the namespaces of test runs that have ended.
  private static func removeLeftovers() {
    let all = (try? Descriptor.open(path: folder, [.readOnly, .directory]).names()) ?? []
    for name in all {
      guard let match = name.wholeMatch(of: /wormhole([0-9]+)x[0-9]+-.*/),
        let process = Int32(match.output.1),
        (try? Descriptor.open(path: "/proc/\(process)", [.path, .directory])) == nil
      else { continue }
      remove(name)
    }
  }

  private static let mark = "wormhole"
  private static let center = "switch"
  private static let bridge = "bridge"
  private static let folder = "/run/netns"

  private func namespace(_ node: String) -> String { prefix + node }

  /// The file of a node's namespace, for ``TestConnection``.
  package func file(of node: String) -> String { Self.folder + "/" + namespace(node) }

  /// The files of all namespaces of the network.
  package var files: [String] { all.map(file(of:)) }

  private var all: [String] { nodes + [Self.center] }

  /// The address of a node; a node has 127.0.0.1, too.
  package func address(of node: String) -> String {
    "10.77.0.\((nodes.firstIndex(of: node) ?? 0) + 11)"
  }

  /// The words before a command that runs it in a node.
  ///
  /// `nsenter` becomes the command, so that a signal to the process reaches the command.
  package func words(for node: String) -> [String] { ["nsenter", "--net=" + file(of: node)] }

  /// Runs the body with this thread in a node: sockets that the thread makes belong to the node.
  package func inside<Result>(_ node: String, _ body: () throws -> Result) throws -> Result {
    let own = testing_enter_network(file(of: node))
    guard own >= 0 else { throw Errno.current }
    defer {
      // The thread runs other tests later, which must not be in a foreign network.
      precondition(testing_leave_network(own) == 0, "the thread's own network")
    }
    return try body()
  }

  private func ip(_ words: String...) throws { try Self.check(run("ip", words)) }

  /// Runs several commands of `ip` in a namespace.
  private func ip(_ namespace: String, _ lines: [String]) throws {
    let input = lines.map { $0 + "\n" }.joined()
    try Self.check(run("ip", ["-n", namespace, "-batch", "-"], input: input))
  }

  private static func check(_ outcome: ProcessOutcome) throws {
    guard outcome.status == .exited(0) else {
      throw ServerFailure(description: "ip: " + outcome.errors.split(separator: "\n").joined())
    }
  }
}

extension TestNetwork {
  /// Cuts a node off from all others, in both directions.
  package func isolate(_ node: String) throws {
    try cuts.withLock { cuts in
      try ip(namespace(Self.center), ["link set dev \(node) nomaster"])
      cuts.isolated.insert(node)
    }
  }

  /// Drops all packets from one node to another; packets in the other direction arrive.
  ///
  /// A program in the sending node that connects anew receives an error at once.
  package func block(from sender: String, to receiver: String) throws {
    try cuts.withLock { cuts in
      try ip(namespace(sender), ["route replace blackhole \(address(of: receiver))/32"])
      cuts.blocked.insert([sender, receiver])
    }
  }

  /// Ends the cuts of a node, in both directions, or of all nodes.
  package func heal(_ node: String? = nil) throws {
    try cuts.withLock { cuts in
      for name in cuts.isolated where node == nil || node == name {
        try ip(namespace(Self.center), ["link set dev \(name) master \(Self.bridge)"])
        cuts.isolated.remove(name)
      }
      for pair in cuts.blocked where node.map({ pair.contains($0) }) ?? true {
        try ip(namespace(pair[0]), ["route delete blackhole \(address(of: pair[1]))/32"])
        cuts.blocked.remove(pair)
      }
    }
  }
}

private let made = Atomic<Int>(0)
