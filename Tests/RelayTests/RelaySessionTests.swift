import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeRelay

/// A session, without a socket and in a time of its own.
struct PlayedSession {
  var session: RelaySession
  var now = Instant(nanoseconds: 1_000_000_000)
  var events: [String] = []

  static let info =
    #"INFO {"version":"2.10.23","headers":true,"auth_required":true,"max_payload":1000,"#
    + #""domain":"hub","client_id":9}"#

  init(change: (inout RelayOptions) -> Void = { _ in }) {
    var options = RelayOptions(name: "a b", token: "secret")
    change(&options)
    session = RelaySession(options, random: 0xAB)
    session.tick(now)
  }

  /// A session that is ready, with nothing left to send.
  static func ready() -> PlayedSession {
    var played = PlayedSession()
    played.feed(info + "\r\nPONG\r\n")
    played.sent()
    played.events = []
    return played
  }

  mutating func feed(_ text: String) {
    session.feed(text.utf8.span.bytes)
    take()
  }

  mutating func wait(_ time: Duration) {
    now = now + time
    session.tick(now)
    take()
  }

  @discardableResult mutating func sent() -> String {
    let bytes = session.outgoing[session.sent...]
    session.didSend(bytes.count)
    return String(decoding: bytes, as: UTF8.self)
  }

  mutating func request(_ subject: String = "a", within: Duration = .seconds(1)) throws -> UInt64 {
    try session.request(subject, headers: [], [], within: within)
  }

  private mutating func take() {
    while let event = session.next() {
      switch event {
      case .ready: events.append("ready")
      case .message(let id, let message): events.append("\(id) \(message.subject)")
      case .finished(let id, .success(let message)):
        events.append("\(id) replied \(text(message.payload))")
      case .finished(let id, .failure(let failure)): events.append("\(id) \(failure.kind)")
      case .permission(let failure): events.append("\(failure.kind)")
      }
    }
  }

  var failure: RelayFailure? {
    if case .closed(let failure) = session.phase { failure } else { nil }
  }
}

@Suite(.blocking) struct RelaySessionTests {
  @Test func theTokenFollowsACheckAndMessagesFollowThePong() throws {
    var played = PlayedSession()
    try played.session.subscribe("x.>", 2)
    try played.session.publish("y", replyTo: nil, headers: [], [0x21])
    #expect(played.sent() == "")
    played.feed(PlayedSession.info + "\r\n")
    let connect = played.sent()
    #expect(connect.hasPrefix("CONNECT {") && connect.hasSuffix("}\r\nPING\r\n"))
    for part in [
      #""auth_token":"secret""#, #""verbose":false"#, #""pedantic":false"#, #""protocol":1"#,
      #""headers":true"#, #""no_responders":true"#, #""lang":"swift""#, #""name":"a b""#,
    ] {
      #expect(connect.contains(part))
    }
    #expect(played.events == [])
    played.feed("+OK\r\nPONG\r\n")
    #expect(played.events == ["ready"])
    #expect(played.sent() == "SUB _INBOX.a_b.ab.* 1\r\nSUB x.> 2\r\nPUB y 1\r\n!\r\n")
    #expect(played.session.server.clientID == 9)
  }

  @Test(arguments: [
    ("2.10.22", false), ("2.10.23", true), ("2.10.27", true), ("2.9.99", false), ("2.15.1", true),
    ("3.0.0", true), ("2.10.23-RC.1", false), ("2.10.24-RC.1", true), ("1.99.99", false),
    ("", false), ("2.10", false), ("2.10.x", false), ("999999999999999999999999999999.0.0", false),
  ])
  func oldServersAreRefused(_ version: String, _ isAccepted: Bool) {
    var played = PlayedSession()
    played.feed(
      PlayedSession.info.replacing("2.10.23", with: version) + "\r\n")
    #expect(played.failure?.kind == (isAccepted ? nil : .unsuitable))
    #expect(played.sent().contains("secret") == isAccepted)
  }

