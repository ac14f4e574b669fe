import TestSupport
import TestTraits
import Testing
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// The check of a machine's rights at servers that do not reply.
@Suite(.blocking) struct RightsCheckTests {
  private static let machine = "0123456789abcdef"

  /// No program listens at the subjects.
  ///
  /// The rights may be missing, or the servers have no leader yet.
  @Test func withoutALeaderNoRightCountsAsMissing() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    let connection = try RelayConnection(
      RelayAddress(server.address), RelayOptions(name: "check", token: "secret"))
    func run(_ what: String, until condition: () -> Bool) throws {
      try eventually(what) {
        _ = server.step(.now)
        connection.proceed(.now)
        return condition()
      }
    }
    try run("the connection is ready") { connection.state == .ready }
    // The server refuses each request to a stream.
    server.lies.refusal = 1000
    let check = RightsCheck(
      JetStream(connection), try Subjects(group: "g", Deployment()), Self.machine,
      try MachineRights(machine: Self.machine, group: "g"))
    try run("each right is tried") {
      check.proceed(.now)
      return check.isDone
    }
    #expect(check.missing == nil)
    let unknown = check.verdicts.filter {
      if case .unknown = $0.verdict { true } else { false }
    }
    #expect(unknown.count == 6, "\(check.verdicts)")
    #expect(unknown.first?.right.purpose == "send messages")
    connection.close()
  }
}
