import TestSupport
import TestTraits
import Testing
import WormholeSyscalls

@testable import WormholeRelay

/// What the client writes, byte for byte, and what it makes of a scripted reply.
@Suite(.blocking) struct ScriptedRelayTests {
  private static func ready() throws -> ScriptedPair {
    let pair = try ScriptedPair()
    try pair.run("it is ready") { pair.connection.state == .ready }
    return pair
  }

  /// Without heartbeats a lost consumer is never missed.
  @Test func aReaderAsksForItsConsumerAndForMessages() throws {
    let pair = try Self.ready()
    let reader = StreamReader(
      JetStream(pair.connection), stream: "S", filter: "s.>", from: .after(0)
    ) { _ in }
    reader.proceed(pair.now)
    try pair.run("a consumer is asked for") { pair.requests.count == 1 }
    let create = pair.requests[0]
    let parts = create.subject.split(separator: ".").map(String.init)
    try #require(parts.count == 9)
    let name = parts[6]
    #expect(create.subject == "$JS.hub.API.CONSUMER.CREATE.S.\(name).s.>")
    let settings =
      #"{"config":{"ack_policy":"none","deliver_policy":"all","filter_subject":"s.>","#
      + #""inactive_threshold":30000000000,"max_deliver":1,"mem_storage":true,"name":"NAME","#
      + #""num_replicas":1,"replay_policy":"instant"},"stream_name":"S"}"#
    #expect(create.body == settings.replacing("NAME", with: name))
    try pair.answer(create, "{\"name\":\"\(name)\",\"num_pending\":3}")
    try pair.run("messages are asked for") { pair.requests.count == 2 }
    let pull = pair.requests[1]
    #expect(pull.subject == "$JS.hub.API.CONSUMER.MSG.NEXT.S.\(name)")
    #expect(pull.body == #"{"batch":512,"expires":30000000000,"idle_heartbeat":1000000000}"#)
    #expect(pair.sent.contains("SUB \(pull.reply) 2\r\n"), "deliveries go where the reader listens")
    #expect(!reader.isCaughtUp, "three messages wait")
    reader.stop()
    pair.connection.close()
  }

