internal import WormholeSyscalls

/// A real server of NATS with JetStream, alone, on loopback; killed when the test releases the
/// object.
///
/// The server has the address 127.0.0.1, a port that was free, and one token. Its data are in a
/// temporary directory, and stay there when the server is killed.
package final class TestServer: Sendable {
  package let port: Int
  package let token: String
  /// `nats://127.0.0.1:PORT`, as `--nats` takes it.
  package var address: String { "nats://127.0.0.1:\(port)" }
  /// A file of mode 0600 with the token, as `--token-file` takes it.
  package var tokenFile: String { folder.path + "/token" }
  /// The directory that the server's data are in.
  package let data: ServerData
  package let folder: TemporaryDirectory
  package let server: ServerProcess

  /// Starts a server and waits until it serves; nil, and a notice, where the program is missing.
  ///
  /// - Parameters:
  ///   - token: what clients must give; nil for a server that is open to all.
  ///   - domain: the domain of JetStream; nil for none.
  ///   - directory: the directory of configuration, log and data; nil for a new one.
  ///   - data: the directory of the data, as of a file system that the test cuts off; nil for a
  ///     directory in `directory`.
  ///   - syncAlways: whether each write is synced before it is acknowledged.
  ///   - configuration: further lines of the server's configuration.
  ///   - what: the subject of the test, for the notice.
  package static func start(
    token: String? = "secret", domain: String? = "hub", directory: TemporaryDirectory? = nil,
    data: String? = nil, syncAlways: Bool = true, configuration: String = "",
    for what: String = "a real server"
  ) throws -> TestServer? {
    guard let program = try ServerProgram.path(for: what) else { return nil }
    for _ in 1...3 {
      let server = try TestServer(
        program, token, domain, directory ?? TemporaryDirectory(), data, syncAlways, configuration)
      do {
        try server.start()
        return server
      } catch let error as ServerFailure {
        // Another program may have taken the port in the meantime.
        guard error.description.contains("address already in use") else { throw error }
      }
    }
    throw ServerFailure(description: "no port stays free")
  }

  private init(
    _ program: String, _ token: String?, _ domain: String?, _ folder: TemporaryDirectory,
    _ data: String?, _ syncAlways: Bool, _ configuration: String
  ) throws {
    self.folder = folder
    self.token = token ?? ""
    self.data = ServerData(path: data ?? folder.path + "/data")
    port = try ServerProgram.freePort()
    try folder.write(self.token, to: "token")
    let text = """
      server_name: "server"
      listen: "127.0.0.1:\(port)"
      log_file: "\(folder.path)/log"
      \(token.map { "authorization { token: \"\($0)\" }" } ?? "")
      \(self.data.configuration(domain, syncAlways: syncAlways))
      \(configuration)
      """
    try folder.write(text, to: "configuration")
    server = ServerProcess(
      name: "server", command: [program, "-c", folder.path + "/configuration"],
      log: folder.path + "/log")
  }

  deinit { try? server.kill() }

  private func start() throws {
    try server.start()
    try server.waitUntil("serves") {
      try TestConnection("127.0.0.1", port).information.contains(#""jetstream":true"#)
    }
  }

  /// Kills the server; the writes that it has made are not lost, unlike in a power cut.
  package func kill() throws { try server.kill() }

  /// Kills the server if it runs, starts it again with its port and data, and waits until it
  /// serves.
  package func restart() throws {
    try server.kill()
    try start()
  }

  /// Suspends the server: its connections stay open, and nothing replies.
  package func suspend() throws { try server.suspend() }
  package func resume() throws { try server.resume() }

  /// Removes all streams, as the loss of the disk does; the server must not run.
  package func removeData() throws {
    try mustNotRun()
    try data.remove()
  }

  /// Copies the data to a new directory, as a backup does; a server that runs may be half-way.
  package func copyData(to path: String) throws { try data.copy(to: path) }

  /// Replaces the data by a copy; the server must not run.
  package func restoreData(from path: String) throws {
    try mustNotRun()
    try data.restore(from: path)
  }

  private func mustNotRun() throws {
    guard server.process == nil else { throw ServerFailure(description: "the server runs") }
  }

  /// A plain connection to the server, which has accepted the token.
  package func connect() throws -> TestConnection {
    try TestConnection("127.0.0.1", port, token: token)
  }
}
