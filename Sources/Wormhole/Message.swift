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
  ///
  /// Of messages that were sent together, one that is handled and that nobody keeps may become the
  /// next one: the object says nothing of which message it is, its ``id`` and ``place`` do.
  public final class Message: Sendable {
    private let source: Source
    /// The delivery of the source, for what is done to each message: to count a reference more and
    /// less each time takes as long as to lock.
    private let delivery: Unmanaged<Delivery>?
    // These two are changed only by who hands it out, while nobody else has it.
    @exclusivity(unchecked) private nonisolated(unsafe) var index: Int
    private let isFinished = Atomic<Bool>(false)

    // As the index.
    @exclusivity(unchecked) private nonisolated(unsafe) var number: Int

    /// Which attempt to handle it this is; 1 for the first.
    public var attempt: Int { number }

    /// Where it comes from.
    private enum Source {
      case delivery(Delivery)
      case test(MadeMessage)
    }

    init(_ delivery: Delivery, index: Int, attempt: Int) {
      source = .delivery(delivery)
      self.delivery = .passUnretained(delivery)
      self.index = index
      number = attempt
    }

    /// One that nobody has sent; what is done to it is written down.
    package init(_ made: MadeMessage, attempt: Int) {
      source = .test(made)
      delivery = nil
      index = 0
      number = attempt
    }

    /// Begins anew as another one of the same file: for who has handled it, and has it alone.
    func becomeNext(index: Int, attempt: Int) {
      self.index = index
      number = attempt
      isFinished.store(false, ordering: .relaxed)
    }

    deinit {
      // Nobody else is left who could change it.
      guard !isFinished.load(ordering: .acquiring) else { return }
      switch source {
      case .delivery(let delivery): delivery.mailbox.abandon(delivery, index, attempt)
      case .test(let made): made.end(.failed(Self.abandoned))
      }
    }

    static let abandoned = "it was received and never acknowledged"

    /// What a test reads off what was done to it, if one has made it.
    package var made: MadeMessage? {
      if case .test(let made) = source { made } else { nil }
    }

    private var header: MessageFile.Header {
      switch source {
      case .delivery(let delivery): delivery.header
      case .test(let made): made.header
      }
    }

    /// The sender's name for it; the messages of a batch share one.
    public var id: String {
      switch source {
      case .delivery(let delivery): delivery.name.id
      case .test(let made): made.id
      }
    }

    /// Its place in the batch it was sent in; 0 for one that was sent alone.
    public var place: Int { index }

    /// The member who sent it; nil if it was sent by somebody who has not joined.
    public var from: String? {
      switch source {
      case .delivery(let delivery):
        if case .member(let name) = delivery.name.sender { name } else { nil }
      case .test(let made): made.from
      }
    }

    /// What the sender called it: by default the name of the value's type.
    public var kind: String { header.kind }

    /// When it was sent, by the sender's clock.
    public var sent: Date { header.sent }

    /// Whether it was sent to the front of the queue.
    public var isUrgent: Bool {
      switch source {
      case .delivery(let delivery): delivery.name.isUrgent
      case .test(let made): made.isUrgent
      }
    }

    /// Whether it may have been handled before, in whole or in part: an earlier attempt failed or
    /// was cut off, it was given up and is tried again, or the machine has been started since it
    /// was sent.
    public var isRedelivered: Bool {
      switch source {
      case .delivery(let delivery):
        attempt > 1 || delivery.isFromEarlierEpoch || delivery.name.isRetried
      case .test(let made): attempt > 1 || made.isRedelivered
      }
    }

    /// What was sent.
    ///
    /// Throws ``WormholeError/Code-swift.enum/typeMismatch`` if it does not decode as that type.
    @_specialize(where Value == Data)
    public func value<Value: Decodable & Sendable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      if let delivery {
        return try delivery.borrowed { (delivery) throws(WormholeError) in
          try delivery.value(index, as: type)
        }
      }
      guard case .test(let made) = source else { preconditionFailure("a message from nowhere") }
      return try made.value(as: type)
    }

    /// The file that came with it; nil if none was sent.
    public var file: ReceivedFile? {
      guard case .delivery(let delivery) = source else { return nil }
      return delivery.header.file.map { ReceivedFile(delivery, $0) }
    }

    /// Says that it was handled: it never comes again, and the sender is told if it asked.
    ///
    /// A second time this does nothing. It throws, and changes nothing, if another process has
    /// become the member meanwhile and has the message now, or if the member has left and the
    /// message is one of a batch.
    public func acknowledge() throws(WormholeError) { try acknowledge(takingNext: false) }

    @discardableResult
    private func acknowledge(takingNext: Bool) throws(WormholeError) -> Delivery.Taken? {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
      do throws(WormholeError) {
        if let delivery {
          return try delivery.borrowed { (delivery) throws(WormholeError) in
            try delivery.acknowledge(index, takingNext: takingNext)
          }
        }
        made?.end(.acknowledged)
        return nil
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
      switch source {
      case .delivery(let delivery): try delivery.fail(index, attempt: attempt, reason)
      case .test(let made): made.end(.failed(reason))
      }
    }

    /// Nobody was given it after all.
    func putBack() {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      if case .delivery(let delivery) = source { delivery.putBack(index) }
    }

    /// As ``acknowledge()``; what the system refuses now is tried again until it is done.
    ///
    /// - Returns: the next of the same file; see ``Delivery/acknowledge(_:takingNext:)``.
    @discardableResult
    func acknowledgeForSure(takingNext: Bool = false) -> Delivery.Taken? {
      do throws(WormholeError) {
        return try acknowledge(takingNext: takingNext)
      } catch {
        guard case .delivery(let delivery) = source else { return nil }
        delivery.mailbox.hole.log(.error, "\(error)")
        guard ![.superseded, .notJoined].contains(error.code) else { return nil }
        isFinished.store(true, ordering: .releasing)
        delivery.endLater()
        return nil
      }
    }

    /// Whether it was acknowledged, or has failed.
    var hasEnded: Bool { isFinished.load(ordering: .acquiring) }
  }
}

typealias Message = Wormhole.Message

extension Unmanaged<Delivery> {
  /// Uses it while somebody else keeps it.
  @inline(__always)
  fileprivate func borrowed<Result>(
    _ body: (Delivery) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try _withUnsafeGuaranteedRef { try body($0) }
    } catch {
      throw error as! WormholeError  // Nothing else is thrown above.
    }
  }
}