  @Test func aReaderContinuesBehindItsPosition() throws {
    let pair = try Self.ready()
    let reader = StreamReader(
      JetStream(pair.connection), stream: "S", filter: "", from: .after(7)
    ) { _ in }
    reader.proceed(pair.now)
    try pair.run("a consumer is asked for") { pair.requests.count == 1 }
    let create = pair.requests[0]
    let name = String(create.subject.split(separator: ".").last ?? "")
    #expect(create.subject == "$JS.hub.API.CONSUMER.CREATE.S.\(name)")
    #expect(create.body.contains(#""deliver_policy":"by_start_sequence""#))
    #expect(create.body.contains(#""opt_start_seq":8"#))
    #expect(!create.body.contains("filter_subject"))
    try pair.answer(create, "{\"name\":\"\(name)\",\"num_pending\":0}")
    try pair.run("the stream's end is asked for") { pair.requests.count == 2 }
    let state = pair.requests[1]
    #expect(state.subject == "$JS.hub.API.STREAM.INFO.S" && state.body == "")
    try pair.answer(
      state,
      #"{"config":{"name":"S"},"state":{"messages":7,"first_seq":1,"last_seq":7}}"#)
    try pair.run("messages are asked for") { pair.requests.count == 3 }
    #expect(reader.isCaughtUp && !reader.wasReset && reader.restarts == 0)
    reader.stop()
    pair.connection.close()
  }

  /// The next message gets the number of a message that was given, and would never be delivered.
  @Test func aStreamThatEndsOneMessageBeforeThePositionIsReadFromItsBeginning() throws {
    let pair = try Self.ready()
    let reader = StreamReader(
      JetStream(pair.connection), stream: "S", filter: "", from: .after(7)
    ) { _ in }
    reader.proceed(pair.now)
    try pair.run("a consumer is asked for") { pair.requests.count == 1 }
    let create = pair.requests[0]
    let name = String(create.subject.split(separator: ".").last ?? "")
    try pair.answer(create, "{\"name\":\"\(name)\",\"num_pending\":0}")
    try pair.run("the stream's end is asked for") { pair.requests.count == 2 }
    try pair.answer(
      pair.requests[1],
      #"{"config":{"name":"S"},"state":{"messages":6,"first_seq":1,"last_seq":6}}"#)
    try pair.run("the reader begins anew, or asks for messages") {
      reader.restarts == 1 || pair.requests.count == 3
    }
    #expect(reader.resets == 1 && reader.restarts == 1 && reader.position == 0)
    #expect(!reader.isCaughtUp && pair.requests.count == 2)
    reader.stop()
    pair.connection.close()
  }

  /// A stream that discards old messages would lose bundles that no machine has read.
  @Test func aStreamIsCreatedSoThatItRefusesWhatIsTooMuch() throws {
    let pair = try Self.ready()
    let settings = StreamSettings(
      name: "S", subjects: ["s.>", "t"], replicas: 3, maxAge: .seconds(3600), maxPerSubject: 2,
      allowsDirect: true)
    JetStream(pair.connection).createStream(settings) { _ in }
    try pair.run("the stream is asked for") { pair.requests.count == 1 }
    let create = pair.requests[0]
    #expect(create.subject == "$JS.hub.API.STREAM.CREATE.S")
    let json =
      #"{"allow_direct":true,"discard":"new","max_age":3600000000000,"max_bytes":-1,"#
      + #""max_consumers":-1,"max_msgs":-1,"max_msgs_per_subject":2,"name":"S","#
      + #""num_replicas":3,"retention":"limits","storage":"file","subjects":["s.>","t"]}"#
    #expect(create.body == json)
    pair.connection.close()
  }

  /// The number 0 is an expectation too: that the subject has no message yet.
  @Test(arguments: [0, 7, UInt64.max])
  func aPublishStatesItsIdAndItsExpectation(_ expected: UInt64) throws {
    let pair = try Self.ready()
    let connection = pair.connection
    var replies: [Result<JetStream.PublishReply, RelayFailure>] = []
    JetStream(connection).publish(
      "s.a", id: "x-1", expectedLast: expected, headers: [("A", "b")], Array("hi".utf8),
      within: .seconds(5)
    ) { replies.append($0) }
    let block =
      "NATS/1.0\r\nA: b\r\nNats-Msg-Id: x-1\r\n"
      + "Nats-Expected-Last-Subject-Sequence: \(expected)\r\n\r\n"
    let size = block.utf8.count
    let line = "HPUB s.a \(connection.inbox).1 \(size) \(size + 2)\r\n\(block)hi\r\n"
    try pair.run("the message is sent") { pair.sent.hasSuffix(line) }
    try pair.answer(
      (subject: "s.a", reply: "\(connection.inbox).1", body: ""),
      #"{"stream":"S","seq":18446744073709551615,"duplicate":true,"domain":"hub"}"#)
    try pair.run("the reply arrives") { !replies.isEmpty }
    let reply = try #require(replies.first).get()
    #expect(reply.stream == "S" && reply.sequence == .max && reply.isDuplicate)
    #expect(reply.domain == "hub")
    connection.close()
    #expect(replies.count == 1)
  }

  @Test(arguments: [
    (
      #"{"error":{"code":400,"err_code":10071,"description":"wrong last sequence"}}"#,
      RelayFailure.Kind.jetStream(code: 400, errorCode: 10071),
      "the server reports error 10071: wrong last sequence"
    ),
    (
      #"{"error":{}}"#, .jetStream(code: 0, errorCode: 0),
      "the server reports error 0: no description"
    ),
    (#"{"stream":"S"}"#, .malformed, "JetStream's reply does not have the expected form"),
    (#"{"stream":"S","seq":-1}"#, .malformed, "JetStream's reply does not have the expected form"),
    ("[]", .malformed, "JetStream's reply does not have the expected form"),
  ])
  func aReplyWithoutAPlaceIsAFailure(
    _ json: String, _ kind: RelayFailure.Kind, _ reason: String
  ) throws {
    let pair = try Self.ready()
    var failures: [RelayFailure] = []
    JetStream(pair.connection).publish("s.a", [], within: .seconds(5)) {
      if case .failure(let failure) = $0 { failures.append(failure) }
    }
    try pair.run("the message is sent") { pair.requests.count == 1 }
    try pair.answer(pair.requests[0], json)
    try pair.run("the failure arrives") { !failures.isEmpty }
    #expect(failures == [RelayFailure(kind, reason)])
    pair.connection.close()
  }

  /// The close was reported already, once for all.
  @Test func aSubscriptionOfAClosedConnectionIsNoError() throws {
    let pair = try Self.ready()
    let connection = pair.connection
    var failures: [RelayFailure.Kind] = []
    connection.onPermissionError = { failures.append($0.kind) }
    let first = connection.subscribe("a") { _ in }
    connection.close()
    let second = connection.subscribe("b") { _ in }
    #expect(failures == [])
    #expect(second == first + 1)
    connection.unsubscribe(second)
    let third = connection.subscribe("a b") { _ in }
    #expect(third == second + 1)
    #expect(failures == [.malformed])
    #expect(!connection.wantsToWrite && connection.deadline == nil)
  }

  /// The number is only the server's statement, and memory is limited.
  @Test(arguments: [
    ("67108863", 67_108_863), ("67108864", 67_108_864), ("67108865", 67_108_864),
    ("9223372036854775807", 67_108_864),
  ])
  func noServerRaisesTheLimitOfAMessage(_ stated: String, _ limit: Int) {
    var played = PlayedSession()
    played.feed(PlayedSession.info.replacing("1000", with: stated) + "\r\nPONG\r\n")
    #expect(played.session.server.maxPayload == limit)
    played.feed("MSG a 7 2\r\nhi\r\n")
    #expect(played.events == ["ready", "7 a"])
    played.feed("MSG a 7 \(ProtocolParser.largestBody + 1)\r\n")
    #expect(played.failure?.kind == .tooLarge)
  }
}

/// A connection, and a server that says what the test lets it say.
private final class ScriptedPair {
  typealias Request = (subject: String, reply: String, body: String)

  let connection: RelayConnection
  let now = Instant(nanoseconds: 1_000_000_000)
  /// What the client has written.
  private(set) var sent = ""
  private let listener: LoopbackListener
  private var end: ScriptedEnd?
  private var buffer = [UInt8](repeating: 0, count: 65_536)

  init() throws {
    let listener = try LoopbackListener()
    let port = listener.port
    self.listener = listener
    connection = try RelayConnection(
      RelayAddress("nats://127.0.0.1:\(port)"), RelayOptions(name: "pair", token: "secret"))
  }

  /// Drives both until the condition is met.
  func run(_ what: String, until condition: () -> Bool) throws {
    try eventually(what) {
      try listen()
      connection.proceed(now)
      return condition()
    }
  }

  private func listen() throws {
    if end == nil, let socket = listener.accept() {
      end = ScriptedEnd(socket)
      try say(PlayedSession.info + "\r\nPONG\r\n")
    }
    if let end, let count = try end.descriptor.receive(into: &buffer) {
      sent += text(Array(buffer[..<count]))
    }
  }

  func say(_ text: String) throws {
    guard let end else { return }
    _ = try end.descriptor.send(Array(text.utf8))
  }

  /// Replies to a request.
  func answer(_ request: Request, _ body: String) throws {
    let id = RelaySession.inboxSubscription
    try say("MSG \(request.reply) \(id) \(body.utf8.count)\r\n\(body)\r\n")
  }

  /// The client's requests without headers that have arrived as a whole.
  var requests: [Request] {
    let lines = sent.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    return zip(lines, lines.dropFirst()).compactMap { line, body -> Request? in
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 4, words[0] == "PUB", Int(words[3]) == body.utf8.count else {
        return nil
      }
      return (words[1], words[2], body)
    }
  }
}

/// The server's end of the connection.
private final class ScriptedEnd {
  let descriptor: Descriptor
  init(_ descriptor: consuming Descriptor) { self.descriptor = descriptor }
}
