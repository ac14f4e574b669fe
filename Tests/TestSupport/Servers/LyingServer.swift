package import WormholeHubProtocol
package import WormholeSyscalls

/// A server that speaks the protocol of NATS, has one stream, and lies.
///
/// The server has a real socket and no thread: its owner calls ``step(_:)`` with any time, so that
/// a test of hours takes milliseconds. From one seed the lies are the same each time. After
/// ``isHonest`` is set, the server serves correctly; connections that it has silenced stay silent.
package final class LyingServer: HubServer {
  /// How often the server lies, for each thousand of its lines.
  package struct Lies: Sendable {
    package var drop = 10
    package var duplicate = 10
    package var delay = 15
    package var cut = 3
    package var silence = 2
    package var error = 2
    package var garbage = 2
    package var information = 5
    package var status = 10
    package var refusal = 40
    package var forget = 3

    package init() {}
    package static var none: Lies {
      var lies = Lies()
      lies.drop = 0
      lies.duplicate = 0
      lies.delay = 0
      lies.cut = 0
      lies.silence = 0
      lies.error = 0
      lies.garbage = 0
      lies.information = 0
      lies.status = 0
      lies.refusal = 0
      lies.forget = 0
      return lies
    }
  }

  package var lies: Lies
  package var isHonest = false
  package var version = "2.10.23"
  /// The server's limit for a message, as it states it to the next client.
  package var largestMessage = 65_536
  /// Ends each connection after this number of bytes.
  package var cutAfter: Int?
  package var token: String? = "secret"
  /// The beginning of the subjects of which the stream stores messages.
  package var stored = "s."
  /// The messages of the stream `S`, which has all subjects `s.>`; the first has number 1.
  package var log: [HubMessage] = []
  /// How often a client has created a consumer, asked for messages, or subscribed.
  package internal(set) var counts = (consumers: 0, pulls: 0, connections: 0)
  /// The bytes that the latest connection was sent.
  package var sentBytes: Int { latest?.sent ?? 0 }
  /// Whether the kernel still carries bytes, or the end, of the latest connection.
  package func isOnTheWay(received: Int, written: Int) -> Bool {
    guard let latest, !latest.isClosed else { return true }
    return received != latest.sent || !latest.isSilent && written != latest.received
  }
  /// Added to the number of messages that wait for a consumer, as if they expired undelivered.
  package var expiringMessages = 0
  /// The number of subscriptions of all connections.
  package var subscriptionCount: Int { clients.reduce(0) { $0 + $1.session.subscriptions.count } }
  /// The subject whose requests time out: a responder exists, and never replies.
  package var silentSubject = "silent"
  /// Returns the headers and the body of the reply to a request, by its subject; nil leaves the
  /// reply to the server.
  package var script: (String) -> (headers: String, body: String)? = { _ in nil }

  package var consumers: [HubConsumer] = []
  package let beat = Duration.seconds(1)
  var random: SeededRandom
  package private(set) var now = Instant(nanoseconds: 0)
  private let listener: LoopbackListener
  package private(set) var clients: [LyingClient] = []
  /// The latest connection, though it is closed.
  private var latest: LyingClient?

  private let isVersionSix: Bool

  package init(
    seed: UInt64, lies: Lies = Lies(), isVersionSix: Bool = false
  ) throws(Errno) {
    random = SeededRandom(seed: seed)
    self.lies = lies
    self.isVersionSix = isVersionSix
    listener = try LoopbackListener(isVersionSix: isVersionSix)
  }

  package var port: UInt16 { listener.port }
  package var address: String { "nats://\(isVersionSix ? "[::1]" : "127.0.0.1"):\(port)" }

  /// Serves what has arrived and is due; returns whether there was anything.
  package func step(_ now: Instant) -> Bool {
    self.now = now
    var hasWorked = false
    while let socket = listener.accept() {
      let client = LyingClient(socket)
      client.cutAfter = cutAfter
      clients.append(client)
      latest = client
      counts.connections += 1
      send(information(), to: client)
      hasWorked = true
    }
    for client in clients where client.read() {
      hasWorked = true
      while let line = client.next() { serve(line, of: client) }
    }
    serveConsumers()
    for client in clients where client.flush(now) { hasWorked = true }
    clients.removeAll(where: \.isClosed)
    return hasWorked
  }

  /// Puts into the connections what consumers have to deliver; ``step(_:)`` sends it.
  package func serveConsumers() { for consumer in consumers { lieOrServe(consumer) } }

  /// When the next step is due, though nothing arrives.
  package var deadline: Instant? {
    (clients.compactMap(\.nextRelease) + consumers.compactMap { $0.pull?.nextBeat }).min()
  }

  /// Ends all connections, with an error at the other end or without.
  package func dropConnections(reset: Bool = false) {
    for client in clients { client.close(reset: reset) }
  }

  /// Loses all consumers, as a restart does.
  package func forgetConsumers() { consumers = [] }

  /// Sends any bytes to all connections.
  package func sendRaw(_ text: String) {
    for client in clients { client.enqueue(Array(text.utf8)) }
  }

  /// Stops reading and writing, as a cut of the network does.
  package func silence() { for client in clients { client.isSilent = true } }
}

