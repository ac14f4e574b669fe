public import FoundationEssentials
internal import PropertyLists
public import SharedContainer
internal import Synchronization

extension Wormhole {
  /// A message that was received, to be acknowledged once it is handled.
  ///
  /// Until then it is in hand. If the process dies first, the next one that joins under the name
  /// receives it again, and ``isRedelivered`` says so there. A message that is let go of without
  /// either call counts as one that has failed.
  public final class Message: Sendable {
    private let delivery: Delivery
    private let index: Int
    private let isFinished = Atomic<Bool>(false)

    /// Which attempt to handle it this is; 1 for the first.
    public let attempt: Int

    init(_ delivery: Delivery, index: Int, attempt: Int) {
      self.delivery = delivery
      self.index = index
      self.attempt = attempt
    }

    deinit {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      delivery.mailbox.abandon(delivery, index, attempt)
    }

    /// The sender's name for it; the messages of a batch share one.
    public var id: String { delivery.name.id }

    /// Its place in the batch it was sent in; 0 for one that was sent alone.
    public var place: Int { index }

    /// The member who sent it; nil if it was sent by somebody who has not joined.
    public var from: String? {
      if case .member(let name) = delivery.name.sender { name } else { nil }
    }

    /// What the sender called it: by default the name of the value's type.
    public var kind: String { delivery.header.kind }

    /// When it was sent, by the sender's clock.
    public var sent: Date { delivery.header.sent }

    /// Whether it was sent to the front of the queue.
    public var isUrgent: Bool { delivery.name.isUrgent }

    /// Whether it may have been handled before, in whole or in part: an earlier attempt failed or
    /// was cut off, it was given up and is tried again, or the machine has been started since it
    /// was sent.
    public var isRedelivered: Bool {
      attempt > 1 || delivery.isFromEarlierEpoch || delivery.name.isRetried
    }

    /// What was sent.
    ///
    /// Throws ``WormholeError/Code-swift.enum/typeMismatch`` if it does not decode as that type.
    public func value<Value: Decodable & Sendable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      try delivery.value(index, as: type)
    }

    /// The file that came with it; nil if none was sent.
    public var file: ReceivedFile? { delivery.header.file.map { ReceivedFile(delivery, $0) } }

    /// Says that it was handled: it never comes again, and the sender is told if it asked.
    ///
    /// A second time this does nothing. It throws, and changes nothing, if another process has
    /// become the member meanwhile and has the message now, or if the member has left and the
    /// message is one of a batch.
    public func acknowledge() throws(WormholeError) {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      do throws(WormholeError) {
        try delivery.acknowledge(index)
      } catch {
        if ![.superseded, .notJoined].contains(error.code) {
          isFinished.store(false, ordering: .releasing)
        }
        throw error
      }
    }

    /// Says that it could not be handled: it comes again later, and after so many attempts goes to
    /// the dead letters.
    ///
    /// - Parameter reason: is kept with the dead letter, and told to the sender.
    public func fail(_ reason: String) throws(WormholeError) {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      try delivery.fail(index, attempt: attempt, reason)
    }

    /// Nobody was given it after all.
    func putBack() {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      delivery.putBack(index)
    }

    /// As ``acknowledge()``; what the system refuses now is tried again until it is done.
    func acknowledgeForSure() {
      do throws(WormholeError) {
        try acknowledge()
      } catch {
        delivery.mailbox.hole.log(.error, "\(error)")
        guard ![.superseded, .notJoined].contains(error.code) else { return }
        isFinished.store(true, ordering: .releasing)
        delivery.endLater()
      }
    }

    /// Whether it was acknowledged, or has failed.
    var hasEnded: Bool { isFinished.load(ordering: .acquiring) }
  }
}

typealias Message = Wormhole.Message
