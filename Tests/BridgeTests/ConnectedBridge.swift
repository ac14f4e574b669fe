import TestSupport
import WormholeHubProtocol
import WormholeSyscalls

@testable import WormholeBridge
@testable import WormholeRelay

/// A bridge with a connection that is ready, and with all records of its group: there are none.
final class ConnectedBridge {
  let one: UnconnectedBridge
  let link: ServerLink
  private let folder: TemporaryDirectory
  let server: LyingServer

  init() throws {
    let folder = try TemporaryDirectory()
    let server = try LyingServer(seed: 1, lies: .none)
    server.largestMessage = 1 << 20
    let connection = try RelayConnection(
      RelayAddress(server.address), RelayOptions(name: "bridge", token: "secret"))
    let link = ServerLink(connection)
    link.subjects = try Subjects(group: "g", Deployment())
    let reader = StreamReader(
      link.jetStream, stream: "S", filter: "s.>", from: .lastPerSubject
    ) { _ in }
    link.records = reader
    try eventually("the records are read") {
      _ = server.step(.now)
      connection.proceed(.now)
      reader.proceed(.now)
      return reader.isCaughtUp
    }
    one = try UnconnectedBridge(folder.path + "/c")
    (self.folder, self.server, self.link) = (folder, server, link)
  }

  /// Serves the connection until the condition holds.
  func serve(_ condition: String, until isMet: () -> Bool) throws {
    try eventually(condition) {
      _ = server.step(.now)
      link.connection.proceed(.now)
      return isMet()
    }
  }

  deinit { link.stop() }
}
