internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A request or an immediate message that has arrived.
final class LiveMessage: Sendable {
  /// Nil if a test has made the message.
  let container: SharedContainer?
  let header: LiveFile.Header
  private let document: BinaryDocument
  /// The number of bytes that the message occupies.
  var size: Int { document.size }

  init(_ container: SharedContainer?, _ header: LiveFile.Header, _ document: BinaryDocument) {
    self.container = container
    self.header = header
    self.document = document
  }

  /// - Parameter bytes: the content of the file; reading the file has checked the seal.
  convenience init(_ container: SharedContainer, _ bytes: [UInt8]) throws {
    let decoder = BinaryDecoder(limits: container.options.limits)
    let document = try decoder.open(bytes, isSealChecked: true)
    self.init(container, try LiveFile.Header(document, decoder), document)
  }

  var limits: PropertyListLimits { container?.options.limits ?? PropertyListLimits() }

  /// The time left for delivery.
  var timeLeft: Duration {
    .nanoseconds(max(0, header.deadline - (container?.options.time ?? MailTime()).sinceBoot))
  }

  var isLate: Bool { timeLeft == .zero }

  func tellLate() {
    container?.log(
      .info,
      "dropped a message of kind '\(header.kind)' of '\(header.from)': its deadline has passed",
      about: subject)
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
    return try WormholeError.reading(operation, header.kind, of: .message, as: Value.self) {
      try BinaryDecoder().value(as: type, in: document)
    }
  }
}
