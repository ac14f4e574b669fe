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
  /// Whether it may have been handled before the machine was started.
  let isFromEarlierEpoch: Bool
  let bytes: [UInt8]
  /// The record of its progress; nil for a single message.
  private let record: Int?
  private let progress: Progress?
  private let state: Monitor<BatchSlots>
  /// Its values as they were asked for last: a batch is decoded once, not once a message.
  private let decoded = Monitor<AnyObject?>(nil)

  var name: MessageName { claimed.name }
  var count: Int { name.count }

  init(
    _ mailbox: Mailbox, _ claimed: ClaimedName, _ header: MessageFile.Header, _ bytes: [UInt8],
    record: (number: Int, progress: Progress)?, _ slots: BatchSlots
  ) {
    self.mailbox = mailbox
    self.claimed = claimed
    self.header = header
    self.bytes = bytes
    self.record = record?.number
    progress = record?.progress
    isFromEarlierEpoch = claimed.name.stamp.epoch < mailbox.home.container.epoch
    state = Monitor(slots)
  }

  // MARK: Handing over

  /// The next message that nobody has been given, as an attempt that has begun.
  func next() -> Message? {
    let taken = state.withLock { slots -> (Int, Int)? in
      guard let index = slots.takeNext() else { return nil }
      return (index, begin(index, &slots))
    }
    return taken.map { Message(self, index: $0.0, attempt: $0.1) }
  }

  /// A message that has failed, as its next attempt.
  func again(_ index: Int) -> Message? {
    let attempt = state.withLock { slots in
      slots.isDone(index) ? nil : begin(index, &slots)
    }
    return attempt.map { Message(self, index: index, attempt: $0) }
  }

  /// Leaves what nobody has been given to other receivers.
  func release() {
    let left = state.withLock { slots in
      var left: [Int] = []
      while let index = slots.takeNext() { left.append(index) }
      return left
    }
    for index in left {
      mailbox.release(claimed, kind: header.kind, index: record == nil ? nil : index)
    }
  }

  private func begin(_ index: Int, _ slots: inout BatchSlots) -> Int {
    guard let record else { return claimed.attempt }
    let attempt = slots.begin(index)
    progress?.store(slots.slots[index], index, in: record)
    return attempt
  }

  // MARK: How it ended

  /// One of the messages is done; the last one ends the file.
  func acknowledge(_ index: Int) throws(WormholeError) {
    guard record != nil else { return try end(.ok) }
    let isLast = state.withLock { slots in
      guard slots.finish(index) else { return false }
      progress?.store(slots.slots[index], index, in: record!)
      return slots.unfinished == 0
    }
    if isLast { try endBatch() }
  }

  /// One of the messages has failed: it comes again, or is given up.
  func fail(_ index: Int, attempt: Int, _ reason: String) throws(WormholeError) {
    let verdict = mailbox.failed(
      claimed, kind: header.kind, attempt: attempt, index: record == nil ? nil : index, self)
    guard verdict == .giveUp else { return }
    guard record != nil else {
      return try mailbox.giveUp(claimed, kind: header.kind, attempts: attempt, reason)
    }
    try mailbox.bury(self, index, attempts: attempt, reason)
    let isLast = state.withLock { slots in
      guard slots.finish(index, givenUp: true) else { return false }
      progress?.store(slots.slots[index], index, in: record!)
      return slots.unfinished == 0
    }
    if isLast { try endBatch() }
  }

  private func endBatch() throws(WormholeError) {
    let hasGivenUp = state.withLock { $0.hasGivenUp }
    try end(hasGivenUp ? .dead : .ok)
  }

  private func end(_ end: MessageEnd) throws(WormholeError) {
    try mailbox.end(claimed, end)
    mailbox.closed(self, record)
  }

  /// Whether all its messages were finished before the last death, so that only the end is missing.
  func endIfFinished() throws(WormholeError) -> Bool {
    guard record != nil, state.withLock({ $0.unfinished == 0 }) else { return false }
    try endBatch()
    return true
  }

  // MARK: Values

  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    let operation = "read message"
    let limits = mailbox.hole.options.limits
    guard record != nil else {
      let bytes = bytes
      return try WormholeError.reading(operation, name.id) {
        try BinaryDecoder(limits: limits).decode(MessageFile.Opened<Value>.self, from: bytes).value
      }
    }
    let result = try decoded.withLock { decoded throws(WormholeError) in
      if let values = decoded as? DecodedValues<Value> { return values.all[index] }
      let bytes = bytes
      let values = try WormholeError.reading(operation, name.id) {
        try BinaryDecoder(limits: limits)
          .decode(MessageFile.OpenedBatch<Value>.self, from: bytes).values
      }
      decoded = DecodedValues(values)
      return values[index]
    }
    switch result {
    case .success(let value): return value
    case .failure(let error):
      throw WormholeError(error, operation, name.id, otherwise: .typeMismatch)
    }
  }
}

/// A file in the hand of one receiver; what it has not given out when it is let go goes to others.
final class Hand: Sendable {
  private let delivery: Delivery

  init(_ delivery: Delivery) { self.delivery = delivery }

  deinit { delivery.release() }

  func next() -> Message? { delivery.next() }
}

/// The values of a batch as one type.
private final class DecodedValues<Value: Sendable>: Sendable {
  /// As many as the batch's name says, which was looked at when it was claimed.
  let all: [Result<Value, any Error>]
  init(_ all: [Result<Value, any Error>]) { self.all = all }
}
