internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// A file of messages that this process has claimed, from the claim to its end.
///
/// It may be acknowledged from any thread, at any time, also after the receiver has stopped. If
/// another process has become the member meanwhile it has claimed the file as the next attempt, and
/// what is done here comes too late: that is an error and changes nothing.
final class Delivery: Sendable {
  let mailbox: Mailbox
  let claimed: ClaimedName
  let document: MessageFile.Document
  /// Whether it may have been handled before the machine was started.
  let isFromEarlierEpoch: Bool
  /// The record of its progress; nil for a single message.
  private let record: Int?
  private let progress: Progress?
  private let state: Monitor<State>
  private let ending = Monitor(Ending())

  private struct State {
    /// What has become of each; changed only before the member has left: see ``close()``.
    var slots: BatchSlots
    /// Its values as they were asked for last: a batch is decoded once, not once a message.
    var decoded: AnyObject?
  }

  private struct Ending {
    var hasEnded = false
    /// Whether the only message was handled, and that could not be written down yet.
    var isHandled = false
  }

  var name: MessageName { claimed.name }
  var header: MessageFile.Header { document.header }
  var count: Int { name.count }

  init(
    _ mailbox: Mailbox, _ claimed: ClaimedName, _ document: MessageFile.Document,
    record: (number: Int, progress: Progress)?, _ slots: BatchSlots
  ) {
    self.mailbox = mailbox
    self.claimed = claimed
    self.document = document
    self.record = record?.number
    progress = record?.progress
    isFromEarlierEpoch = claimed.name.stamp.epoch < mailbox.home.container.epoch
    state = Monitor(State(slots: slots))
  }

  // MARK: Handing over

  @inline(__always)
  private func withSlots<Result>(_ body: (inout BatchSlots) -> Result) -> Result {
    state.withLock { body(&$0.slots) }
  }

  /// The next message that nobody has been given, as an attempt that has begun.
  ///
  /// In strict order that is the first; each of the others comes when the one before it is done.
  func next() -> Message? {
    while let taken = withSlots({ take(&$0) }) {
      if let attempt = taken.attempt { return Message(self, index: taken.index, attempt: attempt) }
      giveUpSpent(taken.index)
    }
    return nil
  }

  /// Acknowledges a message, and hands over the next in the same go, and as the same object where
  /// nobody else has it: that is all that a message of a batch costs.
  func next(after message: consuming Message) -> Message? {
    guard let taken = message.acknowledgeForSure(takingNext: true) else { return next() }
    guard let attempt = taken.attempt else {
      giveUpSpent(taken.index)
      return next()
    }
    if isKnownUniquelyReferenced(&message) {
      message.becomeNext(index: taken.index, attempt: attempt)
      return message
    }
    return Message(self, index: taken.index, attempt: attempt)
  }

  /// A message that was taken, and the attempt that has begun; nil if there were as many as there
  /// may be.
  struct Taken {
    let index: Int
    let attempt: Int?
  }

  @inline(__always)
  private func take(_ slots: inout BatchSlots) -> Taken? {
    if mailbox.isClosed || (mailbox.isStrict && slots.hasGivenOut) { return nil }
    guard let index = slots.takeNext() else { return nil }
    return Taken(index: index, attempt: isSpent(index, slots) ? nil : begin(index, &slots))
  }

  /// Waits for what was begun before the member left.
  ///
  /// Whoever joins next reads how far a batch has come, and what is noted later it never sees.
  func close() { withSlots { _ in } }

  private func isSpent(_ index: Int, _ slots: BatchSlots) -> Bool {
    record != nil && slots.attempts(index) >= mailbox.attempts
  }

  /// A message that has failed or was given back, as its next attempt; or the end of all, which
  /// could not be written down before.
  func again(_ index: Int) -> Message? {
    guard !isComplete else {
      settle()
      return nil
    }
    return hand(index)
  }

  /// Gives up what was begun as often as it may be.
  ///
  /// Whoever handles it may die of it each time, and then nobody says that it has failed.
  private func giveUpSpent(_ index: Int) {
    let begun = withSlots { $0.attempts(index) }
    do throws(WormholeError) {
      try giveUp(index, attempts: begun, "each of \(begun) attempts failed or was cut off")
    } catch {
      mailbox.hole.log(.error, "\(error)")
    }
  }

  /// Nil if it is not to be handled any more.
  private func hand(_ index: Int) -> Message? {
    guard !withSlots({ isSpent(index, $0) }) else {
      giveUpSpent(index)
      return nil
    }
    let attempt = withSlots { slots in
      mailbox.isClosed || slots.isDone(index) ? nil : begin(index, &slots)
    }
    return attempt.map { Message(self, index: index, attempt: $0) }
  }

  /// Leaves what nobody has been given to other receivers.
  func release() {
    let left = withSlots { slots in
      var left: [Int] = []
      guard !(mailbox.isStrict && slots.hasGivenOut) else { return left }
      while let index = slots.takeNext() {
        left.append(index)
        if mailbox.isStrict { break }
      }
      return left
    }
    for index in left { mailbox.release(self, index) }
  }

  /// Takes back a message that was to be handed over and was not: that was no attempt.
  func putBack(_ index: Int) {
    if let record {
      withSlots { slots in
        slots.undo(index)
        progress?.store(slots[index], index, in: record)
      }
    }
    mailbox.release(self, index)
  }

  private func begin(_ index: Int, _ slots: inout BatchSlots) -> Int {
    guard let record else { return claimed.attempt }
    let attempt = slots.begin(index)
    progress?.store(slots[index], index, in: record)
    return attempt
  }

  // MARK: How it ended

