internal import WormholeSyscalls

extension TestHub {
  func startAll() throws { try nodes.forEach { try start($0) } }

  /// Starts a server or leaf, which must not run, and does not wait for it.
  package func start(_ node: Node) throws { try processes[node]!.start() }

  /// Kills a server or leaf, if it runs.
  package func kill(_ node: Node) throws { try processes[node]!.kill() }

  /// Kills all servers; each is alive until the last moment.
  package func killServers() throws {
    for server in servers {
      if let process = processes[server]!.process { try? Processes.send(.kill, to: process) }
    }
    try servers.forEach { try kill($0) }
  }

  /// Kills a server or leaf if it runs, and starts it again; ``waitUntilReady(within:)`` waits.
  package func restart(_ node: Node) throws {
    try kill(node)
    try start(node)
  }

  /// Kills all servers at once and starts them again.
  package func restartServers() throws {
    try killServers()
    try servers.forEach { try start($0) }
  }

  package func suspend(_ node: Node) throws { try processes[node]!.suspend() }
  package func resume(_ node: Node) throws { try processes[node]!.resume() }

  /// The process ID of a server or leaf; nil while it does not run.
  package func process(of node: Node) -> Int32? { processes[node]!.process }

  /// Removes the data of a server, or of all; these must not run.
  package func removeData(of server: Node? = nil) throws {
    try forEachStopped(server) { try data(of: $0).remove() }
  }

  /// Copies the data of all servers to a directory that does not exist yet.
  package func copyData(to path: String) throws {
    try Descriptor.makeDirectory(path: path, mode: 0o700)
    for server in servers { try data(of: server).copy(to: path + "/\(server)") }
  }

  /// Replaces the data of a server, or of all, by a copy that ``copyData(to:)`` has made; these
  /// servers must not run.
  package func restoreData(of server: Node? = nil, from path: String) throws {
    try forEachStopped(server) { try data(of: $0).restore(from: path + "/\($0)") }
  }

  private func forEachStopped(_ server: Node?, _ body: (Node) throws -> Void) throws {
    let chosen = server.map { [$0] } ?? servers
    for server in chosen where process(of: server) != nil {
      throw ServerFailure(description: "\(server) runs")
    }
    try chosen.forEach(body)
  }
}

extension TestHub {
  /// Cuts a node off from all others.
  package func cut(_ node: Node) throws { try needed().isolate("\(node)") }

  /// Cuts one direction: nothing from one node arrives at the other.
  package func cut(from sender: Node, to receiver: Node) throws {
    try needed().block(from: "\(sender)", to: "\(receiver)")
  }

  /// Cuts one direction: nothing from the node arrives anywhere.
  package func cutSending(of node: Node) throws {
    for other in nodes where other != node { try cut(from: node, to: other) }
  }

  /// Cuts one direction: nothing from anywhere arrives at the node.
  package func cutReceiving(of node: Node) throws {
    for other in nodes where other != node { try cut(from: other, to: node) }
  }

  /// Cuts both directions between two nodes.
  package func cut(_ node: Node, from other: Node) throws {
    try cut(from: node, to: other)
    try cut(from: other, to: node)
  }

  /// Ends all cuts of a node, or of all nodes.
  package func heal(_ node: Node? = nil) throws { try network?.heal(node.map { "\($0)" }) }

  private func needed() throws -> TestNetwork {
    guard let network else { throw ServerFailure(description: "no cuts without namespaces") }
    return network
  }
}

extension TestHub {
  /// The server that leads the cluster, by most of the servers; nil without a leader.
  package func leader() -> Node? {
    var votes: [Substring: Int] = [:]
    for server in servers where process(of: server) != nil {
      // A server that is suspended or starting has no page; one that is cut off names the last
      // leader for a while.
      let page = try? page("/jsz", of: server, patience: .seconds(1))
      if let name = page?.firstMatch(of: Self.leaderPattern)?.output.1 {
        votes[name, default: 0] += 1
      }
    }
    return servers.first { votes["\($0)", default: 0] * 2 > servers.count }
  }

  /// Waits until the cluster has a leader other than that server, and returns the leader.
  package func waitForLeader(
    otherThan last: Node? = nil, within time: Duration = patience
  ) throws -> Node {
    do {
      return try eventually("another leader than \(last?.description ?? "none")", within: time) {
        leader().flatMap { $0 == last ? nil : $0 }
      }
    } catch {
      let logs = servers.map { "\($0):\n\(processes[$0]!.lastLines)" }.joined(separator: "\n")
      throw ServerFailure(description: "\(error)\n\(logs)")
    }
  }

  private static var leaderPattern: Regex<(Substring, Substring)> {
    /"meta_cluster": \{[^}]*"leader": "([^"]+)"/
  }

  /// Whether a leaf is connected to the hub, as the leaf knows: a cut is noticed seconds later.
  package func isConnected(_ machine: Node) throws -> Bool {
    let page = try page("/leafz", of: machine)
    guard let match = page.firstMatch(of: /"leafnodes": ([0-9]+)/) else {
      throw ServerFailure(description: page)
    }
    return match.output.1 != "0"
  }

  /// Waits until all servers and leaves that run have what they need: a leader whose decisions the
  /// server knows, or a connection to the hub and a reply of JetStream through it.
  ///
  /// A node that is cut off is never ready.
  package func waitUntilReady(within time: Duration = patience) throws {
    for server in servers where process(of: server) != nil {
      try processes[server]!.waitUntil("has a leader", within: time) {
        // The page has another status until the server knows what the leader has decided.
        _ = try page("/healthz?js-server-only=true", of: server)
        // A leader that knows two of the three could not be replaced.
        let size = try page("/jsz", of: server).firstMatch(of: /"cluster_size": ([0-9]+)/)
        return size?.output.1 == "\(servers.count)" && leader() != nil
      }
    }
    for machine in machines where process(of: machine) != nil {
      _ = try request("$JS.hub.API.INFO", through: machine, within: time)
    }
  }

  /// Sends a request through a leaf or server until there is a reply without an error, and returns
  /// the reply.
  ///
  /// A request may be served several times, since a stream without a leader does not reply. So the
  /// request should be one that changes nothing the second time.
  package func request(
    _ subject: String, _ body: String = "", through node: Node, within time: Duration = patience
  ) throws -> String {
    var reply: String?
    try processes[node]!.waitUntil("replies to '\(subject)'", within: time) {
      reply = try connect(to: node, patience: .seconds(1)).request(subject, body)
      guard let reply, !reply.contains(#""error":"#) else {
        throw ServerFailure(description: reply ?? "no responders")
      }
      return true
    }
    return reply ?? ""
  }

  /// Stores a message in a stream through a leaf or server, and returns the reply.
  ///
  /// A leaf knows the subjects of a new stream a moment after the stream was made. Until then the
  /// request has no responders: the message is not stored, and is sent again.
  @discardableResult package func store(
    _ body: String, on subject: String, through node: Node, within time: Duration = patience
  ) throws -> String {
    try eventually("a stream takes '\(subject)' through \(node)", within: time) {
      try connect(to: node).request(subject, body)
    }
  }
}
