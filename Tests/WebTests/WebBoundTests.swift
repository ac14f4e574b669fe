import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeWeb

/// The bounds of requests and connections, exactly at the bound.
@Suite(.blocking) struct WebBoundTests {
  /// The requests of a text, and the status of the refusal at its end.
  private func parse(
    _ text: String, _ limits: WebLimits
  ) -> (requests: [WebRequest], status: Int?) {
    var parser = WebRequestParser(limits)
    parser.feed(text.utf8)
    var requests: [WebRequest] = []
    do throws(WebRefusal) {
      while let request = try parser.next() { requests.append(request) }
      return (requests, nil)
    } catch {
      return (requests, error.status)
    }
  }

  @Test func aBodyMayBeAsLongAsTheBound() {
    var limits = WebLimits()
    limits.body = 5
    let full = parse("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nabcde", limits)
    let bytes = Array("abcde".utf8)
    #expect(full.requests.map(\.body) == [bytes])
    #expect(full.status == nil)
    // Refused by its length alone, before a byte has arrived.
    let more = parse("POST / HTTP/1.1\r\nContent-Length: 6\r\n\r\n", limits)
    #expect(more.requests.isEmpty)
    #expect(more.status == 413)
    let none = parse("POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n", limits)
    #expect(none.requests.count == 1)
    #expect(none.requests.first?.body.isEmpty == true)
    for length in ["", "+1", "1 1", "0x1"] {
      let other = parse("POST / HTTP/1.1\r\nContent-Length: \(length)\r\n\r\n", limits)
      #expect(other.status == 400, "\(length)")
    }
  }

  /// The line and the fields of a head, without the empty line behind them.
  @Test func aHeadMayBeAsLongAsTheBound() {
    var limits = WebLimits()
    let text = "GET / HTTP/1.1\r\nA: b"
    limits.head = text.utf8.count
    limits.fields = 2
    let full = parse(text + "\r\n\r\n", limits)
    let field = WebRequest.Header("a", "b")
    #expect(full.requests.map(\.headers) == [[field]])
    #expect(full.status == nil)
    #expect(parse(text + "c\r\n\r\n", limits).status == 431)
    limits.head = 1000
    #expect(parse(text + "\r\nC: d\r\n\r\n", limits).requests.count == 1)
    #expect(parse(text + "\r\nC: d\r\nE: f\r\n\r\n", limits).status == 431)
  }

  // MARK: Connections

  /// What has arrived behind a request is the beginning of the next, which must arrive in time.
  @Test func theRestOfARequestBehindAReplyMustArriveInTime() throws {
    var limits = WebLimits()
    (limits.arrival, limits.silence) = (.milliseconds(200), .seconds(600))
    // The time begins with the acceptance, and on a busy machine the client may send later.
    let accepting = FaultPause()
    let site = try PlainSite(limits, faults: [FaultRule(.accept, .pause(accepting))])
    let connection = try site.connect()
    try connection.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /b")
    accepting.open()
    #expect(try connection.reply().status == 200)
    #expect(try connection.reply().status == 408)
    try connection.waitForEnd()
  }

  /// Otherwise a client that sends one byte after the other would keep its connection forever.
  @Test func theLaterPiecesOfARequestGiveItNoMoreTime() throws {
    let slow = try SlowRequest()
    let client = try slow.accepted()
    let begin = client.deadline
    var buffer = [UInt8](repeating: 0, count: 4096)
    try slow.connection.send("GET / HT")
    try eventually("the first piece is there") {
      let isOpen = client.receive(&buffer, slow.limits)
      return isOpen && client.deadline > begin
    }
    let end = client.deadline
    try slow.connection.send("TP/1.1\r\nHost: x\r\n\r\n")
    var last = end
    try eventually("the rest is there") {
      let isOpen = client.receive(&buffer, slow.limits)
      last = client.deadline
      return try isOpen && client.request() != nil
    }
    #expect(last == end)
  }

  @Test func anIdleConnectionEndsAfterASilence() throws {
    var limits = WebLimits()
    (limits.arrival, limits.silence) = (.seconds(600), .milliseconds(200))
    let site = try PlainSite(limits)
    let connection = try site.connect()
    try connection.ask("/a")
    let reply = try connection.reply()
    #expect(reply.status == 200)
    #expect(reply.head.contains("\r\nConnection: keep-alive"))
    try connection.waitForEnd()
  }