// MARK: - Serving

extension LyingServer {
  func information(_ more: String = "") -> [UInt8] {
    Array(
      ("INFO {\"version\":\"\(version)\",\"headers\":true,"
        + "\"max_payload\":\(largestMessage),\"auth_required\":\(token != nil),"
        + "\"domain\":\"hub\"\(more)} \r\n").utf8)
  }

  private func serve(_ line: HubLine, of client: LyingClient) {
    switch line {
    case .connect(let options):
      guard let token, !options.contains("\"auth_token\":\"\(token)\"") else { return }
      client.enqueue(Array("-ERR 'Authorization Violation'\r\n".utf8))
      client.closesWhenSent = true
    case .ping: send(Array("PONG\r\n".utf8), to: client)
    case .other: break
    case .publish(let message):
      if let reply = script(message.subject) {
        deliver(Array(reply.body.utf8), to: message.reply, headers: reply.headers)
      } else if message.subject.hasPrefix("$JS.hub.API.") {
        serveAPI(message)
      } else if message.subject.hasPrefix(stored) {
        store(message)
      } else if message.subject.hasPrefix("echo.") {
        deliver(message.payload, to: message.reply)
      } else if message.subject != silentSubject, !deliver(message.payload, to: message.subject) {
        refuse(message)
      }
    }
  }

  private func store(_ message: HubMessage) {
    if refusesPredecessor(of: message) { return }
    let known = message.id.flatMap { id in log.firstIndex { $0.id == id } }
    if known == nil { log.append(message) }
    let number = known.map { $0 + 1 } ?? log.count
    let repetition = known == nil ? "" : ",\"duplicate\":true"
    reply("{\"stream\":\"S\",\"seq\":\(number),\"domain\":\"hub\"\(repetition)}", to: message)
  }

  /// Whether the server tells a lie of this frequency now.
  func tells(_ frequency: Int) -> Bool {
    !isHonest && frequency > 0 && Int.random(in: 0..<1000, using: &random) < frequency
  }

  /// Sends a line with its body, or something else.
  package func send(_ frame: [UInt8], to client: LyingClient) {
    if tells(lies.error) { client.enqueue(Self.errors.randomElement(using: &random)!) }
    if tells(lies.information) {
      client.enqueue(information(",\"ldm\":true,\"connect_urls\":[\"127.0.0.1:1\"]"))
    }
    if tells(lies.garbage) { client.enqueue(garbage(of: frame)) }
    if tells(lies.silence) { client.isSilent = true }
    if tells(lies.drop) { return }
    if tells(lies.duplicate) { client.enqueue(frame) }
    if tells(lies.delay) {
      let delay = Duration.milliseconds(Int.random(in: 1...3000, using: &random))
      client.enqueue(frame, at: now + delay)
    } else if tells(lies.cut) {
      client.enqueue(Array(frame.prefix(Int.random(in: 0...frame.count, using: &random))))
      client.closesWhenSent = true
      client.closesWithReset = Bool.random(using: &random)
    } else {
      client.enqueue(frame)
    }
  }

  private static let errors = [
    "'Permissions Violation for Publish to \"s.a\"'", "'Stale Connection'", "'Slow Consumer'", "",
    "'Permissions Violation for Subscription to \"x\"'", "'Authorization Violation'", "'", "'\"\"'",
  ].map { Array("-ERR \($0)\r\n".utf8) }

  /// Bytes that follow no protocol.
  private func garbage(of frame: [UInt8]) -> [UInt8] {
    switch Int.random(in: 0..<8, using: &random) {
    case 0: [UInt8](repeating: 0x61, count: 5000)
    case 1: Array("MSG a 1 999999999999999999999999999999\r\n".utf8)
    case 2: Array("MSG a 1 -7\r\n".utf8)
    case 3: Array("HMSG a 1 9 3\r\nabc\r\n".utf8)
    case 4: random.bytes(Int.random(in: 1...50, using: &random))
    case 5: Array("INFO {\"max_payload\":-1}\r\n".utf8)
    case 6: Array(frame.dropFirst().dropLast(3))
    default: Array("MSG x 2 \(Int.max)\r\n".utf8)
    }
  }
}
