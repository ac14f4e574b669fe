internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// Something that has come and is for now.
final class LiveMessage: Sendable {
  /// Nil for what a test has made.
  let hole: Wormhole?
  let header: LiveFile.Header
  private let document: BinaryDocument
  /// How much it takes to keep it.
  var size: Int { document.size }

  init(_ hole: Wormhole?, _ header: LiveFile.Header, _ document: BinaryDocument) {
    self.hole = hole
    self.header = header
    self.document = document
  }

  /// - Parameter bytes: as they were read, which checks the seal.
  convenience init(_ hole: Wormhole, _ bytes: [UInt8]) throws {
    let decoder = BinaryDecoder(limits: hole.options.limits)
    let document = try decoder.open(bytes, isSealChecked: true)
    self.init(hole, try decoder.decode(LiveFile.Header.self, from: document), document)
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
    let document = document
    return try WormholeError.reading(operation, header.kind, of: .message) {
      try BinaryDecoder().decode(MessageFile.Opened<Value>.self, from: document).value
    }
  }
}
