internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// Something that has come and is for now.
final class LiveMessage: Sendable {
  /// Nil for what a test has made.
  let hole: Wormhole?
  let header: LiveFile.Header
  private let bytes: [UInt8]
  /// How much it takes to keep it.
  var size: Int { bytes.count }

  init(_ hole: Wormhole?, _ header: LiveFile.Header, _ bytes: [UInt8]) {
    self.hole = hole
    self.header = header
    self.bytes = bytes
  }

  var limits: PropertyListLimits { hole?.options.limits ?? PropertyListLimits() }

  /// How long it is to be handed out still.
  var timeLeft: Duration {
    .nanoseconds(max(0, header.deadline - (hole?.options.time ?? MailTime()).sinceBoot))
  }

  var isLate: Bool { timeLeft == .zero }

  func tellLate() {
    hole?.log(
      .info, "dropped a '\(header.kind)' of '\(header.from)' that was too late", about: subject)
  }

  /// What the log is told of it.
  var subject: LogSubject { LogSubject(member: from) }

  var from: String? {
    if case .member(let name)? = MessageName.Sender(header.from) { name } else { nil }
  }

  func value<Value: Decodable>(
    as type: Value.Type, _ operation: String
  ) throws(WormholeError) -> Value {
    let (bytes, limits) = (bytes, limits)
    return try WormholeError.reading(operation, header.kind, of: .message) {
      try BinaryDecoder(limits: limits).decode(MessageFile.Opened<Value>.self, from: bytes).value
    }
  }
}
