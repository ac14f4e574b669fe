internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// A request or an immediate message that has arrived.
final class LiveMessage: Sendable {
  /// Nil if a test has made the message.
  let hole: Wormhole?
  let header: LiveFile.Header
  private let document: BinaryDocument
  /// The number of bytes that the message occupies.
  var size: Int { document.size }

  init(_ hole: Wormhole?, _ header: LiveFile.Header, _ document: BinaryDocument) {
    self.hole = hole
    self.header = header
    self.document = document
  }

  /// - Parameter bytes: the content of the file; reading the file has checked the seal.
  convenience init(_ hole: Wormhole, _ bytes: [UInt8]) throws {
    let decoder = BinaryDecoder(limits: hole.options.limits)
    let document = try decoder.open(bytes, isSealChecked: true)
    self.init(hole, try decoder.decode(LiveFile.Header.self, from: document), document)
  }

  var limits: PropertyListLimits { hole?.options.limits ?? PropertyListLimits() }

  /// The time left for delivery.
  var timeLeft: Duration {
    .nanoseconds(max(0, header.deadline - (hole?.options.time ?? MailTime()).sinceBoot))
  }

  var isLate: Bool { timeLeft == .zero }

  func tellLate() {
    hole?.log(
      .info, "dropped a '\(header.kind)' of '\(header.from)' that was too late", about: subject)
  }

  /// The subject of log entries about the message.
  var subject: LogSubject { LogSubject(member: from) }

  var from: String? {
    if case .member(let name)? = MessageName.Sender(header.from) { name } else { nil }
  }

  func value<Value: Decodable>(
    as type: Value.Type, _ operation: String
  ) throws(WormholeError) -> Value {
    let document = document
    return try WormholeError.reading(operation, header.kind, of: .message) {
      try BinaryDecoder().decode(MessageFile.Opened<Value>.self, from: document).value
    }
  }
}
