internal import WormholePropertyLists

/// JetStream's requests over a connection.
///
/// Every handler is called exactly once, as by
/// ``RelayConnection/request(_:headers:_:within:_:)``. A request that timed out may have been
/// carried out.
package final class JetStream {
  package struct PublishReply: Equatable, Sendable {
    package let stream: String
    package let sequence: UInt64
    /// Whether the stream had a message with the same id already.
    package let isDuplicate: Bool
    package let domain: String?
  }

  package let connection: RelayConnection

  package init(_ connection: RelayConnection) { self.connection = connection }

  /// The beginning of the subjects of requests.
  ///
  /// Without the domain, a leaf server without storage has no responder for a request.
  package var prefix: String { connection.server.domain.map { "$JS.\($0).API" } ?? "$JS.API" }

  /// Stores a message in the stream that has its subject.
  ///
  /// - Parameters:
  ///   - id: makes the server recognize a repetition for two minutes.
  ///   - expectedLast: the sequence number of the subject's latest message, 0 for none. If the
  ///     number differs, the server refuses the message with an error in
  ///     ``JetStreamError/wrongLastSequence``. A single server checks the number before the id: a
  ///     repetition then fails, although the message is stored.
  package func publish(
    _ subject: String, id: String? = nil, expectedLast: UInt64? = nil, headers: RelayHeaders = [],
    _ payload: [UInt8], within time: Duration,
    _ handler: @escaping (Result<PublishReply, RelayFailure>) -> Void
  ) {
    var headers = headers
    if let id { headers.append(("Nats-Msg-Id", id)) }
    if let expectedLast {
      headers.append(("Nats-Expected-Last-Subject-Sequence", String(expectedLast)))
    }
    request(subject, headers: headers, payload, within: time) { reply in
      guard let stream = reply["stream"]?.stringValue,
        let sequence = reply["seq"].flatMap(RelayJSON.number)
      else { return nil }
      return PublishReply(
        stream: stream, sequence: sequence, isDuplicate: reply["duplicate"]?.boolValue ?? false,
        domain: reply["domain"]?.stringValue)
    } _: {
      handler($0)
    }
  }

  /// Creates a stream; one with the same settings may exist.
  package func createStream(
    _ settings: StreamSettings, within time: Duration = .seconds(10),
    _ handler: @escaping (Result<StreamInfo, RelayFailure>) -> Void
  ) {
    requestStream("STREAM.CREATE.\(settings.name)", settings.json, within: time, handler)
  }

  /// Reads the state and settings of a stream from its leader.
  package func streamInfo(
    _ name: String, within time: Duration = .seconds(5),
    _ handler: @escaping (Result<StreamInfo, RelayFailure>) -> Void
  ) {
    requestStream("STREAM.INFO.\(name)", nil, within: time, handler)
  }

  private func requestStream(
    _ verb: String, _ body: PropertyListValue?, within time: Duration,
    _ handler: @escaping (Result<StreamInfo, RelayFailure>) -> Void
  ) {
    request(verb: verb, body, within: time, StreamInfo.init(json:), handler)
  }

  /// Reads the latest message of a subject; nil if the stream has none.
  ///
  /// Any server with a copy of the stream replies, so the result may be stale.
  package func lastMessage(
    of subject: String, in stream: String, within time: Duration = .seconds(5),
    _ handler: @escaping (Result<LatestMessage?, RelayFailure>) -> Void
  ) {
    guard isReady else { return handler(.failure(Self.notReady)) }
    connection.request("\(prefix).DIRECT.GET.\(stream).\(subject)", [], within: time) { result in
      handler(result.flatMap { message in Self.stored(message) })
    }
  }

  private static func stored(_ message: RelayMessage) -> Result<LatestMessage?, RelayFailure> {
    if message.headers.status == 404 { return .success(nil) }
    if let status = message.headers.status {
      let reason = "the server reports: \(message.headers.description)"
      return .failure(RelayFailure(.jetStream(code: status, errorCode: 0), reason))
    }
    guard let subject = message.header("Nats-Subject"),
      let sequence = message.header("Nats-Sequence").flatMap({ Digits.number($0) })
    else { return .failure(malformed) }
    let added = ["nats-stream", "nats-subject", "nats-sequence", "nats-time-stamp"]
    let headers = message.headers.fields.filter { !added.contains($0.name.lowercased()) }
    return .success(
      LatestMessage(
        subject: subject, headers: headers, payload: message.payload, sequence: sequence))
  }

  /// Whether the server has stated its domain, and with it the subjects of requests.
  private var isReady: Bool { connection.state == .ready }

  private static let notReady = RelayFailure(.closed, "the connection to the server is not ready")

  private static let malformed = RelayFailure(
    .malformed, "JetStream's reply does not have the expected form")

  /// Sends a request of the API; the reply is JSON.
  func request<Reply>(
    verb: String, _ body: PropertyListValue?, within time: Duration,
    _ read: @escaping (PropertyListValue) -> Reply?,
    _ handler: @escaping (Result<Reply, RelayFailure>) -> Void
  ) {
    guard isReady else { return handler(.failure(Self.notReady)) }
    do throws(RelayFailure) {
      let payload = try body.map { value throws(RelayFailure) in try RelayJSON.bytes(value) } ?? []
      request("\(prefix).\(verb)", headers: [], payload, within: time, read, handler)
    } catch {
      handler(.failure(error))
    }
  }

  private func request<Reply>(
    _ subject: String, headers: RelayHeaders, _ payload: [UInt8], within time: Duration,
    _ read: @escaping (PropertyListValue) -> Reply?,
    _ handler: @escaping (Result<Reply, RelayFailure>) -> Void
  ) {
    connection.request(subject, headers: headers, payload, within: time) { result in
      handler(
        result.flatMap { message in
          guard let reply = RelayJSON.object(message.payload) else {
            return .failure(Self.malformed)
          }
          if let error = reply["error"] { return .failure(Self.failure(error)) }
          return read(reply).map { .success($0) } ?? .failure(Self.malformed)
        })
    }
  }

  private static func failure(_ error: PropertyListValue) -> RelayFailure {
    let (code, errorCode) = (error["code"]?.intValue ?? 0, error["err_code"]?.intValue ?? 0)
    let text = error["description"]?.stringValue ?? "no description"
    return RelayFailure(
      .jetStream(code: code, errorCode: errorCode),
      "the server reports error \(errorCode): \(text)")
  }
}
