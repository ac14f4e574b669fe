package import FoundationEssentials
internal import PropertyLists
package import SharedContainer
internal import Syscalls

/// A message that a test has made, and what was done to it.
package final class MadeMessage: Sendable {
  /// How it was handled.
  package enum End: Sendable { case acknowledged, failed(String) }

  let id: String
  let from: String?
  let isUrgent: Bool
  let isRedelivered: Bool
  let header: MessageFile.Header
  private let bytes: [UInt8]
  private let handled = Monitor<End?>(nil)

  package init<Value: Encodable>(
    _ value: Value, id: String, from: String?, kind: String?, sent: Date, isUrgent: Bool,
    isRedelivered: Bool
  ) throws(WormholeError) {
    self.id = id
    self.from = from
    self.isUrgent = isUrgent
    self.isRedelivered = isRedelivered
    (header, bytes) = try made("make message", value, kind: kind, sent: sent)
  }

  /// How it was handled; nil as long as it is in hand.
  package var end: End? { handled.withLock { $0 } }

  func end(_ end: End) { handled.withLock { $0 = end } }

  func value<Value: Decodable>(as type: Value.Type) throws(WormholeError) -> Value {
    let bytes = bytes
    return try WormholeError.reading("read message", id) {
      try BinaryDecoder().decode(MessageFile.Opened<Value>.self, from: bytes).value
    }
  }
}

/// What became of a request that a test has made.
package final class MadeRequest: Sendable {
  private let ended = Monitor<[UInt8]?>(nil)

  package init() {}

  func end(_ bytes: [UInt8]) { ended.withLock { $0 = bytes } }

  /// Whether it was answered or refused.
  package var hasEnded: Bool { ended.withLock { $0 } != nil }

  /// What it was answered with, or why it was refused; nil as long as it was neither.
  package func answer<Answer: Decodable>(
    as type: Answer.Type
  ) throws(WormholeError) -> (answer: Answer?, refusal: String?)? {
    guard let bytes = ended.withLock({ $0 }) else { return nil }
    let answer = try WormholeError.reading("read the answer to", "a made request") {
      try BinaryDecoder().decode(LiveFile.Answer<Answer>.self, from: bytes)
    }
    return switch answer.result {
    case .success(let value): (value, nil)
    case .failure(let refusal): (nil, refusal.reason)
    }
  }

  /// Why it was refused; nil if it was not.
  package var refusal: String? {
    guard let bytes = ended.withLock({ $0 }) else { return nil }
    return (try? BinaryDecoder().decode(LiveFile.Refusing.self, from: bytes))?.error
  }
}

extension Wormhole.Request {
  package convenience init<Question: Encodable>(
    made question: Question, from: String?, kind: String?, timeLeft: Duration,
    _ record: MadeRequest
  ) throws(WormholeError) {
    let core = try LiveArrival(made: question, from: from, kind: kind, timeLeft, "make request")
    self.init(core, record)
  }
}

extension Wormhole.ImmediateMessage {
  package init<Value: Encodable>(
    made value: Value, from: String?, kind: String?
  ) throws(WormholeError) {
    self.init(try LiveArrival(made: value, from: from, kind: kind, .seconds(10), "make message"))
  }
}

extension LiveArrival {
  fileprivate convenience init<Value: Encodable>(
    made value: Value, from: String?, kind: String?, _ timeLeft: Duration, _ operation: String
  ) throws(WormholeError) {
    let header = LiveFile.Header(
      from: try from.map { (from) throws(WormholeError) in try Container.escape(from) } ?? "",
      incarnation: "", kind: kind ?? MessageKind.name(of: Value.self),
      deadline: (Instant(nanoseconds: Clocks.sinceBoot) + timeLeft).nanoseconds)
    let bytes = try WormholeError.writing(operation, header.kind) {
      try BinaryEncoder().encode(LiveFile.Asking(header: header, value: value))
    }
    self.init(nil, header, bytes)
  }
}

extension Wormhole.Sent {
  /// One that nobody has sent, which ends when the test says so.
  package convenience init(made id: String, to: String, count: Int) throws(WormholeError) {
    let name = MessageName(
      isUrgent: false, MessageStamp(epoch: 1, nanoseconds: Clocks.sinceBoot), wantsReceipt: true,
      count: count, id: try MessageName.escape(id: id), from: "")
    self.init(name, made: to)
  }
}

extension Wormhole.Context {
  package init<Value: Encodable>(
    made value: Value, from: String, kind: String?, sent: Date
  ) throws(WormholeError) {
    let (header, bytes) = try made("make context", value, kind: kind, sent: sent)
    self.init(from, header, bytes)
  }
}

private func made<Value: Encodable>(
  _ operation: String, _ value: Value, kind: String?, sent: Date
) throws(WormholeError) -> (MessageFile.Header, [UInt8]) {
  let header = MessageFile.Header(
    kind: kind ?? MessageKind.name(of: Value.self), sent: sent, to: "", expires: nil)
  let bytes = try WormholeError.writing(operation, header.kind) {
    try BinaryEncoder().seal(header, value)
  }
  return (header, bytes)
}
