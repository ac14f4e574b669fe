internal import WormholeSyscalls

extension TestHub {
  func writeConfigurations() throws {
    try folder.write(options.token, to: "token")
    try certificates?.add("hub", addresses: Set(servers.map(host(of:)) + ["127.0.0.1"]).sorted())
    for server in servers {
      try folder.write(configuration(server: server), to: "\(server)/configuration")
    }
    for machine in machines {
      try certificates?.add("\(machine)")
      try folder.write(configuration(machine: machine), to: "\(machine)/configuration")
    }
  }

  /// Lines that servers and leaves share.
  private func common(_ node: Node, _ host: String) -> String {
    """
    server_name: "\(node)"
    listen: "\(host):\(port(of: node))"
    http: "\(host):\(ports[node]!.monitor)"
    log_file: "\(directory(of: node))/log"
    ping_interval: "\(options.pingSeconds)s"
    ping_max: 2
    """
  }

  private func configuration(server: Node) -> String {
    // Its own route, too: a server takes the number of its routes for the size of the cluster until
    // it knows better.
    let routes = servers.map {
      #""nats://\#(host(of: $0)):\#(ports[$0]!.cluster)""#
    }
    let mapping = hasPermissions ? "verify_and_map: true" : "verify: true"
    return """
      \(common(server, host(of: server)))
      \(authorization)
      \(data(of: server).configuration("hub", syncAlways: options.syncAlways))
      cluster {
        name: hub
        listen: "\(host(of: server)):\(ports[server]!.cluster)"
        routes: [\(routes.joined(separator: ", "))]
      }
      leafnodes {
        listen: "\(host(of: server)):\(ports[server]!.leaves)"
        no_advertise: true
        \(certificates?.setting("hub", and: mapping) ?? "")
      }
      \(options.serverConfiguration)
      """
  }

  private var hasPermissions: Bool { certificates != nil && options.permissions != nil }

  /// The clients of the hub, of whom one is each leaf.
  private var authorization: String {
    guard hasPermissions, let permissions = options.permissions else {
      return "authorization { token: \"\(options.token)\" }"
    }
    let users = machines.indices.map {
      "{ user: \"CN=\(machines[$0])\", permissions: { \(permissions($0)) } }"
    }
    return """
      authorization {
        users: [
          { user: "hub", password: "\(options.token)" }
          \(users.joined(separator: "\n    "))
        ]
      }
      """
  }

  private func configuration(machine: Node) -> String {
    let credentials = hasPermissions ? "" : options.token + "@"
    let scheme = hasTLS ? "tls" : "nats"
    let remotes = servers.map {
      #""\#(scheme)://\#(credentials)\#(host(of: $0)):\#(ports[$0]!.leaves)""#
    }
    return """
      \(common(machine, "127.0.0.1"))
      authorization { token: "\(options.token)" }
      leafnodes {
        reconnect: 1
        remotes: [{
          urls: [\(remotes.joined(separator: ", "))]
          \(certificates?.setting("\(machine)", and: "") ?? "")
        }]
      }
      \(options.leafConfiguration)
      """
  }
}
