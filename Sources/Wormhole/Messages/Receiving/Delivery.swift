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
  let header: MessageFile.Header
  /// How many bytes its file has.
  private let size: Int
  /// The receiver that has claimed it.
  let receiver: Int
  /// Whether it may have been handled before the machine was started.
  let isFromEarlierEpoch: Bool
  let isBatch: Bool
  /// The record of its progress; nil for a single message, and where there is no room for any.
  private let record: BatchProgress.Record?
  /// What has become of each; changed only before the member has left: see ``close()``.
  private let slots: Monitor<BatchSlots>
  private let ending = Monitor(Ending())

  private struct Ending {
    var hasEnded = false
    /// Whether the only message was handled, and that could not be written down yet.
    var isHandled = false
    /// How often its end was tried to be written down in vain.
    var tries = 0
  }

  var name: MessageName { claimed.name }
  var count: Int { name.count }

  init(
    _ mailbox: Mailbox, _ claimed: ClaimedName, _ document: MessageFile.Document,
    for receiver: Int, record: BatchProgress.Record?, _ slots: BatchSlots
  ) {
    self.mailbox = mailbox
    self.claimed = claimed
    header = document.header
    size = document.list.size
    self.receiver = receiver
    self.record = record
    isBatch = slots.count > 1
    isFromEarlierEpoch = claimed.name.stamp.epoch < mailbox.epoch
    self.slots = Monitor(slots)
  }

  // MARK: Handing over

  @inline(__always)
  private func withSlots<Result>(_ body: (inout BatchSlots) -> Result) -> Result {
    slots.withLock { body(&$0) }
  }

  /// Whether nothing of it is in anybody's hand, and something of it waits.
  var isAtRest: Bool { withSlots { $0.isAtRest } }

  /// One of the messages waits from now on, or no longer.
  func wait(_ waits: Bool) { withSlots { $0.wait(waits) } }

  /// The next message that nobody has been given, as an attempt that has begun.
  ///
  /// In strict order that is the first; each of the others comes when the one before it is done.
  func next(_ contents: Contents) -> Message? {
    while let taken = withSlots({ take(&$0) }) {
      if let attempt = taken.attempt {
        return Message(self, contents, index: taken.index, attempt: attempt)
      }
      giveUpSpent(taken.index)
    }
    return nil
  }

  /// Acknowledges a message, and hands over the next in the same go.
  func next(_ contents: Contents, after message: Message) -> Message? {
    guard let taken = message.acknowledgeForSure(takingNext: true) else { return next(contents) }
    guard let attempt = taken.attempt else {
      giveUpSpent(taken.index)
      return next(contents)
    }
    return Message(self, contents, index: taken.index, attempt: attempt)
  }

  /// A message that was taken, and the attempt that has begun; nil if there were as many as there
  /// may be.
  struct Taken {
    let index: Int
    let attempt: Int?
  }

  /// - Parameter finished: what has come to its end just before and is not noted yet: both are
  ///   noted with one call, as that is what a message of a batch costs.
  @inline(__always)
  private func take(_ slots: inout BatchSlots, after finished: Int? = nil) -> Taken? {
    if mailbox.isClosed || (mailbox.isStrict && slots.hasGivenOut) {
      if let finished { note(finished...finished, slots) }
      return nil
    }
    let index = slots.takeNext()
    let attempt = index.flatMap { isSpent($0, slots) || !isBatch ? nil : slots.begin($0) }
    let begun = attempt == nil ? nil : index
    if let first = finished ?? begun, let second = begun ?? finished {
      note(min(first, second)...max(first, second), slots)
    }
    return index.map { Taken(index: $0, attempt: isBatch ? attempt : claimed.attempt) }
  }

  /// Writes down how far some have come; what lies between two that have changed stays as it is.
  private func note(_ indices: ClosedRange<Int>, _ slots: borrowing BatchSlots) {
    record?.store(slots, indices)
  }

  /// Waits for what was begun before the member left.
  ///
  /// Whoever joins next reads how far a batch has come, and what is noted later it never sees.
  func close() { withSlots { _ in } }

  private func isSpent(_ index: Int, _ slots: BatchSlots) -> Bool {
    isBatch && slots.attempts(index) >= mailbox.attempts
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
      mailbox.log(.error, error, name)
    }
  }

  /// Nil if it is not to be handled any more.
  private func hand(_ index: Int) -> Message? {
    guard !withSlots({ isSpent(index, $0) }) else {
      giveUpSpent(index)
      return nil
    }
    do throws(WormholeError) {
      // Read anew, as what waits may be much.
      let contents = try mailbox.contents(of: claimed)
      let attempt = withSlots { slots in
        mailbox.isClosed || slots.isDone(index) ? nil : begin(index, &slots)
      }
      return attempt.map { Message(self, contents, index: index, attempt: $0) }
    } catch {
      mailbox.log(.error, error, name)
      if error.code == .superseded {
        ending.withLock { $0.hasEnded = true }
        mailbox.closed(self, record)
      } else {
        mailbox.comeAgainLater(self, index)
      }
      return nil
    }
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

  /// Takes back a message that was to be handed over and was not, or whose receiver has left it to
  /// others: that was no attempt.
  func putBack(_ index: Int, after pause: Duration = .zero) {
    if isBatch {
      withSlots { slots in
        slots.undo(index)
        note(index...index, slots)
      }
    }
    mailbox.release(self, index, after: pause)
  }

  /// Leaves a message as it was before it was claimed, for another process: that was no attempt, in
  /// this life or the next.
  func unclaim(_ index: Int) throws(WormholeError) {
    guard !isBatch else { return putBack(index) }
    try ending.withLock { ending throws(WormholeError) in
      guard !ending.hasEnded else { return }
      try mailbox.unclaim(claimed)
      ending.hasEnded = true
      mailbox.closed(self, record)
    }
  }

  private func begin(_ index: Int, _ slots: inout BatchSlots) -> Int {
    guard isBatch else { return claimed.attempt }
    let attempt = slots.begin(index)
    note(index...index, slots)
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
    guard isBatch else {
      try end(.ok)
      return nil
    }
    var taken: Taken?
    var isAtRest = false
    let isLast = withSlots { slots -> Bool? in
      if mailbox.isClosed { return nil }
      guard takingNext else {
        let isLast = finish(index, &slots)
        isAtRest = slots.isAtRest
        return isLast
      }
      let isNew = slots.finish(index)
      taken = take(&slots, after: isNew ? index : nil)
      isAtRest = slots.isAtRest
      return slots.unfinished == 0
    }
    guard let isLast else {
      throw WormholeError(
        .notJoined, "acknowledge message", name.id,
        because: "'\(mailbox.home.name)' has left, and whoever joins next receives it again")
    }
    // Nothing was taken then: none is left, or it is handed over elsewhere.
    if isLast || mailbox.isStrict { try proceed() }
    if isAtRest { mailbox.rest(self) }
    return taken
  }

  /// One of the messages has failed: it comes again, or is given up.
  func fail(_ index: Int, attempt: Int, _ reason: String) throws(WormholeError) {
    // It was acknowledged, and only its end could not be written down.
    guard !isComplete else { return endLater() }
    let receiver = mailbox.holder(of: self)
    let verdict = mailbox.failed(
      self, attempt: attempt, index: isBatch ? index : nil, by: receiver)
    guard verdict == .giveUp else { return }
    guard isBatch else {
      return try mailbox.giveUp(
        claimed, kind: header.label, attempts: attempt, reason, by: receiver)
    }
    try giveUp(index, attempts: attempt, reason)
  }

  private func giveUp(
    _ index: Int, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    try mailbox.bury(self, index, attempts: attempts, reason)
    withSlots { _ = finish(index, &$0, givenUp: true) }
    do throws(WormholeError) {
      try proceed()
      if isAtRest { mailbox.rest(self) }
    } catch {
      if error.code != .superseded { endLater() }
      throw error
    }
  }

  /// - Returns: whether nothing is left to do but to end the file.
  private func finish(
    _ index: Int, _ slots: inout BatchSlots, givenUp: Bool = false
  ) -> Bool {
    if slots.finish(index, givenUp: givenUp) { note(index...index, slots) }
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
    isBatch ? withSlots { $0.unfinished == 0 } : ending.withLock { $0.isHandled }
  }

  private var howItEnds: MessageEnd { withSlots { $0.hasGivenUp } ? .dead : .ok }

  private func end(_ end: MessageEnd) throws(WormholeError) {
    try ending.withLock { ending throws(WormholeError) in
      guard !ending.hasEnded else { return }
      do throws(WormholeError) {
        try mailbox.end(claimed, end, size: size)
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
    let tries = ending.withLock { ending in
      ending.isHandled = true
      ending.tries += 1
      return ending.tries - 1
    }
    mailbox.endLater(self, after: tries)
  }

  /// Ends what is complete, now or later.
  func settle() {
    do throws(WormholeError) {
      try end(howItEnds)
    } catch {
      guard error.code != .superseded else { return mailbox.log(.error, error, name) }
      // It was said when it was tried first.
      mailbox.log(.info, error, name)
      endLater()
    }
  }

  /// What it holds, read once more.
  func contents() throws(WormholeError) -> Contents { try mailbox.contents(of: claimed) }
}

/// What a file of messages holds, for as long as somebody needs it.
final class Contents: Sendable {
  let document: MessageFile.Document
  private let name: MessageName
  private let limits: PropertyListLimits
  /// Its values as they were asked for last: a batch is decoded once, not once a message.
  private let decoded = Monitor<AnyObject?>(nil)

  init(_ name: MessageName, _ document: MessageFile.Document, _ limits: PropertyListLimits) {
    self.name = name
    self.document = document
    self.limits = limits
  }

  @_specialize(where Value == Data)
  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    if let value = document.leaf(index, as: type) { return value }
    let operation = "read message"
    guard name.count > 1 else {
      let (list, limits) = (document.list, limits)
      return try WormholeError.reading(operation, name.id, of: .message) {
        try BinaryDecoder(limits: limits).decode(MessageFile.Opened<Value>.self, from: list).value
      }
    }
    switch try values(as: type).all[index] {
    case .success(let value): return value
    case .failure(let error):
      throw WormholeError(error, operation, name.id, of: .message, otherwise: .typeMismatch)
    }
  }

  /// All of a batch; two who ask at the same time may both decode it, as a type's own code may do
  /// anything, and is not called under a lock.
  private func values<Value: Decodable & Sendable>(
    as type: Value.Type
  ) throws(WormholeError) -> DecodedValues<Value> {
    if let known = decoded.withLock({ $0 }) as? DecodedValues<Value> { return known }
    let (list, limits) = (document.list, limits)
    let values = try WormholeError.reading("read message", name.id, of: .message) {
      try DecodedValues(
        BinaryDecoder(limits: limits)
          .decode(MessageFile.OpenedBatch<Value>.self, from: list).values)
    }
    decoded.withLock { $0 = values }
    return values
  }
}

/// A file that was claimed and read.
struct OpenedFile: Sendable {
  let delivery: Delivery
  let contents: Contents
}

/// A file in the hand of one receiver; what it has not given out when it is let go goes to others.
final class Hand: Sendable {
  private let file: OpenedFile

  init(_ file: OpenedFile) { self.file = file }

  deinit { if file.delivery.mailbox.hole.container.isOwned { release() } }

  /// Leaves to others what it has not given out, before it is let go.
  func release() { file.delivery.release() }

  func next() -> Message? { file.delivery.next(file.contents) }

  func next(after message: Message) -> Message? {
    file.delivery.next(file.contents, after: message)
  }
}

/// The values of a batch as one type.
private final class DecodedValues<Value: Sendable>: Sendable {
  /// As many as the batch's name says, which was looked at when it was claimed.
  let all: [Result<Value, any Error>]
  init(_ all: [Result<Value, any Error>]) { self.all = all }
}