  /// A connection whose request is being served does not wait for a request, however old it is.
  @Test func silentClientsEndNoConnectionWithARequest() throws {
    var limits = WebLimits()
    limits.connections = 3
    let site = try PlainSite(limits)
    let asking = try site.connect()
    try asking.ask("/held")
    try eventually("the request has arrived") { site.held.withLock { $0.count } == 1 }
    var silent: [WebConnection] = []
    for _ in 0..<5 { silent.append(try site.connect()) }
    // A reply shows that the server has accepted the connections before.
    let last = try site.connect()
    try last.ask("/a")
    #expect(try last.reply().status == 200)
    for connection in silent.prefix(2) { try connection.waitForEnd() }
    for reply in site.held.withLock({ $0 }) { reply.send(WebResponse(json: "{}")) }
    #expect(try asking.reply().status == 200)
  }

  @Test func theConnectionThatHasWaitedLongestMakesRoom() throws {
    var limits = WebLimits()
    limits.connections = 3
    // No connection ends for another reason.
    (limits.arrival, limits.silence) = (.seconds(600), .seconds(600))
    let site = try PlainSite(limits)
    var connections: [WebConnection] = []
    for _ in 1...4 {
      let connection = try site.connect()
      // With its reply, the connection waits for the next request.
      try connection.ask("/a")
      #expect(try connection.reply().status == 200)
      connections.append(connection)
    }
    for connection in connections.dropFirst() {
      try connection.ask("/a")
      #expect(try connection.reply().status == 200)
    }
    try connections[0].waitForEnd()
  }

  /// Where each connection has a request, the new connection is the one that ends.
  @Test func aServerFullOfRequestsAcceptsNoFurtherConnection() throws {
    var limits = WebLimits()
    limits.connections = 1
    let site = try PlainSite(limits)
    let asking = try site.connect()
    try asking.ask("/held")
    try eventually("the request has arrived") { site.held.withLock { $0.count } == 1 }
    try site.connect().waitForEnd()
    for reply in site.held.withLock({ $0 }) { reply.send(WebResponse(json: "{}")) }
    #expect(try asking.reply().status == 200)
  }

  /// A slow client would get the beginning of one event, and then another event.
  @Test func aStreamTakesADocumentWhenAllBeforeItIsSent() throws {
    let slow = try SlowRequest()
    do {
      let client = try slow.accepted()
      client.beginStream(slow.limits)
      // The head is not sent yet when the first document comes.
      for (number, text) in [(1, "first"), (2, "second")] {
        client.take(WebDocument(number: number, text), slow.limits)
        let isOpen = client.write(slow.limits)
        #expect(isOpen && !client.isSending)
      }
    }
    #expect(try slow.connection.reply().status == 200)
    #expect(try slow.connection.event() == "second")
  }
}

/// A connection whose both ends are the test's.
private final class SlowRequest {
  let limits = WebLimits()
  let connection: WebConnection
  private let listener: LoopbackListener

  init() throws {
    let listener = try LoopbackListener()
    connection = try WebConnection(port: Int(listener.port))
    self.listener = listener
  }

  func accepted() throws -> WebClient {
    try eventually("the connection is accepted") { () -> WebClient? in
      guard let socket = listener.accept() else { return nil }
      return WebClient(socket, limits)
    }
  }
}

/// A server without a token, on a thread of its own, that keeps the requests for `/held`.
private final class PlainSite: Sendable {
  let held = Monitor<[WebReply]>([])
  private let server: WebServer
  private let thread: Thread

  /// - Parameter faults: the rules for the calls of the server's thread.
  init(_ limits: WebLimits, faults: [FaultRule] = []) throws {
    let server = try WebServer(WebAddress("127.0.0.1:0")!, limits)
    self.server = server
    thread = try Thread("server") { [held] in
      FaultPoints.with(faults) {
        try? server.run { request, reply in
          if request.path == "/held" {
            held.withLock { $0.append(reply) }
          } else {
            reply.send(WebResponse(json: "{}"))
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
}
