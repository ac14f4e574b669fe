internal import WormholeContainerStorage
internal import WormholeSyscalls

/// Lets at most one worker have a message of an ordering key, and only the first one of the key.
///
/// No lock decides, as its holder could be suspended. A worker claims a message, which the others
/// see from then on, and then looks for the messages of the same key elsewhere. If another worker
/// has one, or if an earlier one waits for its next attempt, the claim was in vain and is returned.
/// Of two workers that claim at the same time, at least one sees the other. Two rules make sure
/// that the look finds each earlier message, wherever it moves in the meantime:
///
/// - Before a claim, a worker looks whether another one has a message of the key (``isInUse(_:)``),
///   and claims nothing then. So from the moment of a claim only those can take an earlier message
///   that have looked before, and each of them only once: a returned message has a new name.
/// - A message returned by a worker goes to the queue's `claimed/` and never back to the inbox. So
///   the look (``isFirst(_:)``) is at `claimed/`, at all workers, and at `claimed/` again: a
///   message that is taken before the first part and returned after the second is in the third.
///
/// In the inbox there is no earlier message: the worker has tried the names in their order.
final class KeyClaims: Sendable {
  private let queue: MemberDirectory
  private let workers = Monitor<[String: MemberDirectory]>([:])

  init(_ queue: MemberDirectory) { self.queue = queue }

  /// Whether a worker has a message with the key.
  func isInUse(_ key: OrderingKey) throws(Errno) -> Bool {
    try containsClaim { $0.name.key == key }
  }

  /// Whether a claimed message is the first of its key, and the only claimed one.
  func isFirst(_ claimed: ClaimedName) throws(Errno) -> Bool {
    guard let key = claimed.name.key else { return true }
    func isEarlierWaiting() throws(Errno) -> Bool {
      try queue.contains(.claimed) { file in
        ClaimedName(String(cString: file)).map { $0.name.key == key && $0.name < claimed.name }
          ?? false
      }
    }
    if try isEarlierWaiting() { return false }
    if try containsClaim({ $0.name.key == key && $0 != claimed }) { return false }
    return try !isEarlierWaiting()
  }

  /// How many directories of workers stay open from look to look: each takes two descriptors.
  private static let mostOpen = 64

  private func containsClaim(_ isWanted: (ClaimedName) -> Bool) throws(Errno) -> Bool {
    let names = try queue.workerNames()
    let present = Set(names.map(\.text))
    var open = workers.withLock { $0.filter { present.contains($0.key) } }
    defer { workers.withLock { [open] in $0 = open } }
    for name in names {
      var worker = open[name.text]
      // Nil for a worker that has left in the meantime.
      if worker == nil { worker = try queue.worker(name) }
      guard let worker else { continue }
      if open.count < Self.mostOpen { open[name.text] = worker }
      let isFound = try worker.contains(.claimed) { file in
        ClaimedName(String(cString: file)).map(isWanted) ?? false
      }
      if isFound { return true }
    }
    return false
  }
}
