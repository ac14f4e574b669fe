internal import WormholeSyscalls
internal import WormholePropertyLists

/// A pure state machine for one connection: bytes and the time in, bytes and events out.
///
/// Steps: the server sends INFO; the session checks it and replies with CONNECT and PING; after the
/// server's PONG the session is ready. Everything published before waits until then, because an
/// unsuitable server must not receive it. Every `pingInterval` the session sends a PING, and closes
/// at the second PING without a PONG. The token goes only to a server that has passed the check.
///
/// The caller feeds bytes, takes events until there are none, and calls ``tick(_:)`` afterwards: a
/// PONG that has arrived must count before its absence does.
struct RelaySession {
  enum Phase: Equatable {
    case greeting, authorizing, ready
    case closed(RelayFailure)
  }

  enum Event {
    case ready
    case message(subscription: Int, RelayMessage)
    case finished(UInt64, Result<RelayMessage, RelayFailure>)
    case permission(RelayFailure)
  }

  private struct PendingRequest {
    let subject: String
    let within: Duration
    var deadline: Instant?
  }

  /// A line, or a message, that is sent once the session is ready.
  private struct Held {
    let bytes: [UInt8]
    let message: OutgoingMessage?
  }

  private struct OutgoingMessage {
    let subject: String
    /// The bytes that count for the server's limit.
    let size: Int
    let request: UInt64?
  }

  /// The subscription for the replies to all requests.
  static let inboxSubscription = 1
  /// The limits of what waits here, so that a server that reads nothing does not fill the memory.
  static let mostRequests = 10_000
  static let mostUnsent = 64 << 20

  let options: RelayOptions
  let inbox: String
  private(set) var phase = Phase.greeting
  private(set) var server = ServerInfo()
  /// The bytes to send, behind those that were sent already.
  private(set) var outgoing: [UInt8] = []
  private(set) var sent = 0
  var unsent: Int { outgoing.count - sent }
  private var held: [Held] = []
  private var heldBytes = 0
  private var parser = ProtocolParser()
  private var events: [Event] = []
  private var requests: [UInt64: PendingRequest] = [:]
  private var lastRequest: UInt64 = 0
  /// Requests whose time has not begun: only ``tick(_:)`` knows the time.
  private var untimed: [UInt64] = []
  private var earliestDeadline: Instant?
  private var handshakeEnd: Instant?
  private var nextPing = Instant.distantFuture
  private var unansweredPings = 0

  init(_ options: RelayOptions, random: UInt64) {
    self.options = options
    inbox = "\(options.inbox).\(String(random, radix: 16))"
  }

  /// The time of the next ``tick(_:)``, though nothing arrives; in the past if it is due.
  var deadline: Instant? {
    if case .closed = phase { return nil }
    guard untimed.isEmpty, let handshakeEnd else { return Instant(nanoseconds: 0) }
    let next = phase == .ready ? nextPing : handshakeEnd
    return min(next, earliestDeadline ?? .distantFuture)
  }
}

// MARK: - Input

extension RelaySession {
  mutating func feed(_ bytes: RawSpan) { parser.feed(bytes) }

  /// Returns the next event; nil if more bytes are needed, or the session is closed.
  mutating func next() -> Event? {
    while true {
      if case .closed = phase { return nil }
      if !events.isEmpty { return events.removeFirst() }
      do throws(RelayFailure) {
        guard let input = try parser.next() else { return nil }
        if let event = try handle(input) { return event }
      } catch {
        close(error)
      }
    }
  }

  private mutating func handle(_ input: ProtocolParser.Input) throws(RelayFailure) -> Event? {
    switch input {
    case .info(let json): try read(ServerInfo(json: json))
    case .ping: try write(Array("PONG\r\n".utf8))
    case .pong:
      unansweredPings = 0
      guard phase == .authorizing else { return nil }
      phase = .ready
      nextPing = Instant(nanoseconds: 0)
      outgoing += Array("SUB \(inbox).* \(Self.inboxSubscription)\r\n".utf8)
      for one in held { outgoing += one.bytes }
      (held, heldBytes) = ([], 0)
      return .ready
    case .ok: break
    case .error(let text): return try handle(error: text)
    case .message(let subscription, let message):
      guard phase == .ready else { return nil }
      guard subscription == Self.inboxSubscription else {
        return .message(subscription: subscription, message)
      }
      return reply(message)
    }
    return nil
  }