  /// One of the messages is done; the last one ends the file.
  ///
  /// - Returns: the next, if it is to be taken and there is one that may be had now.
  @discardableResult
  func acknowledge(_ index: Int, takingNext: Bool = false) throws(WormholeError) -> Taken? {
    if mailbox.isAcknowledgementLost(name, index) {
      mailbox.cutOff(self, index)
      return nil
    }
    guard let record else {
      try end(.ok)
      return nil
    }
    var taken: Taken?
    let isLast = withSlots { slots -> Bool? in
      if mailbox.isClosed { return nil }
      let isLast = finish(index, &slots, in: record)
      if takingNext { taken = take(&slots) }
      return isLast
    }
    guard let isLast else {
      throw WormholeError(
        .notJoined, "acknowledge message", name.id,
        because: "'\(mailbox.home.name)' has left, and whoever joins next receives it again")
    }
    // Nothing was taken then: none is left, or it is handed over elsewhere.
    if isLast || mailbox.isStrict { try proceed() }
    return taken
  }

  /// One of the messages has failed: it comes again, or is given up.
  func fail(_ index: Int, attempt: Int, _ reason: String) throws(WormholeError) {
    // It was acknowledged, and only its end could not be written down.
    guard !isComplete else { return endLater() }
    let verdict = mailbox.failed(
      self, attempt: attempt, index: record == nil ? nil : index)
    guard verdict == .giveUp else { return }
    guard record != nil else {
      return try mailbox.giveUp(claimed, kind: header.kind, attempts: attempt, reason)
    }
    try giveUp(index, attempts: attempt, reason)
  }

  private func giveUp(
    _ index: Int, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    try mailbox.bury(self, index, attempts: attempts, reason)
    if let record {
      withSlots { _ = finish(index, &$0, in: record, givenUp: true) }
    }
    do throws(WormholeError) {
      try proceed()
    } catch {
      if error.code != .superseded { endLater() }
      throw error
    }
  }

  /// - Returns: whether nothing is left to do but to end the file.
  private func finish(
    _ index: Int, _ slots: inout BatchSlots, in record: Int, givenUp: Bool = false
  ) -> Bool {
    if slots.finish(index, givenUp: givenUp) {
      progress?.store(slots[index], index, in: record)
    }
    return slots.unfinished == 0
  }

  /// After one of the messages of a batch was finished.
  private func proceed() throws(WormholeError) {
    if isComplete { return try end(howItEnds) }
    guard mailbox.isStrict, let next = withSlots({ $0.takeNext() }) else { return }
    mailbox.release(self, next)
  }

  /// Whether nothing is left to do but to end the file.
  var isComplete: Bool {
    record == nil ? ending.withLock { $0.isHandled } : withSlots { $0.unfinished == 0 }
  }

  private var howItEnds: MessageEnd { withSlots { $0.hasGivenUp } ? .dead : .ok }

  private func end(_ end: MessageEnd) throws(WormholeError) {
    try ending.withLock { ending throws(WormholeError) in
      guard !ending.hasEnded else { return }
      do throws(WormholeError) {
        try mailbox.end(claimed, end)
      } catch {
        if error.code == .superseded {
          ending.hasEnded = true
          mailbox.closed(self, record)
        }
        throw error
      }
      ending.hasEnded = true
      mailbox.dropFile(of: claimed.name, header)
      mailbox.closed(self, record)
    }
  }

  /// All was handled, and only the end could not be written down: that is tried again.
  func endLater() {
    ending.withLock { $0.isHandled = true }
    mailbox.endLater(self)
  }

  /// Ends what is complete, now or later.
  func settle() {
    do throws(WormholeError) {
      try end(howItEnds)
    } catch {
      mailbox.hole.log(.error, "\(error)")
      if error.code != .superseded { endLater() }
    }
  }

  // MARK: Values

  @_specialize(where Value == Data)
  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    if let value = document.leaf(index, as: type) { return value }
    let operation = "read message"
    let limits = mailbox.hole.options.limits
    guard record != nil else {
      let list = document.list
      return try WormholeError.reading(operation, name.id) {
        try BinaryDecoder(limits: limits).decode(MessageFile.Opened<Value>.self, from: list).value
      }
    }
    switch try values(as: type).all[index] {
    case .success(let value): return value
    case .failure(let error):
      throw WormholeError(error, operation, name.id, otherwise: .typeMismatch)
    }
  }

  /// All of a batch; two who ask at the same time may both decode it, as a type's own code may do
  /// anything, and is not called under a lock.
  private func values<Value: Decodable & Sendable>(
    as type: Value.Type
  ) throws(WormholeError) -> DecodedValues<Value> {
    if let known = state.withLock({ $0.decoded }) as? DecodedValues<Value> { return known }
    let (list, limits) = (document.list, mailbox.hole.options.limits)
    let values = try WormholeError.reading("read message", name.id) {
      try DecodedValues(
        BinaryDecoder(limits: limits)
          .decode(MessageFile.OpenedBatch<Value>.self, from: list).values)
    }
    state.withLock { $0.decoded = values }
    return values
  }
}

/// A file in the hand of one receiver; what it has not given out when it is let go goes to others.
final class Hand: Sendable {
  private let delivery: Delivery

  init(_ delivery: Delivery) { self.delivery = delivery }

  deinit { delivery.release() }

  func next() -> Message? { delivery.next() }

  func next(after message: consuming Message) -> Message? { delivery.next(after: message) }
}

/// The values of a batch as one type.
private final class DecodedValues<Value: Sendable>: Sendable {
  /// As many as the batch's name says, which was looked at when it was claimed.
  let all: [Result<Value, any Error>]
  init(_ all: [Result<Value, any Error>]) { self.all = all }
}
