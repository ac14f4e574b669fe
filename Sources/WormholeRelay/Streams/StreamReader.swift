internal import WormholePropertyLists
package import WormholeSyscalls

/// A reader of a stream: an ordered, ephemeral consumer that is created again after every
/// irregularity and continues behind the last message that it gave.
///
/// Steps: (1) subscribe to a new subject and create a consumer behind the position; (2) compare the
/// position with the stream's last sequence number: if a backup was restored, the number may be
/// smaller, and the consumer would wait forever, so the reader begins at the first message; (3) ask
/// for 512 messages for 30 s, and again when these have arrived or the time is over.
///
/// The consumer numbers its deliveries. A delivery that is not the next one reveals a loss or a
/// repetition. A server that has nothing to deliver sends a heartbeat each second, with the number
/// of its last delivery; after 4 s without any, the consumer counts as lost. A request for messages
/// that the reader abandons is still served, so each consumer has one subject, and one request at a
/// time. Every delivery is used, except one that is not the next.
///
/// The connection calls the handler inside ``RelayConnection/proceed(_:)``. The owner calls
/// ``proceed(_:)`` after it, and replaces the reader together with a closed connection.
package final class StreamReader {
  package enum Start: Equatable, Sendable {
    /// All messages behind a sequence number; 0 for all messages.
    case after(UInt64)
    /// The latest message of each subject, and all new messages.
    ///
    /// When the consumer is created again, messages may be given again.
    case lastPerSubject
  }

  private enum Phase {
    case waiting(until: Instant)
    case creating
    case reading(Pull)
    case stopped
  }

  /// A request for messages.
  private struct Pull {
    var missing: Int
    var isUnserved = true
    let since: Instant
    /// When the consumer counts as lost.
    var silenceEnd: Instant
  }

  static let batch = 512
  static let longestSilence = Duration.seconds(4)
  private static let firstPause = Duration.milliseconds(50)
  private static let longestPause = Duration.seconds(2)
  private static let requestTime = Duration.seconds(5)

  /// The sequence number of the last message that was given.
  package private(set) var position: UInt64
  /// Whether all messages that the stream had were given since the consumer was created.
  package private(set) var isCaughtUp = false
  /// The latest trouble; nil while the consumer works.
  package private(set) var failure: RelayFailure?
  /// How often the consumer was created again.
  package private(set) var restarts = 0
  /// How often the stream ended before the position, as after a restore from a backup.
  package private(set) var resets = 0
  package var wasReset: Bool { resets > 0 }

  private let jetStream: JetStream
  private let stream: String
  private let filter: String
  private let start: Start
  private let handler: ([StreamMessage]) -> Void
  private var phase = Phase.waiting(until: Instant(nanoseconds: 0))
  /// The number of this consumer among those of the reader; replies to older ones do not count.
  private var incarnation = 0
  private var consumer = ""
  private var subject = ""
  private var subscription: Int?
  private var lastDelivery: UInt64 = 0
  private var lastSequence: UInt64 = 0
  private var pause = StreamReader.firstPause
  private var gathered: [StreamMessage] = []
  private let batchEnd: Int

  private var connection: RelayConnection { jetStream.connection }

  package init(
    _ jetStream: JetStream, stream: String, filter: String, from start: Start,
    _ handler: @escaping ([StreamMessage]) -> Void
  ) {
    self.jetStream = jetStream
    self.stream = stream
    self.filter = filter
    self.start = start
    self.handler = handler
    position = if case .after(let position) = start { position } else { 0 }
    batchEnd = jetStream.connection.nextBatchEnd()
    connection.addBatchEnd(batchEnd) { [weak self] in self?.giveGathered() }
  }

  deinit { stop() }

  /// Ends the reader: the handler is not called again.
  package func stop() {
    phase = .stopped
    gathered = []
    leave()
    connection.removeBatchEnd(batchEnd)
  }

  /// The time of the next ``proceed(_:)``, though nothing arrives.
  package var deadline: Instant? {
    guard case .ready = connection.state else { return nil }
    return switch phase {
    case .waiting(let end): end
    case .reading(let pull): pull.silenceEnd
    case .creating, .stopped: nil
    }
  }

  /// Creates the consumer if it is due, or gives it up if it is silent.
  package func proceed(_ now: Instant) {
    switch connection.state {
    case .connecting: return
    case .closed(let reason):
      failure = reason
      isCaughtUp = false
    case .ready:
      switch phase {
      case .waiting(let end) where now >= end: create()
      case .reading(let pull) where now >= pull.silenceEnd:
        restart(RelayFailure(.timedOut, "the consumer of '\(stream)' sends no heartbeats"))
      default: return
      }
    }
  }

  private func giveGathered() {
    guard let last = gathered.last else { return }
    let messages = gathered
    gathered = []
    // Not before: if the connection closes in the middle of a batch, the batch was not given.
    position = last.sequence
    handler(messages)
  }

  private func leave() {
    incarnation += 1
    isCaughtUp = false
    if let subscription { connection.unsubscribe(subscription) }
    subscription = nil
  }

  /// Gives up the consumer, and creates another one after a pause that doubles up to 2 s.
  private func restart(_ reason: RelayFailure) {
    // The owner counts a message as one of the consumer that has delivered it.
    giveGathered()
    if case .stopped = phase { return }
    let now = connection.now
    if case .reading(let pull) = phase, now - pull.since >= Self.longestPause {
      pause = Self.firstPause
    }
    leave()
    failure = reason
    var generator = SystemGenerator()
    phase = .waiting(until: now + pause * Double.random(in: 0.5...1.5, using: &generator))
    pause = min(pause * 2, Self.longestPause)
    restarts += 1
  }
}

