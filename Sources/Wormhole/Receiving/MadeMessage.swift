package import FoundationEssentials
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A message that a test has made, and the result of handling the message.
package final class MadeMessage: MessageSource, MessageClaim {
  /// The result of handling a message.
  package enum End: Sendable { case acknowledged, failed(String), putBack }

  let id: String
  let from: String?
  let isUrgent: Bool
  private let isRedelivered: Bool
  let header: MessageFile.Header
  private let madeFile: MadeFile?
  private let bytes: [UInt8]
  private let handled = Monitor<End?>(nil)

  package init<Value: Encodable>(
    _ value: Value, id: String, from: String?, kind: String?, sent: Date, isUrgent: Bool,
    isRedelivered: Bool, headers: [String: String] = [:], file: MadeFile? = nil
  ) throws(WormholeError) {
    self.id = id
    madeFile = file
    self.from = from
    self.isUrgent = isUrgent
    self.isRedelivered = isRedelivered
    (header, bytes) = try made("make message", value, kind: kind, sent: sent, headers)
  }

  /// The result of handling the message; nil as long as the message is claimed.
  package var end: End? { handled.withLock { $0 } }

  var file: ReceivedFile? { madeFile.map { ReceivedFile($0, of: self) } }
  var messageClaim: any MessageClaim { self }

  func acknowledge(_ index: Int, takingNext: Bool) -> MemberDelivery.StartedAttempt? {
    handled.withLock { $0 = .acknowledged }
    madeFile?.remove()
    return nil
  }

  func fail(_ index: Int, attempt: Int, _ reason: String) {
    handled.withLock { $0 = .failed(reason) }
  }

  func isRedelivered(_ index: Int) -> Bool { isRedelivered }

  func putBack(_ index: Int, _ end: AttemptEnd, after pause: Duration) {
    handled.withLock { $0 = .putBack }
  }

  func unclaim(_ index: Int, _ end: AttemptEnd) { putBack(index, end, after: .zero) }
  func renew() {}

  func abandon(_ index: Int, attempt: Int) {
    fail(index, attempt: attempt, Message.abandoned)
  }

  // No call on a message of a test throws.
  func endLater() {}
  func log(_ error: WormholeError) {}

  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    let bytes = bytes
    return try WormholeError.reading("read message", id, of: .message, as: Value.self) {
      let decoder = BinaryDecoder()
      return try decoder.value(as: type, in: decoder.open(bytes))
    }
  }
}

/// The file of a message that a test has made.
package final class MadeFile: Sendable {
  let home: MemberDirectory
  let fileName: String
  let attached: MessageFile.FileHeader
  /// Keeps the directory of the file.
  private let keeper: any Sendable

  /// Sends a file in a container without other users, so that the file is stored like a received
  /// file.
  package init(
    _ path: String, in container: SharedContainer, keeping keeper: any Sendable
  ) throws(WormholeError) {
    var options = SendOptions()
    options.durability = .process
    let sent = try container.peer("made").send(file: path, options)
    home = try container.storage.member("made")
    fileName = sent.name.fileName
    self.keeper = keeper
    let header = try QueuedMessageReader(home, container.options.limits).header(
      sent.name.text, .inbox)
    guard let attached = header?.file else {
      throw WormholeError(.notFound, "make message with", path, because: "the file was not sent")
    }
    self.attached = attached
  }

  func remove() { _ = try? home.remove(fileName, from: .files) }
}

/// The result of a request that a test has made.
package final class MadeRequest: Requester {
  private let ended = Monitor<LiveAnswer?>(nil)

  package init() {}

  func take(_ reply: LiveAnswer, to header: LiveFile.Header) { ended.withLock { $0 = reply } }

  /// Whether the request has a reply or a refusal.
  package var hasEnded: Bool { ended.withLock { $0 } != nil }

  /// Returns the reply, or the reason for the refusal; nil as long as the request has neither.
  package func answer<Answer: Decodable>(
    as type: Answer.Type
  ) throws(WormholeError) -> (answer: Answer?, refusal: String?)? {
    guard let given = ended.withLock({ $0 }) else { return nil }
    let answer = try WormholeError.reading("read the reply to", "a test's request") {
      let decoder = BinaryDecoder()
      return try LiveFile.answer(as: type, in: decoder.open(given.bytes()), decoder)
    }
    return switch answer {
    case .success(let value): (value, nil)
    case .failure(let refusal): (nil, refusal.reason)
    }
  }

  /// The reason for the refusal; nil if the request was not refused.
  package var refusal: String? {
    guard let given = ended.withLock({ $0 }) else { return nil }
    return (try? BinaryDecoder().decode(LiveFile.RefusalBody.self, from: given.bytes()))?.error
  }
}

