public import FoundationEssentials
internal import Synchronization
public import WormholeContainerStorage
internal import WormholePropertyLists

/// A received message, to be acknowledged after its handling.
///
/// Until the acknowledgement the message is claimed. If the process dies first, the message is
/// redelivered to the next process that joins under the name, and ``isRedelivered`` is true
/// there. A message released without ``acknowledge()`` or ``fail(_:)`` counts as failed.
public final class Message: Sendable {
  let source: any MessageSource
  /// The delivery in `source`, for calls on each message: retaining and releasing a reference
  /// takes as long as locking.
  private let delivery: Unmanaged<MemberDelivery>?
  private let contents: Unmanaged<Contents>?
  private let isFinished = Atomic<Bool>(false)

  /// The message's index in its batch; 0 for a message sent alone.
  public let batchIndex: Int
  /// The number of the current attempt; 1 for the first.
  public let attempt: Int

  init(_ delivery: MemberDelivery, _ contents: Contents, index: Int, attempt: Int) {
    source = OpenedMessage(delivery: delivery, contents: contents)
    self.delivery = .passUnretained(delivery)
    self.contents = .passUnretained(contents)
    batchIndex = index
    self.attempt = attempt
  }

  /// Makes a message without a sender; the source records all calls on it.
  init(made source: any MessageSource, attempt: Int) {
    self.source = source
    delivery = nil
    contents = nil
    batchIndex = 0
    self.attempt = attempt
  }

  deinit {
    // No other reference is left that could change the flag.
    guard !isFinished.load(ordering: .acquiring) else { return }
    source.messageClaim.abandon(batchIndex, attempt: attempt)
  }

  static let abandoned = "the message was received and never acknowledged"

  private var header: MessageFile.Header { source.header }

  /// The sender's identifier for the message.
  ///
  /// All messages of a batch share one identifier, and differ in their ``batchIndex``.
  public var id: String { source.id }

  /// The member that sent the message; nil for a sender that has not joined.
  public var from: String? { source.from }

  /// The kind given by the sender: by default the name of the value's type.
  public var kind: String { header.kind }

  /// The sender's ordering key; see ``SendOptions/orderingKey``.
  public var orderingKey: String? { header.orderingKey }

  /// The headers that the sender gave; see ``SendOptions/headers``.
  public var headers: [String: String] { header.headers?.fields ?? [:] }

  /// When the message was sent, by the sender's clock.
  public var sentAt: Date { header.sent }

  /// Whether the message was sent to the front of the queue.
  public var isUrgent: Bool { source.isUrgent }

  /// Whether the message may have been handled before, in whole or in part: an earlier attempt
  /// failed or was interrupted, the message was dead-lettered and is tried again, or the machine
  /// was restarted after the message was sent.
  public var isRedelivered: Bool { attempt > 1 || source.isRedelivered(batchIndex) }

  /// Returns the value that was sent.
  ///
  /// Throws ``WormholeError/Code-swift.struct/typeMismatch`` if the value does not decode as the
  /// type.
  @_specialize(where Value == Data)
  public func value<Value: Decodable & Sendable>(
    as type: Value.Type = Value.self
  ) throws(WormholeError) -> Value {
    if let contents {
      return try contents.borrowed { (contents) throws(WormholeError) in
        try contents.value(batchIndex, as: type)
      }
    }
    return try source.value(batchIndex, as: type)
  }

  /// The file sent with the message; nil for none.
  public var file: ReceivedFile? { source.file }

  /// Acknowledges the message: it is never redelivered, and its sender is notified on request.
  ///
  /// A second call does nothing. The call throws, and changes nothing, if another process has
  /// become the member in the meantime and has the message now, or if the member has left and the
  /// message is part of a batch.
  ///
  /// If the file system refuses the change, the call throws as well, and may be repeated. A closure
  /// that throws this error fails its attempt, and the message is redelivered. The exception is the
  /// last message of a batch: its outcome is then written later, and no message is redelivered.
  public func acknowledge() throws(WormholeError) { try acknowledge(takingNext: false) }

  @discardableResult
  private func acknowledge(takingNext: Bool) throws(WormholeError) -> MemberDelivery.StartedAttempt?
  {
    guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
    do throws(WormholeError) {
      if let delivery {
        return try delivery.borrowed { (delivery) throws(WormholeError) in
          try delivery.acknowledge(batchIndex, takingNext: takingNext)
        }
      }
      return try source.messageClaim.acknowledge(batchIndex, takingNext: takingNext)
    } catch {
      if ![.superseded, .notJoined].contains(error.code) {
        isFinished.store(false, ordering: .releasing)
      }
      throw error
    }
  }

  /// Reports a failure to handle the message: it is redelivered later, and goes to the dead
  /// letters after the last attempt.
  ///
  /// - Parameter reason: the reason, stored with the dead letter and reported to the sender.
  public func fail(_ reason: String) throws(WormholeError) {
    guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
    try source.messageClaim.fail(batchIndex, attempt: attempt, reason)
  }

  /// Requeues the message for the next receiver, as if never given out: no attempt is counted.
  ///
  /// For a receiver without a handler for the message yet. The message is redelivered in its
  /// order, also to the same receiver, so a receiver that continues sets a pause.
  ///
  /// - Parameter pause: the time before the redelivery.
  public func requeue(after pause: Duration = .zero) {
    guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
    source.messageClaim.putBack(batchIndex, .undone, after: pause)
  }

  /// Requeues the message because its receiver ends while its handler has it: no attempt is
  /// counted, and the message is marked as redelivered.
  package func interrupt() {
    guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
    source.messageClaim.putBack(batchIndex, .interrupted, after: .zero)
  }

  /// Starts the handling deadline of a queue's message anew.
  ///
  /// A message of a member has no handling deadline, and the call does nothing. The call throws
  /// ``WormholeError/Code-swift.struct/superseded`` if the deadline has passed and the message is
  /// another worker's.
  public func renew() throws(WormholeError) {
    if !hasEnded { try source.messageClaim.renew() }
  }

  /// Returns the message to another process.
  ///
  /// For a receiver that is about to end: a continuing receiver would get the message again at
  /// once.
  package func unclaim(_ end: AttemptEnd = .undone) throws(WormholeError) {
    guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
    try source.messageClaim.unclaim(batchIndex, end)
  }

  /// As ``acknowledge()``, but an acknowledgement refused by the system is tried until it
  /// succeeds.
  ///
  /// - Returns: the next message of the same file; see
  ///   ``MemberDelivery/acknowledge(_:takingNext:)``.
  @discardableResult
  func acknowledgeForSure(takingNext: Bool = false) -> MemberDelivery.StartedAttempt? {
    do throws(WormholeError) {
      return try acknowledge(takingNext: takingNext)
    } catch {
      source.messageClaim.log(error)
      guard ![.superseded, .notJoined].contains(error.code) else { return nil }
      isFinished.store(true, ordering: .releasing)
      source.messageClaim.endLater()
      return nil
    }
  }

  /// Whether the message was acknowledged, or has failed.
  var hasEnded: Bool { isFinished.load(ordering: .acquiring) }
}

extension Unmanaged {
  /// Uses the object without a retain, while another reference keeps the object alive.
  @inline(__always)
  fileprivate func borrowed<Result>(
    _ body: (Instance) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try _withUnsafeGuaranteedRef { try body($0) }
    } catch {
      throw error as! WormholeError  // The body throws no other type.
    }
  }
}
