import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeWeb

/// The server among clients that are slow, cut off, half open or hostile.
@Suite(.blocking) struct WebServerTests {
  @Test func aReplyTellsTheBrowserToRunNothingElse() throws {
    let site = try Site()
    let page = try site.get("/\(site.token)/")
    #expect(page.status == 200)
    let nonce = try #require(page.body.firstMatch(of: /nonce="([0-9a-f]{32})"/)).1
    for line in [
      "Content-Security-Policy: default-src 'none'; script-src 'nonce-\(nonce)'; "
        + "style-src 'nonce-\(nonce)'; connect-src 'self'; img-src data:; base-uri 'none'; "
        + "form-action 'none'; frame-ancestors 'none'",
      "X-Content-Type-Options: nosniff", "Referrer-Policy: no-referrer", "Cache-Control: no-store",
      "Cross-Origin-Resource-Policy: same-origin", "Content-Type: text/html; charset=utf-8",
    ] {
      #expect(page.head.contains("\r\n\(line)\r\n"), "\(page.head)")
    }
    #expect(try !site.get("/\(site.token)/").body.contains(nonce))
  }

  @Test func theTokenHostAndOriginAreChecked() throws {
    let site = try Site()
    let own = "127.0.0.1:\(site.server.port)"
    func status(
      _ path: String? = nil, _ headers: [String] = [], host: String? = nil, post: Bool = false
    ) throws -> Int {
      try site.get(
        path ?? "/\(site.token)/\(post ? "do" : "state")", method: post ? "POST" : "GET", headers,
        host: host, body: post ? "{}" : nil
      ).status
    }
    #expect(try status() == 200)
    var wrong = Array(site.token)
    wrong[31] = wrong[31] == "0" ? "1" : "0"
    for path in [
      "/", "/state", "/\(String(wrong))/", "/\(site.token.dropLast())/", "/\(site.token)",
    ] {
      #expect(try status(path) == 403)
    }
    #expect(try status("/\(site.token)/other") == 404)
    for host in ["localhost:\(site.server.port)", "[::1]:\(site.server.port)", own] {
      #expect(try status(host: host) == 200)
    }
    for host in [
      "hub.example:\(site.server.port)", "127.0.0.1", "127.0.0.1:1",
      "192.0.2.1:\(site.server.port)",
      "127.0.0.1.hub.example:\(site.server.port)", "",
    ] {
      #expect(try status(host: host) == 421, "\(host)")
    }
    #expect(try status(nil, ["Host: \(own)"]) == 421)
    #expect(try status(nil, ["Origin: http://\(own)", "Sec-Fetch-Site: same-origin"]) == 200)
    for field in ["Origin: http://hub.example", "Origin: null", "Sec-Fetch-Site: cross-site"] {
      #expect(try status(nil, [field]) == 403)
    }
    let token = "X-Wormhole-Token: \(site.token)"
    let origin = "Origin: http://\(own)"
    #expect(try status(nil, [token, origin], post: true) == 200)
    for headers in [[], [token], [origin], [origin, "X-Wormhole-Token: \(String(wrong))"]] {
      #expect(try status(nil, headers, post: true) == 403)
    }
    #expect(site.changes.withLock { $0 } == 1)
  }