extension Message {
  /// Makes a message without a sender; all calls on it are recorded.
  package convenience init(_ made: MadeMessage, attempt: Int) {
    self.init(made: made, attempt: attempt)
  }

  /// The record of the calls on a message made by a test; nil for a real message.
  package var made: MadeMessage? { source as? MadeMessage }
}

extension Request {
  /// The record of the reply to a request made by a test; nil for a real request.
  package var made: MadeRequest? { requester as? MadeRequest }

  package convenience init<Question: Encodable>(
    made question: Question, from: String?, kind: String?, headers: [String: String],
    timeLeft: Duration, _ record: MadeRequest
  ) throws(WormholeError) {
    let core = try LiveMessage(
      made: question, from: from, kind: kind, headers, timeLeft, "make request")
    self.init(core, from: record)
  }
}

extension ImmediateMessage {
  package init<Value: Encodable>(
    made value: Value, from: String?, kind: String?, headers: [String: String]
  ) throws(WormholeError) {
    self.init(
      try LiveMessage(
        made: value, from: from, kind: kind, headers, .seconds(10), "make message"))
  }
}

extension LiveMessage {
  fileprivate convenience init<Value: Encodable>(
    made value: Value, from: String?, kind: String?, _ headers: [String: String],
    _ timeLeft: Duration, _ operation: String
  ) throws(WormholeError) {
    let header = LiveFile.Header(
      from: try from.map { (from) throws(WormholeError) in try Container.escape(from) } ?? "",
      incarnation: nil, kind: kind ?? MessageKind.name(of: Value.self),
      deadline: (Instant(nanoseconds: Clocks.sinceBoot) + timeLeft).nanoseconds,
      headers: try SenderHeaders(headers, operation, from ?? ""))
    let document = try WormholeError.writing(operation, header.kind) {
      let bytes = try BinaryEncoder().seal(header, value)
      return try BinaryDecoder().open(bytes)
    }
    self.init(nil, header, document)
  }
}

extension Sent {
  /// A message that was never sent, whose outcome the test determines.
  package convenience init(
    made id: String, to: String, count: Int, _ content: MadeContent? = nil
  ) throws(WormholeError) {
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Clocks.sinceBoot), wantsReceipt: true,
      count: count, id: try MessageName.escape(id: id), from: "")
    self.init(name, made: to, content?.content)
  }
}

/// The content of a sent message, as given by a test.
package struct MadeContent: Sendable {
  let content: SentContent

  package init<Value: Encodable>(
    _ value: Value, to: String, kind: String?, file: SentFile?
  ) throws(WormholeError) {
    var header = MessageFile.Header(
      kind: kind ?? MessageKind.name(of: Value.self), sent: Date(timeIntervalSinceReferenceDate: 0),
      to: to, expires: nil)
    if let file {
      header.file = MessageFile.FileHeader(name: file.name, size: file.size, checksum: 0)
    }
    let bytes = try WormholeError.writing("make message", header.kind) {
      try BinaryEncoder().seal(header, value)
    }
    content = try SentContent(bytes, PropertyListLimits())
  }
}

extension Outcome {
  package init(
    made id: String, to: String, count: Int, end: Status, _ content: MadeContent
  ) throws(WormholeError) {
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Clocks.sinceBoot), wantsReceipt: true,
      count: count, id: try MessageName.escape(id: id), from: "")
    self.init(name, end, content.content)
  }
}

extension Context {
  package init<Value: Encodable>(
    made value: Value, from: String, kind: String?, sent: Date
  ) throws(WormholeError) {
    let (header, bytes) = try made("make context", value, kind: kind, sent: sent)
    self.init(from, header, bytes)
  }
}

private func made<Value: Encodable>(
  _ operation: String, _ value: Value, kind: String?, sent: Date, _ headers: [String: String] = [:]
) throws(WormholeError) -> (MessageFile.Header, [UInt8]) {
  let header = MessageFile.Header(
    kind: kind ?? MessageKind.name(of: Value.self), sent: sent, to: "", expires: nil,
    headers: try SenderHeaders(headers, operation, ""))
  let bytes = try WormholeError.writing(operation, header.kind) {
    try BinaryEncoder().seal(header, value)
  }
  return (header, bytes)
}
