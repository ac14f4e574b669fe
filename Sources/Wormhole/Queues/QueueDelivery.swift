internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A message of a queue that this worker has claimed, from the claim to its outcome.
final class QueueDelivery: MessageSource, MessageClaim, SharedClaim {
  private let worker: QueueWorker
  private let contents: Contents
  /// The file's size in bytes.
  private let size: Int
  private let name: MessageName
  private let isRepeated: Bool
  /// The claim of this attempt, before a renewal.
  private let first: ClaimedName
  private let claim: Monitor<Claim>
  /// The copies of the file that the handler has made.
  private let copies = Monitor<[HandedCopy]>([])

  private enum Claim {
    /// Ours, under a name that a renewal changes. The handling deadline began at the claim, or at
    /// its last renewal.
    case held(ClaimedName, since: Int64)
    /// Settled, or returned.
    case ended
    /// Another worker's by now.
    case lost(ClaimedName)
  }

  init(_ worker: QueueWorker, _ claimed: ClaimedName, _ contents: Contents, since begun: Int64) {
    self.worker = worker
    self.contents = contents
    size = contents.document.list.size
    name = claimed.name
    first = claimed
    isRepeated = claimed.isRepeated || name.stamp.epoch < worker.epoch
    claim = Monitor(.held(claimed, since: begun))
  }

  /// The file, and the attempt, for a worker of another machine.
  var carried: (name: MessageName, bytes: [UInt8], attempt: Int, isMarked: Bool) {
    (name, contents.document.list.bytes, first.attempt, first.isInterrupted)
  }

  var id: String { name.id }
  var from: String? { name.senderName }
  var header: MessageFile.Header { contents.document.header }
  var isUrgent: Bool { name.isUrgent }
  var messageClaim: any MessageClaim { self }
  var file: ReceivedFile? { header.file.map { ReceivedFile(self, contents, $0) } }
  var home: MemberDirectory { worker.queue }
  var fileName: String { name.fileName }

  /// Whether no other worker has the message.
  var isHeld: Bool {
    get throws(Errno) {
      guard case .held(let claimed, _) = claim.withLock({ $0 }) else { return false }
      return try worker.own.status(of: claimed.text, in: .claimed) != nil
    }
  }

  /// Records a copy of the file.
  func took(_ copy: HandedCopy) { copies.withLock { $0.append(copy) } }

  /// Removes the copies of the file, because this handler has not handled the message.
  private func dropCopies() {
    // A forked child shares the message with its parent, which may still handle it.
    guard worker.container.storage.isOwned else { return }
    let copies = copies.withLock { exchange(&$0, with: []) }
    for copy in copies where !Mutants.has(.keepLateCopies) {
      do throws(Errno) {
        try copy.remove()
      } catch {
        worker.container.log(
          .warning, "cannot remove the copy '\(copy.path)' of a file: \(error)",
          about: LogSubject(member: worker.queue.name, message: id), because: error)
      }
    }
  }

  func isRedelivered(_ index: Int) -> Bool { isRepeated || header.isRedelivered }

  func value<Value: Decodable & Sendable>(
    _ index: Int, as type: Value.Type
  ) throws(WormholeError) -> Value {
    try contents.value(index, as: type)
  }

  /// Ends the claim by the body, unless it has ended before.
  ///
  /// - Parameters:
  ///   - isRepeatable: whether the claim stays after an error that may pass.
  ///   - body: receives the claim, and when its handling deadline began.
  private func end(
    isRepeatable: Bool = false, _ body: (ClaimedName, Int64) throws(WormholeError) -> Void
  ) throws(WormholeError) {
    let (ended, error) = claim.withLock { claim -> (ClaimedName?, WormholeError?) in
      switch claim {
      case .ended: return (nil, nil)
      case .lost(let claimed):
        claim = .ended
        return (claimed, worker.settlement.superseded("acknowledge message", claimed))
      case .held(let claimed, let begun):
        var failure: WormholeError?
        do throws(WormholeError) {
          try body(claimed, begun)
        } catch {
          if isRepeatable, error.code != .superseded { return (nil, error) }
          failure = error
        }
        claim = .ended
        return (claimed, failure)
      }
    }
    if let ended { worker.letGo(ended) }
    if let error { throw error }
  }

  func acknowledge(
    _ index: Int, takingNext: Bool
  ) throws(WormholeError) -> MemberDelivery.StartedAttempt? {
    do throws(WormholeError) {
      try end(isRepeatable: true) { (claimed, _) throws(WormholeError) in
        try worker.settlement.end(claimed, .ok, size: size)
        if header.file != nil { worker.queue.dropFile(of: name) }
      }
    } catch {
      if error.code == .superseded { dropCopies() }
      throw error
    }
    return nil
  }

  func fail(_ index: Int, attempt: Int, _ reason: String) throws(WormholeError) {
    dropCopies()
    try end { (claimed, begun) throws(WormholeError) in
      try worker.failed(claimed, attempt: attempt, reason, since: begun)
    }
  }

  func putBack(_ index: Int, _ end: AttemptEnd, after pause: Duration) {
    reporting(to: log) { () throws(WormholeError) in try requeue(end, after: pause) }
  }

  func unclaim(_ index: Int, _ end: AttemptEnd) throws(WormholeError) {
    try requeue(end, after: .zero)
  }

  private func requeue(_ end: AttemptEnd, after pause: Duration) throws(WormholeError) {
    // Before another worker can have the message.
    dropCopies()
    try self.end { (claimed, begun) throws(WormholeError) in
      try worker.requeue(claimed, end, after: pause, since: begun)
    }
  }

  func abandon(_ index: Int, attempt: Int) {
    guard worker.container.storage.isOwned else { return }
    reporting(to: log) { () throws(WormholeError) in
      try worker.hasStopped
        ? unclaim(index, .interrupted) : fail(index, attempt: attempt, Message.abandoned)
    }
  }

  /// Renews the claim: the handling deadline starts anew.
  func renew() throws(WormholeError) {
    try claim.withLock { claim throws(WormholeError) in
      guard case .held(let claimed, _) = claim else { return }
      do throws(WormholeError) {
        let now = worker.now
        claim = .held(try worker.renewed(claimed), since: now)
      } catch {
        // The claim stays counted until the handler ends it.
        if error.code == .superseded { claim = .lost(claimed) }
        throw error
      }
    }
  }

  /// The message was handled: should the outcome not be written before the handling deadline, the
  /// message is redelivered, marked.
  func endLater() { endLater(after: 1) }

  /// Dead-letters the message, whichever attempt this was.
  func giveUp(attempts: Int, _ reason: String) throws(WormholeError) {
    try end { (claimed, begun) throws(WormholeError) in
      try worker.buryOrHold(claimed, attempts: attempts, reason, since: begun)
    }
  }

  private func endLater(after pause: Int) {
    worker.later(.seconds(pause)) { [self] in
      do throws(WormholeError) {
        _ = try acknowledge(0, takingNext: false)
      } catch {
        guard error.code != .superseded else { return log(error) }
        endLater(after: min(2 * pause, 60))
      }
    }
  }

  func log(_ error: WormholeError) {
    worker.log(worker.settlement.level(of: error, name), error, name)
  }
}