  @Test func eachStreamGetsTheNewestDocument() throws {
    let site = try Site()
    site.server.publish("1")
    let streams = try (0..<5).map { _ in try site.stream() }
    for stream in streams { #expect(try stream.event() == "1") }
    site.server.publish("2")
    for stream in streams { #expect(try stream.event() == "2") }
  }

  /// A client that takes nothing gets what is newest once it reads, and holds up nobody meanwhile.
  @Test func aStreamThatIsNotReadSkipsDocuments() throws {
    // On a busy machine it is not read for long, and would be closed.
    let site = try Site { $0.silence = .seconds(600) }
    let slow = try site.stream()
    let other = try site.stream()
    let large = String(repeating: "x", count: 1 << 20)
    // More than the buffers of the kernel hold.
    for number in 1...30 {
      site.server.publish("\(number) \(large)")
      #expect(try other.event().hasPrefix("\(number) "))
    }
    site.server.publish("end")
    var seen = 0
    while try slow.event() != "end" { seen += 1 }
    #expect(seen < 30)
  }

  @Test func theNextStreamBeyondTheBoundIsRefused() throws {
    let site = try Site()
    let streams = try (0..<200).map { _ in try site.stream() }
    let last = try site.connect()
    try last.ask("/\(site.token)/events")
    #expect(try last.reply().status == 503)
    try last.waitForEnd()
    #expect(try site.get("/\(site.token)/state").status == 200)
    site.server.publish("all")
    for stream in streams { #expect(try stream.event() == "all") }
  }

  @Test func aStreamThatHasEndedMakesRoomForAnother() throws {
    let site = try Site { $0.streams = 1 }
    site.server.publish("1")
    #expect(try site.stream().event() == "1")
    try eventually("another stream begins") { (try? site.stream()) != nil }
  }

  /// The listener stays readable, and the server looks again after a while.
  @Test func aServerWithoutDescriptorsAcceptsLater() throws {
    let site = try Site(faults: [FaultRule(.accept, .fail(.tooManyOpenFiles))])
    #expect(try site.get("/\(site.token)/state").status == 200)
  }

  /// Whatever number of connections say nothing, or half a request, the next one is served.
  @Test func clientsThatSendNothingHoldUpNobody() throws {
    let site = try Site { $0.connections = 20 }
    var silent: [WebConnection] = []
    for number in 0..<60 {
      let connection = try site.connect()
      if number % 2 == 0 { try connection.send("GET /\(site.token)/ HT") }
      silent.append(connection)
    }
    #expect(try site.get("/\(site.token)/state").status == 200)
    for connection in silent.prefix(30) { try connection.waitForEnd() }
  }

  @Test func aRequestThatDoesNotArriveEnds() throws {
    // The time begins with the acceptance, and on a busy machine the client may send later.
    let accepting = FaultPause()
    let site = try Site(faults: [FaultRule(.accept, .pause(accepting))]) {
      $0.arrival = .milliseconds(200)
    }
    let slow = try site.connect()
    try slow.send("GET / HTTP/1.1\r\n")
    accepting.open()
    #expect(try slow.reply().status == 408)
    try slow.waitForEnd()
  }

  @Test func aStreamIsKeptAliveByComments() throws {
    let site = try Site { $0.heartbeat = .milliseconds(50) }
    let stream = try site.stream()
    let before = Instant.now
    try eventually("three heartbeats") { Instant.now - before > .milliseconds(200) }
    site.server.publish("after")
    #expect(try stream.event() == "after")
  }

  /// The client may take the comment later, as it may take a document later.
  @Test func aStreamWithoutRoomForACommentLives() throws {
    let again = FaultPause()
    // The thread sends the head first, and then a comment, until there is room.
    let rules = [
      FaultRule(.send, number: 2, .fail(.wouldBlock)),
      FaultRule(.send, number: 3, .fail(.wouldBlock)), FaultRule(.send, number: 4, .pause(again)),
    ]
    let site = try Site(faults: rules) { $0.heartbeat = .milliseconds(1) }
    let stream = try site.stream()
    #expect(throws: Never.self) {
      try eventually("the comment is sent again") { again.isReached }
    }
    again.open()
    site.server.publish("after")
    #expect(try stream.event() == "after")
  }

  @Test func aRefusedRequestEndsItsConnection() throws {
    let site = try Site()
    let hostile = try site.connect()
    try hostile.send("GET /\(String(repeating: "a", count: 20_000)) HTTP/1.1\r\n\r\n")
    try hostile.waitForEnd()
    let second = try site.connect()
    try second.send("\0\r\n\r\nGET /\(site.token)/state HTTP/1.1\r\n\r\n")
    #expect(try second.reply().status == 400)
    try second.waitForEnd()
  }

  @Test func requestsBehindOneAnotherAreServedInOrder() throws {
    let site = try Site()
    let connection = try site.connect()
    let request = "GET /\(site.token)/X HTTP/1.1\r\nHost: 127.0.0.1:\(site.server.port)\r\n\r\n"
    try connection.send(
      request.replacing("X", with: "state") + request + request.replacing("X", with: "state"))
    #expect(try (0..<3).map { _ in try connection.reply().status } == [200, 404, 200])
  }

  @Test func addressesAreDigitsAndAPort() {
    for (text, isLoopback) in [
      ("127.0.0.1:0", true), ("127.9.9.9:80", true), ("[::1]:80", true), ("localhost:80", true),
      ("0.0.0.0:80", false), ("[::]:80", false), ("192.0.2.1:80", false),
    ] {
      #expect(WebAddress(text)?.isLoopback == isLoopback, "\(text)")
    }
    for text in ["", ":80", "80", "::1:80", "[127.0.0.1]:80", "host:80", "127.0.0.1:65536", "1:-1"]
    {
      #expect(WebAddress(text) == nil, "\(text)")
    }
    for port in ["", "+80", "-0", "+0", " 80", "80 ", "8_0", "0x50", "\u{0668}\u{0660}"] {
      #expect(WebAddress("127.0.0.1:\(port)") == nil, "\(port)")
      #expect(WebAddress("[::1]:\(port)") == nil, "\(port)")
    }
  }
}

/// A server with a page, on a thread of its own.
private final class Site: Sendable {
  let server: WebServer
  let token = WebGuard.randomToken()
  let changes = Monitor(0)
  private let thread: Thread

  /// - Parameter faults: the rules for the calls of the server's thread.
  init(faults: [FaultRule] = [], _ adjust: (inout WebLimits) -> Void = { _ in }) throws {
    var limits = WebLimits()
    adjust(&limits)
    let address = WebAddress("127.0.0.1:0")!
    let server = try WebServer(address, limits)
    let (gate, changes) = (WebGuard(token: token, address, port: server.port), changes)
    self.server = server
    thread = try Thread("server") {
      FaultPoints.with(faults) {
        try? server.run { request, reply in
          do throws(WebRefusal) {
            switch (request.method, try gate.path(of: request)) {
            case (.get, ""):
              reply.send(WebResponse(WebPage(title: "", style: "", body: "", script: "")))
            case (.get, "events"): reply.stream()
            case (.get, "state"): reply.sendDocument()
            case (.post, "do"):
              changes.withLock { $0 += 1 }
              reply.send(WebResponse(json: "{}"))
            default: throw WebRefusal(404, "nothing")
            }
          } catch {
            reply.send(WebResponse(error))
          }
        }
      }
    }
  }

  deinit {
    server.stop()
    thread.join()
  }

  func connect() throws -> WebConnection { try WebConnection(port: Int(server.port)) }

  func get(
    _ path: String, method: String = "GET", _ headers: [String] = [], host: String? = nil,
    body: String? = nil
  ) throws -> WebConnection.Reply {
    let connection = try connect()
    try connection.ask(path, method: method, headers, host: host, body: body)
    return try connection.reply()
  }

  func stream() throws -> WebConnection {
    let connection = try connect()
    try connection.ask("/\(token)/events")
    guard try connection.reply().status == 200 else { throw TooLate(description: "no stream") }
    return connection
  }
}