  @Test(arguments: [
    (#""headers":true"#, #""headers":false"#, RelayFailure.Kind.unsuitable),
    (#""domain":"hub""#, #""domain":"""#, .unsuitable),
    (#""auth_required":true"#, #""auth_required":false"#, .unsuitable),
    (#""max_payload":1000"#, #""max_payload":0"#, .malformed),
    (#""max_payload":1000"#, #""max_payload":-5"#, .malformed),
    (#""max_payload":1000"#, #""max_payload":"x""#, .malformed),
    (#""max_payload":1000"#, #""max_payload":999999999999999999999999999999"#, .malformed),
    (#"{"version""#, #"["version""#, .malformed),
  ])
  func unsuitableServersAreRefused(_ old: String, _ new: String, _ kind: RelayFailure.Kind) {
    var played = PlayedSession()
    played.feed(PlayedSession.info.replacing(old, with: new) + "\r\n")
    #expect(played.failure?.kind == kind)
    #expect(played.sent() == "")
  }

  @Test func noServerCarriesMoreThanAMessageCanHave() throws {
    let info = try ServerInfo(json: Array(#"{"max_payload":9000000000}"#.utf8))
    #expect(info.maxPayload == ProtocolParser.largestBody)
    #expect(try ServerInfo(json: Array("{}".utf8)).maxPayload == 1 << 20)
  }

  /// Without this, a server that states nothing would be one with the defaults.
  @Test(arguments: ["[]", "[1]", "7", "\"a\"", "true"])
  func informationThatIsNoObjectIsRefused(_ json: String) {
    let failure = RelayFailure(.malformed, "the server's INFO is not a JSON object")
    #expect(relayFailure { _ = try ServerInfo(json: Array(json.utf8)) } == failure)
    for var played in [PlayedSession(), PlayedSession.ready()] {
      played.feed("INFO \(json)\r\n")
      #expect(played.failure == failure)
    }
  }

  @Test func aMissingTokenAndAGivenDomainAreRespected() {
    var played = PlayedSession { $0.token = nil }
    played.feed(PlayedSession.info + "\r\n")
    #expect(played.failure?.kind == .refused)
    played = PlayedSession { $0.domain = "given" }
    played.feed(PlayedSession.info.replacing(#","domain":"hub""#, with: "") + "\r\n")
    #expect(played.failure == nil && played.session.server.domain == "given")
    played = PlayedSession { $0.allowsOpenServer = true }
    played.feed(PlayedSession.info.replacing("auth_required\":true", with: "x\":1") + "\r\n")
    #expect(played.failure == nil)
    #expect(!played.sent().contains("secret"), "an open server need not know the token")
  }

  @Test func theHandshakeHasATimeLimit() {
    for step in ["", PlayedSession.info + "\r\n"] {
      var played = PlayedSession()
      played.feed(step)
      played.wait(.milliseconds(4999))
      #expect(played.failure == nil)
      #expect(played.session.deadline == played.now + .milliseconds(1))
      played.wait(.milliseconds(1))
      #expect(played.failure?.kind == .timedOut)
    }
  }

  @Test func twoUnansweredPingsCloseAndStalePongsCount() {
    var played = PlayedSession.ready()
    played.wait(.zero)
    #expect(played.sent() == "PING\r\n")
    played.wait(.seconds(2))
    #expect(played.sent() == "PING\r\n")
    played.feed("PONG\r\n")
    played.wait(.seconds(2))
    played.wait(.seconds(1))
    #expect(played.sent() == "PING\r\n")
    // A suspended process finds the PONG when it continues.
    played.now = played.now + .seconds(3600)
    played.feed("PONG\r\n")
    played.wait(.zero)
    #expect(played.failure == nil)
    played.wait(.seconds(2))
    #expect(played.failure == nil)
    played.wait(.seconds(2))
    #expect(played.failure?.kind == .timedOut)
    played.feed("PING\r\n")
    #expect(played.sent() == "")
  }

  @Test func pingsOfTheServerAreAnswered() {
    var played = PlayedSession.ready()
    played.feed("PING\r\nPING\r\n")
    #expect(played.sent() == "PONG\r\nPONG\r\n")
  }

  @Test func repliesFindTheirRequests() throws {
    var played = PlayedSession.ready()
    let (first, second) = (try played.request(), try played.request())
    #expect(
      played.sent() == "PUB a _INBOX.a_b.ab.1 0\r\n\r\nPUB a _INBOX.a_b.ab.2 0\r\n\r\n")
    played.feed("MSG _INBOX.a_b.ab.\(second) 1 2\r\nhi\r\n")
    played.feed("MSG _INBOX.a_b.ab.\(second) 1 2\r\nhi\r\n")
    #expect(played.events == ["2 replied hi"])
    played.feed("HMSG _INBOX.a_b.ab.\(first) 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n")
    #expect(played.events == ["2 replied hi", "1 noResponders"])
    for odd in ["x", "", "1.1", "99999999999999999999999999", "-1", "\u{fc}"] {
      played.feed("MSG _INBOX.a_b.ab.\(odd) 1 0\r\n\r\n")
    }
    played.feed("MSG _INBOX 1 0\r\n\r\nMSG other.subject.that.is.longer 1 0\r\n\r\n")
    #expect(played.events.count == 2 && played.failure == nil)
  }

  @Test func requestsTimeOutOneByOneAndLateRepliesAreDropped() throws {
    var played = PlayedSession.ready()
    played.wait(.zero)
    let late = try played.request(within: .seconds(3))
    played.wait(.zero)
    played.wait(.seconds(1))
    _ = try played.request(within: .milliseconds(500))
    // The time begins now, whenever the last call was.
    #expect(played.session.deadline == Instant(nanoseconds: 0))
    played.wait(.seconds(1))
    #expect(played.events == [])
    played.feed("PONG\r\n")
    played.wait(.milliseconds(499))
    #expect(played.events == [])
    played.wait(.milliseconds(1))
    #expect(played.events == ["2 timedOut"])
    #expect(played.session.deadline == Instant(nanoseconds: 1_000_000_000) + .seconds(3))
    played.feed("PONG\r\nMSG _INBOX.a_b.ab.2 1 0\r\n\r\n")
    played.wait(.milliseconds(500))
    #expect(played.events == ["2 timedOut", "\(late) timedOut"])
    played.wait(.seconds(10))
    #expect(played.events.count == 2)
  }

  @Test func theEndOfARequestPutsOffNoOther() throws {
    var played = PlayedSession.ready()
    played.wait(.zero)
    for seconds in 1...3 { _ = try played.request(within: .seconds(seconds)) }
    played.wait(.zero)
    played.wait(.seconds(1))
    #expect(played.events == ["1 timedOut"])
    #expect(played.session.deadline == played.now + .seconds(1))
    played.feed("PONG\r\n")
    played.wait(.seconds(1))
    #expect(played.events == ["1 timedOut", "2 timedOut"])
    played.feed("PONG\r\n")
    played.wait(.seconds(1))
    #expect(played.events == ["1 timedOut", "2 timedOut", "3 timedOut"])
  }

  @Test func aPermissionErrorIsSurvivedAndFailsItsRequest() throws {
    var played = PlayedSession.ready()
    _ = try played.request("a.b")
    _ = try played.request("a.c")
    played.feed("-ERR 'Permissions Violation for Publish to \"a.b\"'\r\n")
    #expect(
      played.events.sorted() == [
        "1 notPermitted(subject: \"a.b\")", "notPermitted(subject: \"a.b\")",
      ])
    played.feed("-ERR 'Permissions Violation for Subscription to \"x.>\"'\r\n")
    played.feed("-ERR 'permissions violation'\r\n")
    #expect(played.events.count == 4 && played.failure == nil)
    played.feed("MSG _INBOX.a_b.ab.2 1 0\r\n\r\n")
    #expect(played.events.last == "2 replied ")
  }

  @Test(arguments: [
    ("'Authorization Violation'", RelayFailure.Kind.refused), ("'Stale Connection'", .closed),
    ("'User Authentication Expired'", .refused), ("'maximum connections exceeded'", .refused),
    ("'Authentication Timeout'", .closed), ("'Slow Consumer'", .closed), ("", .closed),
    ("'Maximum Payload Violation'", .closed),
  ])
  func allOtherErrorsClose(_ text: String, _ kind: RelayFailure.Kind) {
    var played = PlayedSession.ready()
    played.feed("-ERR \(text)\r\nMSG a 7 0\r\n\r\n")
    #expect(played.failure?.kind == kind)
    #expect(played.events == [])
  }

  @Test func laterInfosChangeTheServer() throws {
    var played = PlayedSession.ready()
    played.feed(
      PlayedSession.info.replacing("\"client_id\":9", with: "\"ldm\":true")
        .replacing("1000", with: "10").replacing("hub", with: "other") + "\r\n")
    #expect(played.failure == nil && played.session.server.isLameDuck)
    #expect(played.session.server.domain == "hub", "the check has accepted this domain")
    #expect(
      relayFailure {
        try played.session.publish("a", replyTo: nil, headers: [], [UInt8](repeating: 0, count: 11))
      }?.kind == .tooLarge)
    #expect(played.sent() == "", "CONNECT is not sent again")
    played.feed("INFO x\r\n")
    #expect(played.failure?.kind == .malformed)
  }

  /// The server would close the connection at a message that exceeds its own limit.
  @Test func whatWaitsForTheServersLimitIsRefusedAlone() throws {
    var played = PlayedSession()
    func publish(_ subject: String, _ count: Int) throws {
      let body = [UInt8](repeating: 0x21, count: count)
      try played.session.publish(subject, replyTo: nil, headers: [], body)
    }
    try publish("large", 1001)
    _ = try played.session.request(
      "asked", headers: [], [UInt8](repeating: 0x21, count: 1001), within: .seconds(1))
    try publish("small", 1)
    try publish("later", 11)
    played.feed(PlayedSession.info + "\r\n")
    #expect(played.events == ["tooLarge", "1 tooLarge"])
    played.sent()
    played.feed(PlayedSession.info.replacing("1000", with: "10") + "\r\nPONG\r\n")
    #expect(played.events == ["tooLarge", "1 tooLarge", "tooLarge", "ready"])
    #expect(played.sent() == "SUB _INBOX.a_b.ab.* 1\r\nPUB small 1\r\n!\r\n")
    played.wait(.zero)
    #expect(played.failure == nil)
    #expect(played.events.count == 4, "a refused request does not time out")
  }

  @Test func aMessageOfTheServersLimitThatWaitsForItIsSent() throws {
    var played = PlayedSession()
    let body = [UInt8](repeating: 0x21, count: 1000)
    try played.session.publish("a", replyTo: nil, headers: [], body)
    _ = try played.session.request("b", headers: [], body, within: .seconds(1))
    played.feed(PlayedSession.info + "\r\n")
    #expect(played.events == [])
    played.sent()
    played.feed("PONG\r\n")
    #expect(played.events == ["ready"])
    let text = String(repeating: "!", count: 1000) + "\r\n"
    #expect(
      played.sent() == "SUB _INBOX.a_b.ab.* 1\r\nPUB a 1000\r\n" + text
        + "PUB b _INBOX.a_b.ab.1 1000\r\n" + text)
  }

  @Test func aServerWithALargeLimitIsSentWhatWaitsForIt() throws {
    var played = PlayedSession()
    let body = [UInt8](repeating: 0x21, count: 2 << 20)
    try played.session.publish("a", replyTo: nil, headers: [], body)
    played.feed(PlayedSession.info.replacing("1000", with: "4000000") + "\r\nPONG\r\n")
    #expect(played.events == ["ready"])
    #expect(played.session.unsent > 2 << 20)
  }

  @Test func nothingLeavesItsLine() throws {
    var played = PlayedSession.ready()
    for bad in ["", "a b", "a\r\nPUB x 0", "\t", String(repeating: "a", count: 4000)] {
      #expect(
        relayFailure { try played.session.publish(bad, replyTo: nil, headers: [], []) } != nil)
      #expect(
        relayFailure { try played.session.publish("a", replyTo: bad, headers: [], []) } != nil)
      #expect(relayFailure { try played.session.subscribe(bad, 3) } != nil)
    }
    #expect(
      relayFailure {
        try played.session.publish("a", replyTo: nil, headers: [("a", "\n")], [])
      } != nil)
    #expect(played.sent() == "")
    try played.session.publish("a", replyTo: "b", headers: [("c", "d")], [0x21])
    #expect(played.sent() == "HPUB a b 18 19\r\nNATS/1.0\r\nc: d\r\n\r\n!\r\n")
  }

  @Test func aServerThatDoesNotReadIsBounded() throws {
    var played = PlayedSession.ready()
    let body = [UInt8](repeating: 0, count: 1000)
    let failure = relayFailure {
      for _ in 0..<100_000 {
        try played.session.publish("a", replyTo: nil, headers: [], body)
      }
    }
    #expect(failure?.kind == .tooLarge)
    #expect(played.session.unsent < RelaySession.mostUnsent + 2000)
    played.feed("PING\r\n")
    #expect(played.failure?.kind == .tooLarge, "the reply to PING has no room either")
    played = .ready()
    for _ in 0..<RelaySession.mostRequests { _ = try played.request() }
    #expect(relayFailure { _ = try played.request() }?.kind == .tooLarge)
  }
}
