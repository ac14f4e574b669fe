import TestSupport
import TestTraits
import Testing
import WormholeHubProtocol
import WormholeRelay
import WormholeSyscalls

/// Handlers that call the connection again, and the wait of its thread.
@Suite(.blocking) struct RelayConnectionTests {
  /// A connection of a test to an honest server, both driven by the test.
  private final class Pair {
    let server: LyingServer
    let connection: RelayConnection
    var now = Instant(nanoseconds: 1_000_000_000)

    init(_ server: LyingServer? = nil) throws {
      self.server = try server ?? LyingServer(seed: 1, lies: .none)
      connection = try RelayConnection(
        RelayAddress(self.server.address), RelayOptions(name: "pair", token: "secret"))
    }

    func run(_ what: String, until condition: () -> Bool) throws {
      try eventually(what) {
        _ = server.step(now)
        connection.proceed(now)
        return condition()
      }
    }

    /// Drives both until the kernel carries nothing any more that one of them has written.
    func settle() throws {
      try run("all has arrived") {
        !connection.wantsToWrite
          && !server.isOnTheWay(
            received: connection.receivedBytes, written: connection.writtenBytes)
      }
    }
  }

  private static func ready() throws -> Pair {
    let pair = try Pair()
    try pair.run("it is ready") { pair.connection.state == .ready }
    return pair
  }

  @Test func aHandlerMayCallEverything() throws {
    let pair = try Self.ready()
    let connection = pair.connection
    var heard: [String] = []
    var first = 0
    first = connection.subscribe("echo.>") { message in
      heard.append(message.subject)
      connection.unsubscribe(first)
      connection.subscribe("other") { heard.append($0.subject) }
      connection.request("echo.x", [1], within: .seconds(5)) { result in
        heard.append("reply \((try? result.get())?.payload ?? [])")
        try? connection.publish("other", [])
        // Does nothing: the call is already running.
        connection.proceed(pair.now)
      }
    }
    // The server replies to `echo`, and has no subscriber for it: the message comes from another.
    pair.server.sendRaw("MSG echo.1 \(first) 0\r\n\r\nMSG echo.2 \(first) 0\r\n\r\n")
    try pair.run("all handlers ran") { heard.count == 3 }
    #expect(heard == ["echo.1", "reply [1]", "other"])
    connection.close()
  }

  @Test func aCloseInAHandlerEndsAllHandlers() throws {
    let pair = try Self.ready()
    let connection = pair.connection
    var heard: [String] = []
    for name in ["one", "two"] {
      connection.request("silent", [], within: .seconds(5)) { result in
        guard case .failure(let failure) = result else { return }
        heard.append("\(name) \(failure.kind)")
        connection.request("silent", [], within: .seconds(5)) {
          if case .failure(let failure) = $0 { heard.append("again \(failure.kind)") }
        }
      }
    }
    let id = connection.subscribe("a") { _ in
      heard.append("message")
      connection.close()
    }
    pair.server.sendRaw("MSG a \(id) 0\r\n\r\nMSG a \(id) 0\r\n\r\n")
    try pair.run("it is closed") { connection.state != .ready }
    #expect(heard == ["message", "one closed", "again closed", "two closed", "again closed"])
    #expect(connection.deadline == nil && connection.socketNumber == nil)
    #expect(!connection.wantsToWrite)
    connection.proceed(pair.now)
    connection.close()
    #expect(heard.count == 5)
    #expect(relayFailure { try connection.publish("a", []) }?.kind == .closed)
  }

  @Test func aReaderMayBeStoppedByItsHandler() throws {
    let pair = try Self.ready()
    pair.server.log = (0..<3).map { _ in HubMessage("s.a", []) }
    var batches: [[UInt64]] = []
    var reader: StreamReader?
    reader = StreamReader(
      JetStream(pair.connection), stream: "S", filter: "s.>", from: .after(0)
    ) {
      batches.append($0.map(\.sequence))
      reader?.stop()
    }
    try pair.run("a batch arrives") {
      reader?.proceed(pair.now)
      return !batches.isEmpty
    }
    pair.server.log.append(HubMessage("s.a", []))
    for _ in 0..<100 {
      _ = pair.server.step(pair.now)
      pair.connection.proceed(pair.now)
      reader?.proceed(pair.now)
    }
    try pair.settle()
    #expect(batches == [[1, 2, 3]])
    #expect(pair.server.subscriptionCount == 1, "the one for replies")
    #expect(reader?.deadline == nil)
    reader = nil
    pair.connection.close()
  }