// MARK: - The consumer

extension StreamReader {
  private func create() {
    leave()
    phase = .creating
    let current = incarnation
    consumer = "r" + String(SystemRandom.number(), radix: 16)
    subject = connection.makeInbox()
    lastDelivery = 0
    lastSequence = start == .lastPerSubject ? 0 : position
    subscription = connection.subscribe(subject) { [weak self] in self?.receive($0) }
    jetStream.request(
      verb: "CONSUMER.CREATE.\(stream).\(consumer)" + (filter.isEmpty ? "" : ".\(filter)"),
      settings, within: Self.requestTime
    ) { [consumer] reply -> UInt64? in
      guard reply["name"]?.stringValue == consumer else { return nil }
      return reply["num_pending"].flatMap(RelayJSON.number) ?? .max
    } _: { [weak self] result in
      guard let self, incarnation == current else { return }
      switch result {
      case .failure(let failure): restart(failure)
      case .success(let pending): compare(pending)
      }
    }
  }

  private var settings: PropertyListValue {
    var keys: [String: PropertyListValue] = [
      "name": .string(consumer), "ack_policy": "none", "mem_storage": true, "num_replicas": 1,
      "inactive_threshold": 30_000_000_000, "max_deliver": 1, "replay_policy": "instant",
    ]
    if !filter.isEmpty { keys["filter_subject"] = .string(filter) }
    if start == .lastPerSubject {
      keys["deliver_policy"] = "last_per_subject"
    } else if let next = PropertyListValue(position &+ 1), position > 0, position < .max {
      keys["deliver_policy"] = "by_start_sequence"
      keys["opt_start_seq"] = next
    } else {
      keys["deliver_policy"] = "all"
    }
    return ["stream_name": .string(stream), "config": .dictionary(keys)]
  }

  /// Begins at the first message if the stream ends before the position.
  ///
  /// The consumer exists already: if a backup is restored after this reply, the consumer is lost
  /// with the old stream.
  private func compare(_ pending: UInt64) {
    guard start != .lastPerSubject, position > 0 else { return read(pending) }
    let current = incarnation
    jetStream.streamInfo(stream, within: Self.requestTime) { [weak self] result in
      guard let self, incarnation == current else { return }
      switch result {
      case .failure(let failure): restart(failure)
      case .success(let info) where info.lastSequence < position:
        resets += 1
        restart(
          RelayFailure(
            .malformed, "the stream '\(stream)' ends at \(info.lastSequence), before \(position)"))
        position = 0
      case .success: read(pending)
      }
    }
  }

  private func read(_ pending: UInt64) {
    failure = nil
    isCaughtUp = pending == 0
    pull()
  }

  private func pull() {
    let now = connection.now
    phase = .reading(
      Pull(missing: Self.batch, since: now, silenceEnd: now + Self.longestSilence))
    let body: PropertyListValue = [
      "batch": .integer(Int64(Self.batch)), "expires": 30_000_000_000,
      "idle_heartbeat": 1_000_000_000,
    ]
    do throws(RelayFailure) {
      try connection.publish(
        "\(jetStream.prefix).CONSUMER.MSG.NEXT.\(stream).\(consumer)", replyTo: subject,
        try RelayJSON.bytes(body))
    } catch {
      restart(error)
    }
  }

  private func receive(_ message: RelayMessage) {
    guard case .reading(var pull) = phase else { return }
    pull.silenceEnd = connection.now + Self.longestSilence
    phase = .reading(pull)
    if let status = message.headers.status, message.payload.isEmpty {
      receive(status: status, message, pull)
    } else {
      deliver(message, pull)
    }
  }

  private func receive(status: Int, _ message: RelayMessage, _ pull: Pull) {
    let text = "\(status) \(message.headers.description)"
    switch status {
    case 100:
      let last = message.header("Nats-Last-Consumer").flatMap { Digits.number($0) }
      guard let last else { return }
      guard last <= lastDelivery else {
        return restart(RelayFailure(.closed, "deliveries of '\(stream)' were lost"))
      }
      // A server that has more to deliver sends no heartbeat.
      if last == lastDelivery { isCaughtUp = true }
    case 404, 408:
      // A server that ends each request at once is asked less and less often.
      guard !pull.isUnserved || connection.now - pull.since >= .seconds(1) else {
        return restart(RelayFailure(.closed, "the server ends requests early: \(text)"))
      }
      self.pull()
    case 503:
      restart(RelayFailure(.noResponders, "the consumer of '\(stream)' has ended"))
    default:
      restart(
        RelayFailure(.jetStream(code: status, errorCode: 0), "the server reports: \(text)"))
    }
  }

  private func deliver(_ message: RelayMessage, _ pull: Pull) {
    guard let place = message.reply.flatMap(ConsumerPosition.init), place.consumer == consumer,
      place.stream == stream
    else {
      return restart(RelayFailure(.malformed, "a delivery of '\(stream)' states no position"))
    }
    // A repetition.
    guard place.consumerSequence > lastDelivery else { return }
    guard place.consumerSequence == lastDelivery + 1, place.streamSequence > lastSequence else {
      return restart(RelayFailure(.closed, "deliveries of '\(stream)' were lost"))
    }
    lastDelivery += 1
    lastSequence = place.streamSequence
    gathered.append(
      StreamMessage(
        subject: message.subject, headers: message.headers.fields, payload: message.payload,
        sequence: place.streamSequence, timestamp: place.timestamp, pending: place.pending))
    if place.pending == 0 { isCaughtUp = true }
    var pull = pull
    pull.isUnserved = false
    pull.missing -= 1
    phase = .reading(pull)
    if pull.missing == 0 { self.pull() }
  }
}
