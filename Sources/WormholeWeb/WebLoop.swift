import WormholeSyscalls

/// The state of a server, which only the server's thread touches.
struct WebLoop {
  private let server: WebServer
  private let handler: WebServer.Handler
  private let limits: WebLimits
  private var clients: [Int: WebClient] = [:]
  private var lastClient = 0
  private var document: WebDocument?
  private var streams = 0
  /// Until when no connection is accepted, because the process had no descriptor left.
  private var pause: Instant?
  private var buffer = [UInt8](repeating: 0, count: 16 << 10)

  init(_ server: WebServer, _ handler: @escaping WebServer.Handler) {
    self.server = server
    self.handler = handler
    limits = server.limits
  }

  /// Waits, and handles what has arrived; returns false once the server is stopped.
  mutating func step() throws(Errno) -> Bool {
    guard takeMail() else { return false }
    let now = Instant.now
    if let end = pause, now >= end { pause = nil }
    let numbers = Array(clients.keys)
    var awaited = [
      WaitEntry(server.wake.descriptor.rawValue),
      WaitEntry(server.listener.descriptor.rawValue, reads: pause == nil),
    ]
    var deadline = pause
    for number in numbers {
      let client = clients[number]!
      awaited.append(
        WaitEntry(client.number, reads: client.reads, writes: client.isSending))
      deadline = min(deadline ?? client.deadline, client.deadline)
    }
    try WaitEntry.wait(for: &awaited, until: deadline)
    server.wake.lower()
    for (number, awaited) in zip(numbers, awaited.dropFirst(2)) {
      advance(number, clients[number]!, awaited)
    }
    if awaited[1].isReadable, pause == nil { accept() }
    countStreams()
    return true
  }

  private mutating func takeMail() -> Bool {
    let mail = server.takeMail()
    document = mail.document
    for (number, action) in mail.replies {
      guard let client = clients[number] else { continue }
      perform(action, client)
    }
    for client in clients.values { client.take(document, limits) }
    return !mail.isStopped
  }

  private mutating func perform(_ action: WebAction, _ client: WebClient) {
    switch action {
    case .respond(let response): client.send(response, limits)
    case .document:
      server.noteLook()
      client.send(WebResponse(json: document?.text ?? "{}"), limits)
    case .stream:
      guard streams < limits.streams else {
        let reason = "\(limits.streams) pages receive events already"
        return client.send(WebResponse(WebRefusal(503, reason)), limits, last: true)
      }
      client.beginStream(limits)
      streams += 1
      server.noteLook(streams: streams)
    }
  }

  private mutating func countStreams() {
    let count = clients.values.count { $0.isStream }
    if count != streams { server.note(streams: count) }
    streams = count
  }

  private mutating func advance(_ number: Int, _ client: WebClient, _ awaited: WaitEntry) {
    var lives = !awaited.isOver
    if lives, awaited.isReadable, client.reads { lives = client.receive(&buffer, limits) }
    if lives { ask(number, client) }
    if lives, client.isSending { lives = client.write(limits) }
    // The request that came behind the last one has waited for the reply.
    if lives, !client.isSending { ask(number, client) }
    if lives, Instant.now >= client.deadline { lives = client.expire(limits) }
    if !lives { clients[number] = nil }
  }

  /// Passes on a request that has arrived.
  private func ask(_ number: Int, _ client: WebClient) {
    do throws(WebRefusal) {
      guard let request = try client.request() else { return }
      handler(request, WebReply(server: server, client: number))
    } catch {
      client.send(WebResponse(error), limits, last: true)
    }
  }

  private mutating func accept() {
    for _ in 0..<64 {
      do throws(Errno) {
        guard let socket = try server.listener.accept() else { return }
        // The new connection is closed where no other one can be.
        if clients.count >= limits.connections, !makeRoom() { continue }
        lastClient += 1
        clients[lastClient] = WebClient(socket, limits)
      } catch {
        // A connection that has ended already. Without descriptors, or for any other reason, a wait
        // follows, because the listener remains readable.
        guard error != .connectionAborted else { continue }
        pause = .now + .milliseconds(200)
        return
      }
    }
  }

  /// Closes the connection that has waited longest for its request; of several, the oldest.
  ///
  /// Returns false if each connection has a request.
  private mutating func makeRoom() -> Bool {
    let waiting = clients.compactMap { number, client in client.waitingSince.map { ($0, number) } }
    guard let longest = waiting.min(by: <) else { return false }
    clients[longest.1] = nil
    return true
  }
}
