internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A file of messages claimed by this process, from the claim to its outcome.
///
/// Any thread may acknowledge the messages at any time, even after the receiver has stopped. If
/// another process has become the member in the meantime, that process has claimed the file as the
/// next attempt. Each late call here throws an error and changes nothing.
final class MemberDelivery: Sendable {
  let mailbox: Mailbox
  let claimed: ClaimedName
  let header: MessageFile.Header
  /// The file's size in bytes.
  private let size: Int
  /// The receiver that has claimed the file.
  let receiver: Int
  /// Whether the messages may have been handled before, apart from the counted attempts.
  private let wasHandled: Bool
  let isBatch: Bool
  /// The record of the batch's progress; nil for a single message, or without space for a record.
  private let record: BatchProgress.Record?
  /// The progress of each message; changes only until the member leaves: see ``close()``.
  private let slots: Monitor<BatchSlots>
  private let outcome = Monitor(OutcomeState())

  /// The steps to the outcome of the file.
  private struct OutcomeState {
    var hasEnded = false
    /// Whether the only message was handled, but the outcome could not be written yet.
    var isHandled = false
    /// Whether a handler had the only message, and its attempt did not count.
    var isInterrupted = false
    /// How many tries to write the outcome have failed.
    var tries = 0
    /// The messages of a batch that wait for its end, because no later read can read it, and why.
    var unreadable: [Int] = []
    var reason = ""
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
    wasHandled =
      claimed.name.isRetried || claimed.name.stamp.epoch < mailbox.epoch
      || !isBatch && claimed.isInterrupted
    self.slots = Monitor(slots)
  }

  // MARK: Delivery

  @inline(__always)
  private func withSlots<Result>(_ body: (inout BatchSlots) -> Result) -> Result {
    slots.withLock { body(&$0) }
  }

  /// Whether no receiver has any of its messages, and at least one waits.
  var isAtRest: Bool { withSlots { $0.isAtRest } }

  /// Counts a message as waiting from now on, or no longer.
  func wait(_ waits: Bool) { withSlots { $0.wait(waits) } }

  /// Returns the next message not given out yet, and starts its attempt.
  ///
  /// In strict order only the first is returned here; each further message follows its
  /// predecessor's outcome.
  func next(_ contents: Contents) -> Message? {
    while let taken = withSlots({ take(&$0) }) {
      if let attempt = taken.attempt {
        return Message(self, contents, index: taken.index, attempt: attempt)
      }
      giveUpSpent(taken.index)
    }
    return nil
  }

  /// Acknowledges a message, and takes the next one in the same step.
  func next(_ contents: Contents, after message: Message) -> Message? {
    guard let taken = message.acknowledgeForSure(takingNext: true) else { return next(contents) }
    guard let attempt = taken.attempt else {
      giveUpSpent(taken.index)
      return next(contents)
    }
    return Message(self, contents, index: taken.index, attempt: attempt)
  }

  /// A taken message and its started attempt, which is nil if all attempts were used up.
  struct StartedAttempt {
    let index: Int
    let attempt: Int?
  }

  /// - Parameter finished: a message that has just finished and is not recorded yet. Both are
  ///   recorded by one call, because the call is the cost of a message in a batch.
  @inline(__always)
  private func take(_ slots: inout BatchSlots, after finished: Int? = nil) -> StartedAttempt? {
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
    return index.map { StartedAttempt(index: $0, attempt: isBatch ? attempt : claimed.attempt) }
  }

  /// Writes a range of slots to the record; unchanged slots inside the range keep their values.
  private func note(_ indices: ClosedRange<Int>, _ slots: borrowing BatchSlots) {
    record?.store(slots, indices)
  }

  /// Waits for changes that started before the member left.
  ///
  /// The next process to join reads the progress of the batch, and would never see a later change.
  func close() { withSlots { _ in } }

  private func isSpent(_ index: Int, _ slots: BatchSlots) -> Bool {
    isBatch && slots.attempts(index) >= mailbox.attempts
  }

  /// Returns a failed or requeued message as its next attempt.
  ///
  /// If all messages are handled, writes the outcome after an earlier failure to do so.
  func again(_ index: Int) -> Message? {
    guard !isComplete else {
      settle()
      return nil
    }
    return hand(index)
  }

