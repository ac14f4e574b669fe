internal import WormholePropertyLists
package import WormholeSyscalls

/// A connection of a client to a ``HubServer``.
package protocol HubConnection: AnyObject {
  var session: HubSession { get }
  var isClosed: Bool { get }
}

/// A server that speaks the protocol of NATS, for tests; the conforming type has the sockets.
///
/// One list has the messages of all streams. A message's number is its position, from 1.
package protocol HubServer: AnyObject {
  associatedtype Client: HubConnection
  var clients: [Client] { get }
  var log: [HubMessage] { get }
  var consumers: [HubConsumer] { get set }
  var now: Instant { get }
  /// The time after which a waiting client is sent a heartbeat.
  var beat: Duration { get }
  /// The number of messages that each consumer reports in addition to the waiting ones.
  var expiringMessages: Int { get }
  /// Sends a line with its body.
  func send(_ frame: [UInt8], to client: Client)
}

extension HubServer {
  package var expiringMessages: Int { 0 }

  /// Sends a message to each subscription of a subject; returns whether there is one.
  ///
  /// - Parameter stated: the subject in the message, if different.
  @discardableResult package func deliver(
    _ payload: [UInt8], to subject: String?, headers: String = "", stated: String? = nil,
    reply: String? = nil
  ) -> Bool {
    guard let subject else { return false }
    var isFound = false
    for client in clients where !client.isClosed {
      for (pattern, id) in client.session.subscriptions where subject.isSubject(of: pattern) {
        isFound = true
        let words = [stated ?? subject, id, reply].compactMap(\.self).joined(separator: " ")
        let size = headers.utf8.count + payload.count
        let line =
          headers.isEmpty
          ? "MSG \(words) \(size)\r\n" : "HMSG \(words) \(headers.utf8.count) \(size)\r\n"
        send(Array((line + headers).utf8) + payload + Array("\r\n".utf8), to: client)
      }
    }
    return isFound
  }

  /// Sends a status, such as `503`; returns whether a client receives the status.
  @discardableResult package func deliver(
    status: String, to subject: String?, reply: String? = nil
  ) -> Bool {
    deliver([], to: subject, headers: "NATS/1.0 \(status)\r\n\r\n", reply: reply)
  }

  package func reply(_ json: String, to message: HubMessage) {
    deliver(Array(json.utf8), to: message.reply)
  }

  /// Replies that no program listens.
  package func refuse(_ message: HubMessage) { deliver(status: "503", to: message.reply) }
}

// MARK: - Streams

extension HubServer {
  /// Returns the number of the latest message of a subject; 0 for none.
  package func last(of subject: String) -> Int {
    (log.lastIndex { $0.subject == subject } ?? -1) + 1
  }

  /// Replies with an error if the message expects another predecessor; returns whether it does.
  package func refusesPredecessor(of message: HubMessage) -> Bool {
    guard let expected = message.header("Nats-Expected-Last-Subject-Sequence"),
      Int(expected) != last(of: message.subject)
    else { return false }
    let error = #"{"code":400,"err_code":10071,"description":"wrong last sequence"}"#
    reply(#"{"error":\#(error)}"#, to: message)
    return true
  }

  /// Replies with the settings and the size of a stream.
  package func describeStream(_ name: String, subjects: String, to message: HubMessage) {
    let settings = #"{"name":"\#(name)","subjects":["\#(subjects)"],"num_replicas":1}"#
    let state = #"{"messages":\#(log.count),"bytes":0,"first_seq":1,"last_seq":\#(log.count)}"#
    reply(#"{"config":\#(settings),"state":\#(state)}"#, to: message)
  }

  package func createConsumer(for message: HubMessage) {
    guard let consumer = HubConsumer(message, of: log) else {
      return reply(#"{"error":{"code":400,"err_code":10025}}"#, to: message)
    }
    consumers.append(consumer)
    reply(#"{"name":"\#(consumer.name)","num_pending":\#(pending(of: consumer))}"#, to: message)
  }

  private func pending(of consumer: HubConsumer) -> Int {
    consumer.pending(in: log) + expiringMessages
  }

  /// Begins a request of a client for messages.
  package func pull(for message: HubMessage) {
    let parts = message.apiParts
    guard parts.count > 4, let subject = message.reply,
      let consumer = consumers.first(where: { $0.name == parts[4] }),
      let json = try? JSONPropertyList.decode(message.payload)
    else { return refuse(message) }
    consumer.pull = HubConsumer.Pull(
      reply: subject, missing: json["batch"]?.intValue ?? 1,
      expires: now + .nanoseconds(json["expires"]?.intValue ?? 0), nextBeat: now + beat)
  }

  /// Delivers the messages that a consumer has for its client, or a heartbeat.
  package func serve(_ consumer: HubConsumer) {
    while var pull = consumer.pull, pull.missing > 0, let number = consumer.takeNext(in: log) {
      pull.missing -= 1
      pull.nextBeat = now + beat
      consumer.pull = pull.missing > 0 ? pull : nil
      let stored = log[number - 1]
      let place =
        "$JS.ACK.hub.account.\(consumer.stream).\(consumer.name).1.\(number)."
        + "\(consumer.deliveries).\(stored.storedAt).\(pending(of: consumer))"
      if !deliver(stored.payload, to: pull.reply, stated: stored.subject, reply: place) {
        consumer.pull = nil
      }
    }
    guard var pull = consumer.pull, now >= min(pull.nextBeat, pull.expires) else { return }
    let isOver = now >= pull.expires
    pull.nextBeat = now + beat
    consumer.pull = isOver ? nil : pull
    let status =
      isOver
      ? "408 Request Timeout"
      : "100 Idle Heartbeat\r\nNats-Last-Consumer: \(consumer.deliveries)\r\n"
        + "Nats-Last-Stream: \(consumer.last)"
    if !deliver(status: status, to: pull.reply) { consumer.pull = nil }
  }
}
