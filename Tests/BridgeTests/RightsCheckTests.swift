import TestSupport
import TestTraits
import Testing
import WormholeRelay
import WormholeSyscalls

@testable import WormholeBridge

/// The check of a machine's rights, at servers that do not reply and at servers that do.
@Suite(.blocking) struct RightsCheckTests {
  private static let machine = "0123456789abcdef"

  /// A check that has tried each right at a server.
  private func finished(_ server: LyingServer) throws -> RightsCheck {
    let connection = try RelayConnection(
      RelayAddress(server.address), RelayOptions(name: "check", token: "secret"))
    defer { connection.close() }
    // The time stands still for the connection, so no reply is late.
    let now = Instant.now
    func run(_ what: String, until condition: () -> Bool) throws {
      try eventually(what) {
        _ = server.step(now)
        connection.proceed(now)
        return condition()
      }
    }
    try run("the connection is ready") { connection.state == .ready }
    let check = RightsCheck(
      JetStream(connection), try Subjects(group: "g", Deployment()), Self.machine,
      try MachineRights(machine: Self.machine, group: "g"))
    try run("each right is tried") {
      // No pause between two attempts is waited for.
      check.proceed(check.deadline ?? now)
      return check.isDone
    }
    return check
  }

  /// No program listens at the subjects.
  ///
  /// The rights may be missing, or the servers have no leader yet.
  @Test func withoutALeaderNoRightCountsAsMissing() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    // The server refuses each request to a stream.
    server.lies.refusal = 1000
    let check = try finished(server)
    #expect(check.missing == nil)
    let unknown = check.verdicts.filter {
      if case .unknown = $0.verdict { true } else { false }
    }
    #expect(unknown.count == 6, "\(check.verdicts)")
    #expect(unknown.first?.right.purpose == "send messages")
  }

  /// A leaf learns the subjects of the streams a moment after it has a connection to the hub.
  @Test func eachRightHasAllItsAttempts() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    server.stored = "wh"
    var attempts: [String: Int] = [:]
    server.script = { subject in
      if subject.hasPrefix("$JS.hub.API.DIRECT.GET.") {
        return ("NATS/1.0 404 Message Not Found\r\n\r\n", "")
      }
      guard subject.hasPrefix("wh") else { return nil }
      attempts[subject, default: 0] += 1
      // The first four of five attempts find no program that listens.
      guard attempts[subject, default: 0] < 5 else { return nil }
      return ("NATS/1.0 503\r\n\r\n", "")
    }
    let check = try finished(server)
    #expect(check.verdicts.allSatisfy { $0.verdict == .works }, "\(check.verdicts)")
    #expect(attempts.count == 6 && attempts.values.allSatisfy { $0 == 5 }, "\(attempts)")
  }

  /// A right that is tried with the subject of another right would seem to work.
  @Test func eachRightIsTriedWithItsOwnSubject() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    server.stored = "wh"
    var subjects: [String] = []
    server.script = { subject in
      subjects.append(subject)
      guard subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return nil }
      return ("NATS/1.0 404 Message Not Found\r\n\r\n", "")
    }
    let rights = try finished(server).verdicts.map { $0.right.subject }
    #expect(rights.count == 10 && subjects.count == rights.count)
    let wrong = zip(rights, subjects).filter { !Self.covers($0, $1) }
    #expect(wrong.isEmpty, "\(wrong)")
  }

  private static func covers(_ pattern: String, _ subject: String) -> Bool {
    let (wanted, parts) = (pattern.split(separator: "."), subject.split(separator: "."))
    let isOpen = wanted.last == ">"
    guard isOpen ? parts.count >= wanted.count : parts.count == wanted.count else { return false }
    return zip(wanted, parts).allSatisfy { $0 == ">" || $0 == "*" || $0 == $1 }
  }

  /// The streams have no message yet, and a message without content would be one.
  @Test func theCheckStoresNothing() throws {
    let server = try LyingServer(seed: 1, lies: .none)
    server.stored = "wh"
    server.script = { subject in
      guard subject.hasPrefix("$JS.hub.API.DIRECT.GET.") else { return nil }
      return ("NATS/1.0 404 Message Not Found\r\n\r\n", "")
    }
    let check = try finished(server)
    #expect(check.verdicts.allSatisfy { $0.verdict == .works }, "\(check.verdicts)")
    #expect(server.log.isEmpty)
  }
}
