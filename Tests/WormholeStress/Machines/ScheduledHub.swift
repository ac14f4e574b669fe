#if FAULT_POINTS
  import WormholePropertyLists
  import WormholeSyscalls

  /// The server between the bridges of a schedule: as much of NATS as bridges use.
  ///
  /// One list has the messages of all streams, so a stream has gaps in its numbers.
  // One thread makes the hub, and waits while another one serves.
  final class ScheduledHub: @unchecked Sendable {
    private struct Stored {
      let subject: String
      let headers: String
      let payload: [UInt8]
      /// Nanoseconds since 1970.
      let at: Int64
    }

    private final class Consumer {
      struct Pull {
        let reply: String
        var missing: Int
        let expires: Instant
        var nextBeat: Instant
      }

      let (stream, name, filter): (String, String, String)
      /// The numbers of messages that the stream had at first, and of the next one behind these.
      var backlog: [Int]
      var next: Int
      var deliveries = 0
      var pull: Pull?

      init(_ stream: String, _ name: String, _ filter: String, _ backlog: [Int], next: Int) {
        (self.stream, self.name, self.filter) = (stream, name, filter)
        (self.backlog, self.next) = (backlog, next)
      }
    }

    private static let port: UInt16 = 4222
    static let address = "nats://127.0.0.1:\(port)"
    private static let api = "$JS.hub.API."
    /// A client waits for 4 s without a heartbeat.
    private static let beat = Duration.seconds(3)
    private static let greeting =
      #"INFO {"version":"2.10.23","headers":true,"max_payload":1048576,"domain":"hub"} "#

    private let listener: PortListener
    private let set: WaitSet
    private var clients: [HubClient] = []
    private var consumers: [Consumer] = []
    private var log: [Stored] = []
    private var lastClient: UInt64 = 0
    private var now = Instant.now

    init() throws(Errno) {
      listener = try PortListener(address: "127.0.0.1", port: Self.port)
      set = try WaitSet()
      try set.add(listener.descriptor, as: 0)
      let deployment = #"{"format":1,"flows":1,"states":1}"#
      append("whs.0.deployment", "", Array(deployment.utf8))
    }

    private func append(_ subject: String, _ headers: String, _ payload: [UInt8]) {
      log.append(
        Stored(subject: subject, headers: headers, payload: payload, at: Clocks.sinceEpoch))
    }

    // MARK: The loop

    func serve(until end: Instant) throws(Errno) {
      while now < end {
        let behind = clients.contains(where: \.isBehind) ? now + .milliseconds(1) : end
        let beats = consumers.compactMap { $0.pull?.nextBeat }
        let key = try set.wait(until: ([end, behind] + beats).min())
        now = .now
        if key == 0 { try accept() }
        if let client = clients.first(where: { $0.key == key }) {
          client.read()
          while let line = client.next() { serve(line, of: client) }
        }
        for consumer in consumers { serve(consumer) }
        for client in clients { client.flush() }
        clients.removeAll(where: \.isClosed)
      }
    }

    private func accept() throws(Errno) {
      while let socket = try listener.accept() {
        lastClient += 1
        let client = try HubClient(socket, key: lastClient, in: set)
        client.send(Array((Self.greeting + "\r\n").utf8))
        clients.append(client)
      }
    }

    private func serve(_ line: HubClient.Line, of client: HubClient) {
      switch line {
      case .ping: client.send(Array("PONG\r\n".utf8))
      case .subscribe(let subject, let id): client.subscriptions.append((subject, id))
      case .unsubscribe(let id): client.subscriptions.removeAll { $0.id == id }
      case .publish(let message):
        if message.subject.hasPrefix(Self.api) {
          serveAPI(message, message.subject.split(separator: ".").dropFirst(3).map(String.init))
        } else if Self.stream(of: message.subject) != nil {
          store(message)
        } else if !deliver(message.payload, to: message.subject, reply: message.reply) {
          deliver([], to: message.reply, headers: "NATS/1.0 503\r\n\r\n")
        }
      case .other: break
      }
    }

    /// Sends a message to each subscription of a subject; returns whether there is one.
    ///
    /// - Parameter stated: the subject that the message states, if it is another one.
    @discardableResult private func deliver(
      _ payload: [UInt8], to subject: String?, headers: String = "", stated: String? = nil,
      reply: String? = nil
    ) -> Bool {
      guard let subject else { return false }
      var isFound = false
      for client in clients where !client.isClosed {
        for (pattern, id) in client.subscriptions where Self.matches(subject, pattern) {
          isFound = true
          let words = [stated ?? subject, id, reply].compactMap(\.self).joined(separator: " ")
          let size = headers.utf8.count + payload.count
          let line =
            headers.isEmpty
            ? "MSG \(words) \(size)\r\n" : "HMSG \(words) \(headers.utf8.count) \(size)\r\n"
          client.send(Array((line + headers).utf8) + payload + Array("\r\n".utf8))
        }
      }
      return isFound
    }

    private func reply(_ json: String, to subject: String?) {
      deliver(Array(json.utf8), to: subject)
    }

    private static func matches(_ subject: String, _ pattern: String) -> Bool {
      let (parts, wanted) = (subject.split(separator: "."), pattern.split(separator: "."))
      for (index, part) in wanted.enumerated() {
        if part == ">" { return parts.count > index }
        guard index < parts.count, part == "*" || part == parts[index] else { return false }
      }
      return parts.count == wanted.count
    }

    // MARK: Streams

    private static func stream(of subject: String) -> String? {
      subject.hasPrefix("whs.0.") ? "WHS_0" : subject.hasPrefix("whf.0.") ? "WHF_0" : nil
    }

    /// The number of the latest message of a subject; 0 for none.
    private func last(of subject: String) -> Int {
      (log.lastIndex { $0.subject == subject } ?? -1) + 1
    }

    private func store(_ message: HubClient.Message) {
      let expected = message.header("Nats-Expected-Last-Subject-Sequence")
      if let expected, Int(expected) != last(of: message.subject) {
        let error = #"{"code":400,"err_code":10071,"description":"wrong last sequence"}"#
        return reply(#"{"error":\#(error)}"#, to: message.reply)
      }
      append(message.subject, message.headers, message.payload)
      let stream = Self.stream(of: message.subject) ?? ""
      reply(#"{"stream":"\#(stream)","seq":\#(log.count),"domain":"hub"}"#, to: message.reply)
    }

    private func serveAPI(_ message: HubClient.Message, _ parts: [String]) {
      guard parts.count > 2 else { return }
      switch parts.prefix(2).joined(separator: ".") {
      case "STREAM.INFO":
        let state =
          #"{"messages":\#(log.count),"bytes":0,"first_seq":1,"last_seq":\#(log.count)}"#
        let settings = #"{"name":"\#(parts[2])","subjects":["whf.0.>"],"num_replicas":1}"#
        reply(#"{"config":\#(settings),"state":\#(state)}"#, to: message.reply)
      case "DIRECT.GET": get(parts.dropFirst(3).joined(separator: "."), for: message)
      case "CONSUMER.CREATE" where parts.count > 4: createConsumer(message, parts)
      case "CONSUMER.MSG" where parts.count > 4: pull(message, parts)
      default: deliver([], to: message.reply, headers: "NATS/1.0 503\r\n\r\n")
      }
    }

    private func get(_ subject: String, for message: HubClient.Message) {
      let number = last(of: subject)
      guard number > 0 else {
        deliver([], to: message.reply, headers: "NATS/1.0 404 Message Not Found\r\n\r\n")
        return
      }
      let stored = log[number - 1]
      deliver(
        stored.payload, to: message.reply,
        headers: "NATS/1.0\r\nNats-Subject: \(subject)\r\nNats-Sequence: \(number)\r\n"
          + stored.headers + "\r\n")
    }

    // MARK: Consumers

    private func createConsumer(_ message: HubClient.Message, _ parts: [String]) {
      let json = try? JSONPropertyList.decode(message.payload)
      guard let settings = json?["config"], json?["stream_name"]?.stringValue == parts[2] else {
        return reply(#"{"error":{"code":400,"err_code":10025}}"#, to: message.reply)
      }
      let filter = parts[4...].joined(separator: ".")
      var (backlog, next) = ([Int](), settings["opt_start_seq"]?.intValue ?? 1)
      if settings["deliver_policy"]?.stringValue == "last_per_subject" {
        next = log.count + 1
        backlog = log.indices.filter {
          Self.matches(log[$0].subject, filter) && last(of: log[$0].subject) == $0 + 1
        }.map { $0 + 1 }
      }
      let consumer = Consumer(parts[2], parts[3], filter, backlog, next: next)
      consumers.append(consumer)
      reply(#"{"name":"\#(parts[3])","num_pending":\#(pending(of: consumer))}"#, to: message.reply)
    }

    private func isWanted(_ number: Int, by consumer: Consumer) -> Bool {
      Self.matches(log[number - 1].subject, consumer.filter)
    }

    private func pending(of consumer: Consumer) -> Int {
      guard consumer.next <= log.count else { return consumer.backlog.count }
      return consumer.backlog.count
        + (consumer.next...log.count).count { isWanted($0, by: consumer) }
    }

    private func pull(_ message: HubClient.Message, _ parts: [String]) {
      guard let subject = message.reply,
        let consumer = consumers.first(where: { $0.name == parts[4] }),
        let json = try? JSONPropertyList.decode(message.payload)
      else {
        deliver([], to: message.reply, headers: "NATS/1.0 503\r\n\r\n")
        return
      }
      consumer.pull = Consumer.Pull(
        reply: subject, missing: json["batch"]?.intValue ?? 1,
        expires: now + .nanoseconds(json["expires"]?.intValue ?? 0), nextBeat: now + Self.beat)
    }

    /// Delivers the messages that a consumer has for its client, or a heartbeat.
    private func serve(_ consumer: Consumer) {
      while var pull = consumer.pull, let number = takeNext(of: consumer) {
        consumer.deliveries += 1
        pull.missing -= 1
        pull.nextBeat = now + Self.beat
        consumer.pull = pull.missing > 0 ? pull : nil
        let stored = log[number - 1]
        let place =
          "$JS.ACK.hub.account.\(consumer.stream).\(consumer.name).1.\(number)."
          + "\(consumer.deliveries).\(stored.at).\(pending(of: consumer))"
        if !deliver(stored.payload, to: pull.reply, stated: stored.subject, reply: place) {
          consumer.pull = nil
        }
      }
      guard var pull = consumer.pull, now >= min(pull.nextBeat, pull.expires) else { return }
      let isOver = now >= pull.expires
      pull.nextBeat = now + Self.beat
      consumer.pull = isOver ? nil : pull
      let text =
        isOver
        ? "408 Request Timeout"
        : "100 Idle Heartbeat\r\nNats-Last-Consumer: \(consumer.deliveries)"
      if !deliver([], to: pull.reply, headers: "NATS/1.0 \(text)\r\n\r\n") { consumer.pull = nil }
    }

    private func takeNext(of consumer: Consumer) -> Int? {
      if !consumer.backlog.isEmpty { return consumer.backlog.removeFirst() }
      while consumer.next <= log.count {
        consumer.next += 1
        if isWanted(consumer.next - 1, by: consumer) { return consumer.next - 1 }
      }
      return nil
    }
  }
#endif