  private mutating func read(_ info: ServerInfo) throws(RelayFailure) {
    parser.maximumBody = info.maxPayload
    guard phase == .greeting else {
      // What the check has accepted stays: a later INFO announces a limit, or the server's end.
      server.maxPayload = info.maxPayload
      server.isLameDuck = info.isLameDuck
      refuseHeld()
      return
    }
    server = info
    if server.domain == nil { server.domain = options.domain }
    try check()
    var keys: [String: PropertyListValue] = [
      "verbose": false, "pedantic": false, "protocol": 1, "headers": true, "no_responders": true,
      "lang": "swift", "version": "1.0", "name": .string(options.name),
    ]
    if server.requiresAuthorization, let token = options.token {
      keys["auth_token"] = .string(token)
    }
    let json = try RelayJSON.bytes(.dictionary(keys))
    outgoing += Array("CONNECT ".utf8) + json + Array("\r\nPING\r\n".utf8)
    phase = .authorizing
    refuseHeld()
  }

  /// Refuses the held messages that exceed the server's limit, which was unknown when they were
  /// published: the server would close the connection.
  private mutating func refuseHeld() {
    let all = held
    (held, heldBytes) = ([], 0)
    for one in all {
      guard let message = one.message, message.size > largestMessage else {
        hold(one)
        continue
      }
      let failure = excess(message)
      guard let id = message.request else {
        events.append(.permission(failure))
        continue
      }
      guard requests.removeValue(forKey: id) != nil else { continue }
      events.append(.finished(id, .failure(failure)))
    }
  }

  private mutating func hold(_ one: Held) {
    held.append(one)
    heldBytes += one.bytes.count
  }

  private func check() throws(RelayFailure) {
    guard let version = server.version, version >= .oldest else {
      let stated = server.version?.description ?? "unknown"
      throw RelayFailure(
        .unsuitable,
        "the server's version is \(stated); \(ServerVersion.oldest) is the oldest "
          + "that keeps its streams when it is killed")
    }
    guard server.hasHeaders else {
      throw RelayFailure(.unsuitable, "the server supports no headers; remove 'no_header_support'")
    }
    guard server.domain != nil else {
      throw RelayFailure(
        .unsuitable,
        "the server states no JetStream domain; set 'jetstream { domain: hub }' at the hub, and "
          + "'jetstream { enabled: false, domain: hub }' at its leaf servers")
    }
    if server.requiresAuthorization {
      guard options.token != nil else {
        throw RelayFailure(.refused, "the server asks for a token; name the file with the token")
      }
    } else if !options.allowsOpenServer {
      throw RelayFailure(
        .unsuitable,
        "the server asks for no token, so every local user could use it; set "
          + "'authorization { token: … }' at the server, or allow an open server")
    }
  }

  private mutating func handle(error text: String) throws(RelayFailure) -> Event? {
    let lower = text.lowercased()
    guard !lower.utf8.starts(with: "permissions violation".utf8) else {
      let parts = text.utf8.split(
        separator: UInt8(ascii: "\""), maxSplits: 2, omittingEmptySubsequences: false)
      let subject = parts.count > 1 ? String(decoding: parts[1], as: UTF8.self) : ""
      let failure = RelayFailure(.notPermitted(subject: subject), "the server reports: \(text)")
      for (id, request) in requests where request.subject == subject {
        requests[id] = nil
        events.append(.finished(id, .failure(failure)))
      }
      return .permission(failure)
    }
    let isRefusal = ["authorization", "authentication", "maximum connections"].contains {
      lower.contains($0)
    }
    // A server or a client that was slow may be in time when it connects again.
    if lower.contains("timeout") { throw RelayFailure(.closed, "the server reports: \(text)") }
    throw RelayFailure(isRefusal ? .refused : .closed, "the server reports: \(text)")
  }

  /// Finds the request of a reply; a late or foreign reply belongs to none.
  private mutating func reply(_ message: RelayMessage) -> Event? {
    let token = message.subject.utf8.dropFirst(inbox.utf8.count + 1)
    guard message.subject.utf8.starts(with: inbox.utf8), let id = Digits.number(token),
      let request = requests.removeValue(forKey: id)
    else { return nil }
    guard !message.isWithoutResponder else {
      return .finished(
        id,
        .failure(
          RelayFailure(.noResponders, "no program listens on the subject '\(request.subject)'")))
    }
    return .finished(id, .success(message))
  }
}

// MARK: - Output and time

extension RelaySession {
  mutating func subscribe(_ subject: String, _ id: Int) throws(RelayFailure) {
    guard SubjectRules.accepts(subject) else { throw Self.badSubject(subject) }
    try write(Array("SUB \(subject) \(id)\r\n".utf8))
  }

  mutating func unsubscribe(_ id: Int) throws(RelayFailure) {
    try write(Array("UNSUB \(id)\r\n".utf8))
  }

