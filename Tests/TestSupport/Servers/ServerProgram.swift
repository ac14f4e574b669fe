internal import Synchronization
internal import WormholeCTesting
internal import WormholeSyscalls

/// The program `nats-server`, which the machine may have.
package enum ServerProgram {
  /// The path of the program; nil, and a notice, where the machine has none.
  ///
  /// The environment variable `WORMHOLE_NATS_SERVER` names the program, else PATH has it. A
  /// variable that names no program is an error and no reason to skip.
  package static func path(for what: String) throws -> String? {
    if let given = Processes.environment("WORMHOLE_NATS_SERVER"), !given.isEmpty {
      try Processes.checkProgram(given)
      return given
    }
    guard let path = Programs.installed("nats-server") else {
      skip(what, missing: "nats-server")
      return nil
    }
    return path
  }

  /// Returns a port of loopback at which no program listens.
  ///
  /// The port is below the ports that the kernel gives to outgoing connections, so that it is still
  /// free when its server is started again.
  package static func freePort() throws -> Int {
    for _ in 0..<20_000 {
      let port = 10_000 + next.add(1, ordering: .relaxed).newValue % 20_000
      if testing_port_is_free(CInt(port)) == 1 { return port }
    }
    throw ServerFailure(description: "no port is free")
  }

  /// Processes that search at the same moment begin at different ports.
  private static let next = Atomic<Int>(Int.random(in: 0..<20_000))
}

/// A server, or a network for servers, that does not work as it should.
package struct ServerFailure: Error, CustomStringConvertible {
  package let description: String
  package init(description: String) { self.description = description }
}