  /// Dead-letters a message whose attempts are used up.
  ///
  /// The receiving process may die in each attempt, and no failure is reported then.
  private func giveUpSpent(_ index: Int) {
    let begun = withSlots { $0.attempts(index) }
    reporting(to: log) { () throws(WormholeError) in
      try giveUp(index, attempts: begun, "each of \(begun) attempts failed or was interrupted")
    }
  }

  /// Returns nil if the message must not be handled any more.
  private func hand(_ index: Int) -> Message? {
    guard !withSlots({ isSpent(index, $0) }) else {
      giveUpSpent(index)
      return nil
    }
    do throws(WormholeError) {
      // Read again, because keeping the contents of all waiting files may take much memory.
      let contents = try mailbox.contents(of: claimed)
      let attempt = withSlots { slots in
        mailbox.isClosed || slots.isDone(index) ? nil : begin(index, &slots)
      }
      return attempt.map { Message(self, contents, index: index, attempt: $0) }
    } catch {
      mailbox.log(.error, error, name)
      if error.code == .superseded {
        lose()
      } else if error.meansUnreadable {
        giveUpUnreadable(index, error.reason)
      } else {
        mailbox.comeAgain(self, index, at: mailbox.pause)
      }
      return nil
    }
  }

  /// Gives up a message whose file no later read can read.
  ///
  /// The only message is dead-lettered. Other messages of a batch may be with their handlers, so a
  /// message of a batch waits for their ends, and is dead-lettered with the file.
  func giveUpUnreadable(_ index: Int, _ reason: String) {
    if isBatch {
      guard !withSlots({ $0.isDone(index) }) else { return }
      outcome.withLock {
        $0.unreadable.append(index)
        $0.reason = reason
      }
      wait(true)
      return rest()
    }
    let receiver = mailbox.holder(of: self)
    mailbox.forget(self)
    reporting(to: log) { () throws(WormholeError) in
      try mailbox.giveUp(
        claimed, kind: header.label, attempts: claimed.attempt, reason, by: receiver)
    }
  }

  /// Records that the messages of a batch may all wait.
  private func rest() {
    mailbox.rest(self)
    endUnreadable()
  }

  /// Dead-letters a batch that no later read can read, once no handler has one of its messages.
  ///
  /// In strict order, no handler has one while another one waits.
  private func endUnreadable() {
    do throws(WormholeError) {
      try outcome.withLock { outcome throws(WormholeError) in
        guard !outcome.hasEnded, !outcome.unreadable.isEmpty, !mailbox.isClosed else { return }
        let unreadable = outcome.unreadable
        let isDue = withSlots { slots in
          mailbox.isStrict || unreadable.count { !slots.isDone($0) } == slots.unfinished
        }
        guard isDue else { return }
        do throws(WormholeError) {
          try mailbox.giveUp(batch: claimed, outcome.reason)
        } catch {
          guard error.code == .superseded else { throw error }
          mailbox.log(.error, error, name)
        }
        outcome.hasEnded = true
        mailbox.closed(self, record)
      }
    } catch {
      mailbox.log(.error, error, name)
      endLater()
    }
  }

  /// Forgets a file that another process has claimed, or that another tool has removed.
  ///
  /// Other messages of a batch may be with their handlers, and their outcomes are stored later. The
  /// record of the batch is therefore not freed: the outcomes would count for the next batch.
  private func lose() {
    let hadEnded = outcome.withLock { exchange(&$0.hasEnded, with: true) }
    if !hadEnded { mailbox.closed(self, nil) }
  }

  /// Leaves the messages not given out yet to other receivers.
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

  /// Whether an earlier attempt may have handled a message, apart from the counted attempts.
  func isRepeated(_ index: Int) -> Bool {
    wasHandled || (isBatch ? withSlots { $0.isInterrupted(index) } : isInterrupted)
  }

  /// Whether a handler had the only message, and its attempt did not count.
  var isInterrupted: Bool { outcome.withLock { $0.isInterrupted } }

  /// Requeues a message that was not delivered after all, or that its receiver leaves to others;
  /// not counted as an attempt.
  func putBack(_ index: Int, _ end: AttemptEnd = .undone, after pause: Duration = .zero) {
    if isBatch {
      withSlots { slots in
        // The record is the next process's: it may have finished the message.
        guard !mailbox.isOver else { return }
        slots.undo(index, isInterrupted: end == .interrupted)
        if !Mutants.has(.forgetPutBack) { note(index...index, slots) }
      }
    } else if end == .interrupted {
      outcome.withLock { $0.isInterrupted = true }
    }
    mailbox.release(self, index, after: pause)
  }