  mutating func publish(
    _ subject: String, replyTo: String?, headers: RelayHeaders, _ payload: [UInt8],
    request: UInt64? = nil
  ) throws(RelayFailure) {
    for subject in [subject, replyTo ?? subject] where !SubjectRules.accepts(subject) {
      throw Self.badSubject(subject)
    }
    let block = headers.isEmpty ? [] : try HeaderBlock.format(headers)
    let size = block.count + payload.count
    let message = OutgoingMessage(subject: subject, size: size, request: request)
    guard size <= largestMessage else { throw excess(message) }
    let reply = replyTo.map { $0 + " " } ?? ""
    let line =
      block.isEmpty
      ? "PUB \(subject) \(reply)\(size)\r\n" : "HPUB \(subject) \(reply)\(block.count) \(size)\r\n"
    try write(Array(line.utf8) + block + payload + [0x0D, 0x0A], message)
  }

  private func excess(_ message: OutgoingMessage) -> RelayFailure {
    RelayFailure(
      .tooLarge,
      "cannot send \(message.size) bytes to '\(message.subject)': the server's limit is "
        + "\(largestMessage)")
  }

  /// The server's limit; before its INFO, the limit of all servers.
  private var largestMessage: Int {
    phase == .greeting ? ProtocolParser.largestBody : server.maxPayload
  }

  /// Sends a request, and returns the number under which it finishes.
  mutating func request(
    _ subject: String, headers: RelayHeaders, _ payload: [UInt8], within: Duration
  ) throws(RelayFailure) -> UInt64 {
    guard requests.count < Self.mostRequests else {
      throw RelayFailure(.tooLarge, "\(Self.mostRequests) requests wait for replies")
    }
    lastRequest += 1
    try publish(
      subject, replyTo: "\(inbox).\(lastRequest)", headers: headers, payload,
      request: lastRequest)
    requests[lastRequest] = PendingRequest(subject: subject, within: within)
    untimed.append(lastRequest)
    return lastRequest
  }

  private static func badSubject(_ subject: String) -> RelayFailure {
    RelayFailure(.malformed, "the subject '\(subject)' is empty, too long, or has blanks")
  }

  private mutating func write(
    _ bytes: [UInt8], _ message: OutgoingMessage? = nil
  ) throws(RelayFailure) {
    if case .closed(let failure) = phase { throw RelayFailure(.closed, failure.reason) }
    guard unsent + heldBytes <= Self.mostUnsent else {
      throw RelayFailure(.tooLarge, "the server does not read: \(Self.mostUnsent) bytes wait")
    }
    if phase == .ready { outgoing += bytes } else { hold(Held(bytes: bytes, message: message)) }
  }

  mutating func didSend(_ count: Int) {
    sent += min(count, unsent)
    guard sent > outgoing.count / 2 else { return }
    outgoing.removeFirst(sent)
    sent = 0
  }

  mutating func close(_ failure: RelayFailure) {
    if case .closed = phase { return }
    phase = .closed(failure)
    outgoing = []
    sent = 0
    (held, heldBytes) = ([], 0)
    parser = ProtocolParser()
    events = []
    requests = [:]
    untimed = []
  }

  /// Ends what has taken too long, and sends a PING if one is due.
  mutating func tick(_ now: Instant) {
    if case .closed = phase { return }
    let end = handshakeEnd ?? now + options.handshakeTimeout
    handshakeEnd = end
    startRequests(now)
    if phase != .ready {
      guard now >= end else { return }
      let step = phase == .greeting ? "its INFO" : "a reply to CONNECT"
      return close(RelayFailure(.timedOut, "the server did not send \(step) in time"))
    }
    guard now >= nextPing else { return }
    guard unansweredPings < 2 else {
      return close(RelayFailure(.timedOut, "the server left two pings unanswered"))
    }
    unansweredPings += 1
    nextPing = now + options.pingInterval
    outgoing += Array("PING\r\n".utf8)
  }

  private mutating func startRequests(_ now: Instant) {
    for id in untimed {
      guard let within = requests[id]?.within else { continue }
      let deadline = now + within
      requests[id]?.deadline = deadline
      earliestDeadline = min(deadline, earliestDeadline ?? deadline)
    }
    untimed = []
    guard let earliest = earliestDeadline, earliest <= now else { return }
    earliestDeadline = nil
    for (id, request) in requests.sorted(by: { $0.key < $1.key }) {
      guard let deadline = request.deadline else { continue }
      guard deadline <= now else {
        earliestDeadline = min(deadline, earliestDeadline ?? deadline)
        continue
      }
      requests[id] = nil
      let failure = RelayFailure(.timedOut, "no reply from '\(request.subject)' in time")
      events.append(.finished(id, .failure(failure)))
    }
  }
}