  @Test func aBatchThatWasNotGivenIsNotPassed() throws {
    let pair = try Self.ready()
    let connection = pair.connection
    var given = 0
    let reader = StreamReader(
      JetStream(connection), stream: "S", filter: "s.>", from: .after(0)
    ) { given += $0.count }
    let id = connection.subscribe("a") { _ in connection.close() }
    try pair.run("the reader reads") {
      reader.proceed(pair.now)
      return reader.isCaughtUp && pair.server.counts.pulls == 1
    }
    pair.server.log.append(HubMessage("s.a", []))
    pair.server.serveConsumers()
    pair.server.sendRaw("MSG a \(id) 0\r\n\r\n")
    try pair.run("it is closed") { connection.state != .ready }
    #expect(given == 0 && reader.position == 0)
  }

  @Test func requestsOfJetStreamNeedAReadyConnection() throws {
    let pair = try Pair()
    let stream = JetStream(pair.connection)
    var failures: [RelayFailure.Kind] = []
    stream.streamInfo("S") { if case .failure(let failure) = $0 { failures.append(failure.kind) } }
    stream.lastMessage(of: "s.a", in: "S") {
      if case .failure(let failure) = $0 { failures.append(failure.kind) }
    }
    #expect(failures == [.closed, .closed])
    try pair.run("it is ready") { pair.connection.state == .ready }
    var sequence: UInt64?
    stream.streamInfo("S") { sequence = try? $0.get().lastSequence }
    try pair.run("the state is known") { sequence == 0 }
    pair.connection.close()
  }

  @Test func aReasonThatArrivesWithTheEndIsReported() throws {
    let pair = try Self.ready()
    let (server, connection) = (pair.server, pair.connection)
    // Everything has been read when the handler runs; the end is noticed by the write.
    let id = connection.subscribe("a") { _ in
      server.sendRaw("-ERR 'User Authentication Revoked'\r\n")
      _ = server.step(pair.now)
      server.dropConnections(reset: true)
      try? connection.publish("x", [])
    }
    server.sendRaw("MSG a \(id) 0\r\n\r\n")
    try pair.run("it is closed") { connection.state != .ready }
    guard case .closed(let failure) = connection.state else { return }
    #expect(failure.kind == .refused)
  }

  @Test func theReasonOfTheServerIsReported() throws {
    let pair = try Pair()
    pair.server.token = "another"
    try pair.run("it is closed") {
      if case .closed = pair.connection.state { true } else { false }
    }
    guard case .closed(let failure) = pair.connection.state else { return }
    #expect(failure.kind == .refused && failure.reason.contains("Authorization Violation"))
  }

  @Test func errorsAreReportedToTheHandler() throws {
    let pair = try Self.ready()
    var failures: [RelayFailure.Kind] = []
    pair.connection.onPermissionError = { failures.append($0.kind) }
    pair.server.sendRaw("-ERR 'Permissions Violation for Subscription to \"a.>\"'\r\n")
    try pair.run("the error is reported") { !failures.isEmpty }
    #expect(failures == [.notPermitted(subject: "a.>")])
    pair.connection.subscribe("a b") { _ in }
    #expect(failures.last == .malformed)
    #expect(pair.connection.state == .ready)
    pair.connection.close()
  }

  @Test func theWaitEndsWithAByteAWakeOrADeadline() throws {
    let pair = try Self.ready()
    let wake = try WakeDescriptor()
    pair.now = .now
    // The wait would end with the reply to the ping that was due.
    try pair.settle()
    let start = Instant.now
    try pair.connection.wait(until: start + .milliseconds(30), wake)
    #expect(Instant.now - start >= .milliseconds(30))
    wake.raise()
    try pair.connection.wait(until: .now + patience, wake)
    wake.lower()
    pair.server.sendRaw("PING\r\n")
    _ = pair.server.step(pair.now)
    let received = pair.connection.receivedBytes
    try pair.connection.wait(until: .now + patience, wake)
    pair.connection.proceed(.now)
    #expect(pair.connection.receivedBytes == received + 6)
    #expect(Instant.now - start < patience)
    pair.connection.close()
    wake.raise()
    try pair.connection.wait(until: nil, wake)
  }

  @Test func versionSixIsReached() throws {
    let server: LyingServer
    do {
      server = try LyingServer(seed: 1, lies: .none, isVersionSix: true)
    } catch {
      skip("a connection by IPv6", because: "\(error)")
      return
    }
    let pair = try Pair(server)
    try pair.run("it is ready") { pair.connection.state == .ready }
    pair.connection.close()
  }
}
