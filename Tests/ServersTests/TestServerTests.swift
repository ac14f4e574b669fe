import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

/// One real server: what tests with a server build upon.
@Suite(.blocking, .notSanitized("it tests other programs")) struct TestServerTests {
  /// Streams and messages with the fewest settings.
  private func store(_ text: String, in server: TestServer) throws {
    let connection = try server.connect()
    let stream = #"{"name":"T","subjects":["t.>"],"storage":"file"}"#
    _ = try connection.request("$JS.hub.API.STREAM.CREATE.T", stream)
    let reply = try connection.request("t.a", text)
    #expect(try #require(reply).contains(/"seq": ?1/), "\(reply ?? "")")
  }

  private func messages(in server: TestServer) throws -> String? {
    let reply = try server.connect().request("$JS.hub.API.STREAM.INFO.T")
    return reply?.firstMatch(of: /"messages": ?([0-9]+)/).map { String($0.output.1) }
  }

  @Test func aServerStatesItsDomainAndDemandsItsToken() throws {
    guard let server = try TestServer.start(token: "right", domain: "hub") else { return }
    let information = try TestConnection("127.0.0.1", server.port).information
    #expect(information.hasPrefix("INFO {"))
    #expect(information.contains(#""domain":"hub""#))
    #expect(information.contains(#""auth_required":true"#))
    #expect(server.address == "nats://127.0.0.1:\(server.port)")
    #expect(try server.folder.read("token") == "right")
    #expect(try server.folder.descriptor.status(of: "token").mode & 0o777 == 0o600)
    // The server refuses another token, and accepts its own.
    #expect(throws: TestConnection.Refused.self) {
      _ = try TestConnection("127.0.0.1", server.port, token: "wrong")
    }
    _ = try server.connect()
  }

  @Test func aServerMayHaveNeitherTokenNorDomain() throws {
    let started = try TestServer.start(token: nil, domain: nil, syncAlways: false)
    guard let server = started else { return }
    let information = try TestConnection("127.0.0.1", server.port).information
    #expect(!information.contains("domain"))
    #expect(!information.contains("auth_required"))
    let reply = try server.connect().request("$JS.API.INFO")
    #expect(try #require(reply).contains("account_info_response"))
  }

  @Test func aServerSyncsAlwaysUnlessToldOtherwise() throws {
    for syncs in [true, false] {
      let port = try ServerProgram.freePort()
      let started = try TestServer.start(
        syncAlways: syncs, configuration: "http: \"127.0.0.1:\(port)\"")
      guard started != nil else { return }
      let page = try TestConnection.page("/jsz", "127.0.0.1", port)
      #expect(page.contains(/"sync_always": ?true/) == syncs)
    }
  }

  @Test func aServerStartsAgainWithItsPortAndData() throws {
    guard let server = try TestServer.start() else { return }
    try store("one", in: server)
    let (port, process) = (server.port, try #require(server.server.process))
    try server.kill()
    #expect(server.server.process == nil)
    #expect(throws: (any Error).self) { _ = try TestConnection("127.0.0.1", port) }
    try server.restart()
    #expect(server.server.process != process)
    #expect(server.port == port)
    #expect(try messages(in: server) == "1")
  }

  @Test func aSuspendedServerDoesNotReplyUntilItResumes() throws {
    guard let server = try TestServer.start() else { return }
    try server.suspend()
    // The kernel accepts the connection, and the server sends no first line.
    #expect(throws: TooLate.self) {
      _ = try TestConnection("127.0.0.1", server.port, patience: .milliseconds(100))
    }
    try server.resume()
    _ = try server.connect()
  }

  @Test func dataAreRemovedCopiedAndRestored() throws {
    guard let server = try TestServer.start() else { return }
    let folder = try TemporaryDirectory()
    try store("one", in: server)
    #expect(throws: ServerFailure.self, "it runs") { try server.removeData() }
    try server.kill()
    try server.copyData(to: folder.path + "/backup")
    try server.removeData()
    try server.restart()
    #expect(try messages(in: server) == nil)
    try server.kill()
    try server.restoreData(from: folder.path + "/backup")
    try server.restart()
    #expect(try messages(in: server) == "1")
  }

  @Test func aChangedBlockIsInTheFilesOfTheStream() throws {
    guard let server = try TestServer.start() else { return }
    try store(String(repeating: "x", count: 4000), in: server)
    try server.kill()
    #expect(try server.data.changeMessages(ofStream: "T") == 1)
    try server.restart()
    #expect(try messages(in: server) != "1", "the server has noticed it")
  }

  @Test func aReleasedServerHasEnded() throws {
    var server = try TestServer.start()
    guard let process = server?.server.process, let path = server?.folder.path else { return }
    server = nil
    #expect(throws: Errno.noSuchProcess) { try Processes.send(.go, to: process) }
    #expect(throws: Errno.noSuchFile) { _ = try Descriptor.status(ofPath: path) }
  }
}
