internal import WormholePropertyLists
internal import WormholeSyscalls

/// A consumer of the stream of a ``LyingServer``.
final class LyingConsumer {
  struct Pull {
    let reply: String
    var missing: Int
    let expires: Instant
    var nextBeat: Instant
  }

  let name: String
  /// The numbers that are still to be delivered, of the messages that the stream had at first.
  var backlog: [Int]
  /// The number of the next message behind the backlog.
  var next: Int
  let filter: String
  var deliveries = 0
  var last = 0
  var pull: Pull?

  init(name: String, filter: String, backlog: [Int], next: Int) {
    self.name = name
    self.filter = filter
    self.backlog = backlog
    self.next = next
  }
}

extension LyingServer {
  func serveAPI(_ message: LyingClient.Message) {
    let parts = message.subject.split(separator: ".").map(String.init)
    let verb = parts.dropFirst(3).prefix(2).joined(separator: ".")
    if tells(lies.refusal) {
      let code = [10008, 10059, 10071, 10164, 10058, 10077, 10023, 10026, 10037, 0]
        .randomElement(using: &random)!
      return deliver(
        "{\"error\":{\"code\":503,\"err_code\":\(code),\"description\":\"a lie\"}}",
        to: message.reply)
    }
    if tells(lies.refusal / 4) { return deliver("{\"x\":[[1e999", to: message.reply) }
    switch verb {
    case "STREAM.INFO":
      deliver(
        "{\"config\":{\"name\":\"S\",\"subjects\":[\"s.>\"],\"num_replicas\":1},\"state\":"
          + "{\"messages\":\(log.count),\"bytes\":0,\"first_seq\":1,\"last_seq\":\(log.count)}}",
        to: message.reply)
    case "CONSUMER.CREATE": createConsumer(message, parts)
    case "CONSUMER.MSG": pull(message, parts)
    default: deliver([], to: message.reply, headers: "NATS/1.0 503\r\n\r\n")
    }
  }

  private func createConsumer(_ message: LyingClient.Message, _ parts: [String]) {
    counts.consumers += 1
    guard parts.count > 6, let json = try? JSONPropertyList.decode(message.payload),
      let settings = json["config"]
    else { return deliver("{\"error\":{\"code\":400}}", to: message.reply) }
    let filter = parts[7...].joined(separator: ".")
    let start = settings["opt_start_seq"]?.intValue ?? 1
    let matching = log.indices.filter { Self.matches(log[$0].subject, filter) }
    var backlog: [Int] = []
    var next = start
    if settings["deliver_policy"]?.stringValue == "last_per_subject" {
      next = log.count + 1
      backlog = matching.filter { index in
        !log[(index + 1)...].contains { $0.subject == log[index].subject }
      }.map { $0 + 1 }
    }
    let consumer = LyingConsumer(name: parts[6], filter: filter, backlog: backlog, next: next)
    consumers.append(consumer)
    deliver(
      "{\"name\":\"\(parts[6])\",\"num_pending\":\(pending(of: consumer))}", to: message.reply)
  }

  private func pending(of consumer: LyingConsumer) -> Int {
    let waiting = consumer.backlog.count + expiringMessages
    guard consumer.next <= log.count else { return waiting }
    return waiting
      + (consumer.next...log.count).count { Self.matches(log[$0 - 1].subject, consumer.filter) }
  }

  private func pull(_ message: LyingClient.Message, _ parts: [String]) {
    counts.pulls += 1
    guard parts.count > 7, let reply = message.reply,
      let consumer = consumers.first(where: { $0.name == parts[7] }),
      let json = try? JSONPropertyList.decode(message.payload)
    else {
      deliver([], to: message.reply, headers: "NATS/1.0 503\r\n\r\n")
      return
    }
    consumer.pull = LyingConsumer.Pull(
      reply: reply, missing: json["batch"]?.intValue ?? 1,
      expires: now + .nanoseconds(json["expires"]?.intValue ?? 0), nextBeat: now + .seconds(1))
  }

  /// Delivers what a consumer has for its client, or a heartbeat.
  func serve(_ consumer: LyingConsumer) {
    guard consumer.pull != nil else { return }
    if tells(lies.status) { tellStatus(to: consumer) }
    if tells(lies.forget) {
      consumers.removeAll { $0 === consumer }
      return
    }
    while var pull = consumer.pull, pull.missing > 0, let number = takeNext(of: consumer) {
      consumer.deliveries += 1
      consumer.last = number
      pull.missing -= 1
      pull.nextBeat = now + .seconds(1)
      consumer.pull = pull.missing > 0 ? pull : nil
      let place =
        "$JS.ACK.hub.account.S.\(consumer.name).1.\(number).\(consumer.deliveries).17."
        + "\(pending(of: consumer))"
      let stored = log[number - 1]
      guard deliver(stored.payload, to: pull.reply, stated: stored.subject, reply: place) else {
        consumer.pull = nil
        return
      }
    }
    guard var pull = consumer.pull else { return }
    if now >= pull.expires {
      consumer.pull = nil
      deliver([], to: pull.reply, headers: "NATS/1.0 408 Request Timeout\r\n\r\n")
    } else if now >= pull.nextBeat {
      pull.nextBeat = now + .seconds(1)
      consumer.pull = pull
      let beat =
        "NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: \(consumer.deliveries)\r\n"
        + "Nats-Last-Stream: \(consumer.last)\r\n\r\n"
      if !deliver([], to: pull.reply, headers: beat) { consumer.pull = nil }
    }
  }

  private func takeNext(of consumer: LyingConsumer) -> Int? {
    if !consumer.backlog.isEmpty { return consumer.backlog.removeFirst() }
    while consumer.next <= log.count {
      consumer.next += 1
      if Self.matches(log[consumer.next - 2].subject, consumer.filter) { return consumer.next - 1 }
    }
    return nil
  }

  /// Sends a status to every client that waits for messages.
  package func sendStatus(_ text: String) {
    for consumer in consumers {
      deliver([], to: consumer.pull?.reply, headers: "NATS/1.0 \(text)\r\n\r\n")
    }
  }

  /// Sends a status that does not hold.
  private func tellStatus(to consumer: LyingConsumer) {
    guard let pull = consumer.pull else { return }
    let status = [
      "100", "100 Idle Heartbeat\r\nNats-Last-Consumer: \(consumer.deliveries + 3)",
      "100 Idle Heartbeat\r\nNats-Last-Consumer: 99999999999999999999999999999", "404 No Messages",
      "408 Request Timeout", "409 Consumer Deleted", "409 Leadership Change", "409 Server Shutdown",
      "409 Exceeded MaxWaiting", "503", "999 x", "000", "-1", "1000 long",
    ].randomElement(using: &random)!
    let place = ["$JS.ACK.1", "$JS.ACK.S.\(consumer.name).1.9.\(UInt64.max).1.0", "x"]
    let reply = Bool.random(using: &random) ? place.randomElement(using: &random) : nil
    deliver([], to: pull.reply, headers: "NATS/1.0 \(status)\r\n\r\n", reply: reply)
  }
}
