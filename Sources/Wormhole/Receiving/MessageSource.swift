internal import WormholeContainerStorage
internal import WormholeSyscalls

/// The origin of a message: a file of an inbox or of a queue, or a test.
protocol MessageSource: Sendable {
  var id: String { get }
  var from: String? { get }
  var header: MessageFile.Header { get }
  var isUrgent: Bool { get }
  var file: ReceivedFile? { get }

  /// Whether an earlier attempt may have handled the message, apart from the attempts that
  /// ``Message/attempt`` counts.
  func isRedelivered(_ index: Int) -> Bool
  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value
  var messageClaim: any MessageClaim { get }
}

/// The claim of a message, which the receiver's calls go to.
protocol MessageClaim: Sendable {
  func acknowledge(_ index: Int, takingNext: Bool) throws(WormholeError) -> MemberDelivery
    .StartedAttempt?
  func fail(_ index: Int, attempt: Int, _ reason: String) throws(WormholeError)
  func putBack(_ index: Int, _ end: AttemptEnd, after pause: Duration)
  func unclaim(_ index: Int, _ end: AttemptEnd) throws(WormholeError)
  /// Starts the handling deadline anew.
  func renew() throws(WormholeError)
  /// The receiver released the message and neither acknowledged nor failed it.
  func abandon(_ index: Int, attempt: Int)
  /// Writes an acknowledgement later that could not be written now.
  func endLater()
  func log(_ error: WormholeError)
}

/// A claimed file and its contents.
struct OpenedMessage: MessageSource {
  let delivery: MemberDelivery
  let contents: Contents

  var id: String { delivery.name.id }
  var from: String? { if case .member(let name) = delivery.name.sender { name } else { nil } }
  var header: MessageFile.Header { delivery.header }
  var isUrgent: Bool { delivery.name.isUrgent }
  var file: ReceivedFile? {
    delivery.header.file.map { ReceivedFile(delivery, contents, $0) }
  }

  func isRedelivered(_ index: Int) -> Bool {
    header.isRedelivered || delivery.isRepeated(index)
  }

  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    try contents.value(index, as: type)
  }

  var messageClaim: any MessageClaim { delivery }
}

extension MemberDelivery: MessageClaim {
  func renew() {}

  func abandon(_ index: Int, attempt: Int) {
    guard mailbox.container.storage.isOwned else { return }
    mailbox.abandon(self, index, attempt)
  }

  func log(_ error: WormholeError) {
    mailbox.log(mailbox.settlement.level(of: error, name), error, name)
  }
}

/// A file held by one receiver; on its release, the messages not given out go to other receivers.
final class BatchCursor: Sendable {
  private let file: OpenedMessage

  init(_ file: OpenedMessage) { self.file = file }

  deinit { if file.delivery.mailbox.container.storage.isOwned { release() } }

  /// Leaves the messages not given out to other receivers, before the reference is dropped.
  func release() { file.delivery.release() }

  func next() -> Message? { file.delivery.next(file.contents) }

  func next(after message: Message) -> Message? {
    file.delivery.next(file.contents, after: message)
  }
}