  /// Restores a message to its state before the claim, for another process; not counted as an
  /// attempt, in this incarnation or the next.
  func unclaim(_ index: Int, _ end: AttemptEnd) throws(WormholeError) {
    guard !isBatch else { return putBack(index, end) }
    try outcome.withLock { outcome throws(WormholeError) in
      guard !outcome.hasEnded else { return }
      try mailbox.unclaim(claimed, end)
      outcome.hasEnded = true
      mailbox.closed(self, record)
    }
  }

  private func begin(_ index: Int, _ slots: inout BatchSlots) -> Int {
    guard isBatch else { return claimed.attempt }
    let attempt = slots.begin(index)
    note(index...index, slots)
    return attempt
  }

  // MARK: Outcome

  /// Acknowledges a message; the last one settles the file.
  ///
  /// - Returns: the next message, if requested and available now.
  @discardableResult
  func acknowledge(_ index: Int, takingNext: Bool = false) throws(WormholeError) -> StartedAttempt?
  {
    if mailbox.isAcknowledgementLost(name, index) {
      mailbox.cutOff(self, index)
      return nil
    }
    guard isBatch else {
      try end(.ok)
      return nil
    }
    var taken: StartedAttempt?
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
        because: "'\(mailbox.home.name)' has left; the next process with this name "
          + "receives the message again")
    }
    // No message was taken in either case: none is left, or `proceed()` releases the next one.
    if isLast || mailbox.isStrict { try proceed() }
    if isAtRest { rest() }
    return taken
  }

  /// Records a failed attempt: the message is redelivered or dead-lettered.
  func fail(_ index: Int, attempt: Int, _ reason: String) throws(WormholeError) {
    // The message was acknowledged, and only its outcome could not be written.
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
    do throws(WormholeError) {
      try mailbox.bury(self, index, attempts: attempts, reason)
    } catch {
      if error.code == .superseded { lose() }
      throw error
    }
    withSlots { _ = finish(index, &$0, givenUp: true) }
    do throws(WormholeError) {
      try proceed()
      if isAtRest { rest() }
    } catch {
      if error.code != .superseded { endLater() }
      throw error
    }
  }

  /// - Returns: whether only the file's outcome is left to write.
  private func finish(
    _ index: Int, _ slots: inout BatchSlots, givenUp: Bool = false
  ) -> Bool {
    let isNew = slots.finish(index, givenUp: givenUp)
    if isNew, !givenUp || !Mutants.has(.forgetGivenUp) { note(index...index, slots) }
    return slots.unfinished == 0
  }

  /// Continues after a message of a batch is finished.
  private func proceed() throws(WormholeError) {
    if isComplete { return try end(howItEnds) }
    guard mailbox.isStrict, let next = withSlots({ $0.takeNext() }) else { return }
    mailbox.release(self, next)
  }

  /// Whether only the file's outcome is left to write.
  var isComplete: Bool {
    isBatch ? withSlots { $0.unfinished == 0 } : outcome.withLock { $0.isHandled }
  }

  private var howItEnds: MessageEnd { withSlots { $0.hasGivenUp } ? .dead : .ok }

  private func end(_ end: MessageEnd) throws(WormholeError) {
    try outcome.withLock { outcome throws(WormholeError) in
      guard !outcome.hasEnded else { return }
      do throws(WormholeError) {
        try mailbox.end(claimed, end, size: size)
      } catch {
        if error.code == .superseded {
          outcome.hasEnded = true
          mailbox.closed(self, record)
        }
        throw error
      }
      outcome.hasEnded = true
      if header.file != nil { mailbox.home.dropFile(of: claimed.name) }
      mailbox.closed(self, record)
    }
  }

  /// Schedules another try to write the outcome after all messages were handled.
  func endLater() {
    let tries = outcome.withLock { outcome in
      outcome.isHandled = true
      outcome.tries += 1
      return outcome.tries - 1
    }
    mailbox.endLater(self, after: tries)
  }

  /// Writes the outcome of a complete file, now or later.
  func settle() {
    guard isComplete else { return endUnreadable() }
    do throws(WormholeError) {
      try end(howItEnds)
    } catch {
      guard error.code != .superseded else { return mailbox.log(.error, error, name) }
      // The first failure was logged as an error.
      mailbox.log(.info, error, name)
      endLater()
    }
  }

  /// Reads the file's contents again.
  func contents() throws(WormholeError) -> Contents { try mailbox.contents(of: claimed) }
}
