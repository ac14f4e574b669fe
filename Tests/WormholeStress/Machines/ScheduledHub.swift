#if FAULT_POINTS
  import WormholeHubProtocol
  import WormholeSyscalls

  /// The server between the bridges of a schedule: as much of NATS as bridges use.
  ///
  /// The streams share one list, so a stream has gaps in its numbers.
  // One thread makes the hub, and waits while another one serves.
  final class ScheduledHub: HubServer, @unchecked Sendable {
    private static let port: UInt16 = 4222
    static let address = "nats://127.0.0.1:\(port)"
    private static let api = "$JS.hub.API."
    /// A client waits for 4 s without a heartbeat.
    let beat = Duration.seconds(3)
    private static let greeting =
      #"INFO {"version":"2.10.23","headers":true,"max_payload":1048576,"domain":"hub"} "#

    private let listener: PortListener
    private let set: WaitSet
    private(set) var clients: [HubClient] = []
    var consumers: [HubConsumer] = []
    private(set) var log: [HubMessage] = []
    private var lastClient: UInt64 = 0
    private(set) var now = Instant.now
    private let losesData: Bool
    private var bundles = 0

    /// The first bundle of the race in `losses`, and the bundle with which everything is lost.
    private static let (lostBundle, lastBundle) = (3, 6)

    /// - Parameter losesData: whether the server loses a bundle, and later all data, after the
    ///   acknowledgement.
    init(losesData: Bool = false) throws(Errno) {
      self.losesData = losesData
      listener = try PortListener(address: "127.0.0.1", port: Self.port)
      set = try WaitSet()
      try set.add(listener.descriptor, as: 0)
      setUp()
    }

    private func setUp() {
      let deployment = #"{"format":1,"flows":1,"states":1}"#
      append(HubMessage("whs.0.deployment", Array(deployment.utf8)))
    }

    /// As after a start without a disk, and a setup by an operator.
    private func loseData() {
      for client in clients {
        client.flush()
        client.close()
      }
      (log, consumers) = ([], [])
      setUp()
    }

    private func append(_ message: HubMessage) {
      log.append(message)
      log[log.count - 1].storedAt = Clocks.sinceEpoch
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
        if losesData, bundles == Self.lastBundle {
          bundles += 1
          loseData()
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

    func send(_ frame: [UInt8], to client: HubClient) { client.send(frame) }

    private func serve(_ line: HubLine, of client: HubClient) {
      switch line {
      case .ping: client.send(Array("PONG\r\n".utf8))
      case .publish(let message):
        if message.subject.hasPrefix(Self.api) {
          serveAPI(message, message.apiParts)
        } else if Self.stream(of: message.subject) != nil {
          store(message)
        } else if !deliver(message.payload, to: message.subject, reply: message.reply) {
          refuse(message)
        }
      case .connect, .other: break
      }
    }

    // MARK: Streams

    private static func stream(of subject: String) -> String? {
      subject.hasPrefix("whs.0.") ? "WHS_0" : subject.hasPrefix("whf.0.") ? "WHF_0" : nil
    }

    private func store(_ message: HubMessage) {
      if refusesPredecessor(of: message) { return }
      var isLost = false
      if message.subject.hasPrefix("whf.") {
        bundles += 1
        isLost = losesData && bundles == Self.lostBundle
      }
      append(isLost ? HubMessage("", message.payload, headers: message.headers) : message)
      let stream = Self.stream(of: message.subject) ?? ""
      reply(#"{"stream":"\#(stream)","seq":\#(log.count),"domain":"hub"}"#, to: message)
    }

    private func serveAPI(_ message: HubMessage, _ parts: [String]) {
      guard parts.count > 2 else { return }
      switch parts.prefix(2).joined(separator: ".") {
      case "STREAM.INFO": describeStream(parts[2], subjects: "whf.0.>", to: message)
      case "DIRECT.GET": get(parts.dropFirst(3).joined(separator: "."), for: message)
      case "CONSUMER.CREATE": createConsumer(for: message)
      case "CONSUMER.MSG": pull(for: message)
      default: refuse(message)
      }
    }

    private func get(_ subject: String, for message: HubMessage) {
      let number = last(of: subject)
      guard number > 0 else {
        deliver(status: "404 Message Not Found", to: message.reply)
        return
      }
      let stored = log[number - 1]
      deliver(
        stored.payload, to: message.reply,
        headers: "NATS/1.0\r\nNats-Subject: \(subject)\r\nNats-Sequence: \(number)\r\n"
          + stored.headers + "\r\n")
    }
  }
#endif
