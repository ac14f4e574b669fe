import TestSupport
import TestTraits
import Testing
import WormholeRelay
import WormholeSyscalls

/// The client against a real server.
@Suite(.blocking) struct RealServerTests {
  private static func server(
    token: String? = "secret", domain: String? = "hub", configuration: String = ""
  ) throws -> TestServer? {
    try TestServer.start(
      token: token, domain: domain, syncAlways: false, configuration: configuration,
      for: "the client with a real server")
  }

  @Test func aTokenOpensTheServerAndAWrongTokenDoesNot() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    #expect(loop.connection.state == .ready)
    let info = loop.connection.server
    #expect(info.domain == "hub")
    #expect(info.hasHeaders && info.requiresAuthorization && !info.isLameDuck)
    #expect(info.maxPayload == 1 << 20)
    #expect(try #require(info.version) >= .oldest)
    loop.connection.close()
    #expect(loop.connection.socketNumber == nil)

    for token in ["wrong", nil] {
      guard case .closed(let failure) = try RelayLoop(server.address, token: token).connection.state
      else {
        Issue.record("the token \(token ?? "none") was accepted")
        continue
      }
      #expect(failure.kind == .refused)
    }
  }

  @Test func anOpenServerIsRefusedUnlessItIsAllowed() throws {
    guard let server = try Self.server(token: nil) else { return }
    guard case .closed(let failure) = try RelayLoop(server.address).connection.state else {
      Issue.record("an open server was accepted")
      return
    }
    #expect(failure.kind == .unsuitable)
    #expect(failure.reason.contains("token"))
    let loop = try RelayLoop(server.address) { $0.allowsOpenServer = true }
    #expect(loop.connection.state == .ready)
  }

  @Test func aServerWithoutDomainIsRefused() throws {
    guard let server = try Self.server(domain: nil) else { return }
    guard case .closed(let failure) = try RelayLoop(server.address).connection.state else {
      Issue.record("a server without domain was accepted")
      return
    }
    #expect(failure.kind == .unsuitable)
  }

  @Test func noServerIsUnreachable() throws {
    let port = try LoopbackListener().port
    let kind = relayFailure {
      let loop = try RelayLoop("nats://127.0.0.1:\(port)")
      if case .closed(let failure) = loop.connection.state { throw failure }
    }?.kind
    #expect(kind == .unreachable)
  }

  @Test func requestsAreAnsweredOnce() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    let connection = loop.connection
    connection.subscribe("echo.*") { message in
      try? connection.publish(
        message.reply ?? "none", headers: message.headers.fields, message.payload)
    }
    connection.subscribe("silent") { _ in }
    let reply: Result<RelayMessage, RelayFailure> = try loop.result { handler in
      connection.request(
        "echo.a", headers: [("One", "1"), ("Empty", "")], Array("hello".utf8), within: patience,
        handler)
    }
    #expect(text(try reply.get().payload) == "hello")
    #expect(try reply.get().header("one") == "1")
    #expect(try reply.get().header("Empty") == "")

    let none: Result<RelayMessage, RelayFailure> = try loop.result {
      connection.request("nobody", [], within: patience, $0)
    }
    #expect(relayFailure { _ = try none.get() }?.kind == .noResponders)
    let late: Result<RelayMessage, RelayFailure> = try loop.result {
      connection.request("silent", [], within: .milliseconds(20), $0)
    }
    #expect(relayFailure { _ = try late.get() }?.kind == .timedOut)

    let large = [UInt8](repeating: 7, count: 1 << 20)
    let whole: Result<RelayMessage, RelayFailure> = try loop.result {
      connection.request("echo.b", large, within: patience, $0)
    }
    #expect(try whole.get().payload == large)
    #expect(relayFailure { try connection.publish("echo.b", large + [1]) }?.kind == .tooLarge)
  }

  @Test func publishesAreAcknowledgedAndCompared() throws {
    guard let server = try Self.server() else { return }
    let loop = try RelayLoop(server.address)
    let settings = StreamSettings(
      name: "ONE", subjects: ["one.>"], maxAge: .seconds(3600), maxPerSubject: 2,
      allowsDirect: true)
    let created = try loop.result { loop.stream.createStream(settings, $0) }.get()
    #expect(created.settings == settings)
    #expect(created.lastSequence == 0)
    let other = relayFailure { try loop.create("ONE") { $0.maxPerSubject = 3 } }
    #expect(other?.errorCode == JetStreamError.streamExists)

    let first = try loop.store("one.a", "1", id: "id", expectedLast: 0)
    #expect(first.sequence == 1 && !first.isDuplicate && first.stream == "ONE")
    #expect(first.domain == "hub")
    // A single server checks the sequence number first, and a cluster the id.
    do {
      let second = try loop.store("one.a", "1", id: "id", expectedLast: 0)
      #expect(second.sequence == 1 && second.isDuplicate)
    } catch let failure as RelayFailure {
      #expect(JetStreamError.wrongLastSequence.contains(failure.errorCode ?? 0))
    }
    let third = try loop.store("one.a", "1", id: "id")
    #expect(third.sequence == 1 && third.isDuplicate)
    let wrong = relayFailure { try loop.store("one.a", "2", expectedLast: 0) }
    #expect(JetStreamError.wrongLastSequence.contains(wrong?.errorCode ?? 0))
    #expect(try loop.store("one.a", "2", expectedLast: 1).sequence == 2)
    try loop.store("one.a", "3")
    #expect(relayFailure { try loop.store("elsewhere", "1") }?.kind == .noResponders)

    let last = try loop.result { loop.stream.lastMessage(of: "one.a", in: "ONE", $0) }.get()
    #expect(last?.sequence == 3)
    #expect(last.map { text($0.payload) } == "3")
    #expect(try loop.result { loop.stream.lastMessage(of: "one.b", in: "ONE", $0) }.get() == nil)
    let info = try loop.result { loop.stream.streamInfo("ONE", $0) }.get()
    #expect(info.lastSequence == 3 && info.firstSequence == 2 && info.messages == 2)
    let missing = relayFailure {
      _ = try loop.result { loop.stream.streamInfo("TWO", $0) }.get()
    }
    #expect(missing?.errorCode == JetStreamError.noStream)
  }
}
