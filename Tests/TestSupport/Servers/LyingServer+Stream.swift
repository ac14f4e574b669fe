internal import WormholeHubProtocol

extension LyingServer {
  func serveAPI(_ message: HubMessage) {
    if tells(lies.refusal) {
      let code = [10008, 10059, 10071, 10164, 10058, 10077, 10023, 10026, 10037, 0]
        .randomElement(using: &random)!
      return reply(
        "{\"error\":{\"code\":503,\"err_code\":\(code),\"description\":\"a lie\"}}", to: message)
    }
    if tells(lies.refusal / 4) { return reply("{\"x\":[[1e999", to: message) }
    switch message.apiParts.prefix(2).joined(separator: ".") {
    case "STREAM.INFO": describeStream("S", subjects: "s.>", to: message)
    case "CONSUMER.CREATE":
      counts.consumers += 1
      createConsumer(for: message)
    case "CONSUMER.MSG":
      counts.pulls += 1
      pull(for: message)
    default: refuse(message)
    }
  }

  /// Serves a consumer that waits for messages, or lies to the client.
  func lieOrServe(_ consumer: HubConsumer) {
    guard consumer.pull != nil else { return }
    if tells(lies.status) { tellStatus(to: consumer) }
    if tells(lies.forget) {
      consumers.removeAll { $0 === consumer }
    } else {
      serve(consumer)
    }
  }

  /// Sends a status to every client that waits for messages.
  package func sendStatus(_ text: String) {
    for consumer in consumers {
      deliver(status: text, to: consumer.pull?.reply)
    }
  }

  /// Sends a status that does not hold.
  private func tellStatus(to consumer: HubConsumer) {
    guard let pull = consumer.pull else { return }
    let status = [
      "100", "100 Idle Heartbeat\r\nNats-Last-Consumer: \(consumer.deliveries + 3)",
      "100 Idle Heartbeat\r\nNats-Last-Consumer: 99999999999999999999999999999", "404 No Messages",
      "408 Request Timeout", "409 Consumer Deleted", "409 Leadership Change", "409 Server Shutdown",
      "409 Exceeded MaxWaiting", "503", "999 x", "000", "-1", "1000 long",
    ].randomElement(using: &random)!
    let place = ["$JS.ACK.1", "$JS.ACK.S.\(consumer.name).1.9.\(UInt64.max).1.0", "x"]
    let reply = Bool.random(using: &random) ? place.randomElement(using: &random) : nil
    deliver(status: status, to: pull.reply, reply: reply)
  }
}
