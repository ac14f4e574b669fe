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
    private let source: Source
    /// The delivery of the source, for what is done to each message: to count a reference more and
    /// less each time takes as long as to lock.
    private let delivery: Unmanaged<Delivery>?
    private let contents: Unmanaged<Contents>?
    private let isFinished = Atomic<Bool>(false)

    /// Its place in the batch it was sent in; 0 for one that was sent alone.
    public let place: Int
    /// Which attempt to handle it this is; 1 for the first.
    public let attempt: Int

    /// Where it comes from.
    private enum Source {
      case delivery(Delivery, Contents)
      case test(MadeMessage)
    }

    init(_ delivery: Delivery, _ contents: Contents, index: Int, attempt: Int) {
      source = .delivery(delivery, contents)
      self.delivery = .passUnretained(delivery)
      self.contents = .passUnretained(contents)
      place = index
      self.attempt = attempt
    }

    /// One that nobody has sent; what is done to it is written down.
    package init(_ made: MadeMessage, attempt: Int) {
      source = .test(made)
      delivery = nil
      contents = nil
      place = 0
      self.attempt = attempt
    }

    deinit {
      // Nobody else is left who could change it.
      guard !isFinished.load(ordering: .acquiring) else { return }
      switch source {
      case .delivery(let delivery, _):
        guard delivery.mailbox.hole.container.isOwned else { return }
        delivery.mailbox.abandon(delivery, place, attempt)
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
      case .delivery(let delivery, _): delivery.header
      case .test(let made): made.header
      }
    }

    /// The sender's name for it; the messages of a batch share one, and their ``place`` tells them
    /// apart.
    public var id: String {
      switch source {
      case .delivery(let delivery, _): delivery.name.id
      case .test(let made): made.id
      }
    }

    /// The member who sent it; nil if it was sent by somebody who has not joined.
    public var from: String? {
      switch source {
      case .delivery(let delivery, _):
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
      case .delivery(let delivery, _): delivery.name.isUrgent
      case .test(let made): made.isUrgent
      }
    }

    /// Whether it may have been handled before, in whole or in part: an earlier attempt failed or
    /// was cut off, it was given up and is tried again, or the machine has been started since it
    /// was sent.
    public var isRedelivered: Bool {
      switch source {
      case .delivery(let delivery, _):
        attempt > 1 || delivery.isFromEarlierEpoch || delivery.name.isRetried
      case .test(let made): attempt > 1 || made.isRedelivered
      }
    }

    /// What was sent.
    ///
    /// Throws ``WormholeError/Code-swift.struct/typeMismatch`` if it does not decode as that type.
    @_specialize(where Value == Data)
    public func value<Value: Decodable & Sendable>(
      as type: Value.Type = Value.self
    ) throws(WormholeError) -> Value {
      if let contents {
        return try contents.borrowed { (contents) throws(WormholeError) in
          try contents.value(place, as: type)
        }
      }
      guard case .test(let made) = source else { preconditionFailure("a message from nowhere") }
      return try made.value(as: type)
    }

    /// The file that came with it; nil if none was sent.
    public var file: ReceivedFile? {
      switch source {
      case .delivery(let delivery, let contents):
        delivery.header.file.map { ReceivedFile(delivery, contents, $0) }
      case .test(let made): made.file.map { ReceivedFile($0, of: made) }
      }
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
            try delivery.acknowledge(place, takingNext: takingNext)
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
      case .delivery(let delivery, _): try delivery.fail(place, attempt: attempt, reason)
      case .test(let made): made.end(.failed(reason))
      }
    }

    /// Leaves it to whoever receives next, as if it had not been handed out: that counts as no
    /// attempt.
    ///
    /// For who finds that nobody is there yet to handle it. It comes again in its order, to the
    /// same receiver too, so whoever goes on receiving says when.
    ///
    /// - Parameter pause: how long it stays away.
    public func putBack(after pause: Duration = .zero) {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      switch source {
      case .delivery(let delivery, _): delivery.putBack(place, after: pause)
      case .test(let made): made.end(.putBack)
      }
    }

    /// Leaves it to another process as if it had never been claimed.
    ///
    /// For who is about to end: going on, it would be received again at once.
    package func unclaim() throws(WormholeError) {
      guard !isFinished.exchange(true, ordering: .acquiringAndReleasing) else { return }
      switch source {
      case .delivery(let delivery, _): try delivery.unclaim(place)
      case .test(let made): made.end(.putBack)
      }
    }

    /// As ``acknowledge()``; what the system refuses now is tried again until it is done.
    ///
    /// - Returns: the next of the same file; see ``Delivery/acknowledge(_:takingNext:)``.
    @discardableResult
    func acknowledgeForSure(takingNext: Bool = false) -> Delivery.Taken? {
      do throws(WormholeError) {
        return try acknowledge(takingNext: takingNext)
      } catch {
        guard case .delivery(let delivery, _) = source else { return nil }
        delivery.mailbox.log(.error, error, delivery.name)
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

extension Unmanaged {
  /// Uses it while somebody else keeps it.
  @inline(__always)
  fileprivate func borrowed<Result>(
    _ body: (Instance) throws(WormholeError) -> Result
  ) throws(WormholeError) -> Result {
    do {
      return try _withUnsafeGuaranteedRef { try body($0) }
    } catch {
      throw error as! WormholeError  // Nothing else is thrown above.
    }
  }
}
