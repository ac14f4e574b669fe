internal import WormholeContainerStorage

/// A pure record of the messages whose ordering keys are in use, and of these keys.
///
/// Of each key one message is with a worker at a time, so the others wait here, in order.
package struct KeyedMessages: Hashable {
  /// A message that may be claimed.
  package enum Candidate: Hashable {
    case fresh(MessageName)
    case returned(ClaimedName)

    package var name: MessageName {
      switch self {
      case .fresh(let name): name
      case .returned(let claimed): claimed.name
      }
    }
  }

  private var waiting: [OrderingKey: SortedQueue<Candidate>] = [:]
  /// The keys in use, and until when nobody needs to look again: for ever for a message of this
  /// worker, which tells of its end.
  private var busy: [OrderingKey: Int64] = [:]
  /// The claims of this worker, by their keys.
  private var own: [OrderingKey: ClaimedName] = [:]
  /// The keys of those claims that this worker holds without a handler.
  private var held: Set<OrderingKey> = []

  /// Whether no message waits.
  var isEmpty: Bool { waiting.isEmpty }

  /// Whether a message with this key has to wait.
  func mustWait(_ key: OrderingKey) -> Bool { waiting[key] != nil || busy[key] != nil }

  mutating func add(_ one: Candidate, _ key: OrderingKey) {
    if case .returned(let back) = one { came(back: back, key) }
    waiting[key, default: SortedQueue()].insert(one) { $0.name < $1.name }
  }

  /// Ends the use of a key by this worker if the message is the claimed one.
  ///
  /// After the handling deadline, a worker has returned the claim. Its handler may never end, and
  /// must not keep this worker from the messages of the key.
  mutating func came(back: ClaimedName, _ key: OrderingKey) {
    guard let claim = own[key], back.name == claim.name, back.attempt >= claim.attempt else {
      return
    }
    held.remove(key)
    free(key)
  }

  mutating func use(_ key: OrderingKey, until moment: Int64) { busy[key] = moment }

  /// Records the use of a key by a claim of this worker.
  mutating func use(_ key: OrderingKey, by claimed: ClaimedName) {
    use(key, until: .max)
    own[key] = claimed
  }

  /// Records the use of a key by a claim that stays after the end of its handler.
  mutating func hold(_ claimed: ClaimedName, _ key: OrderingKey) {
    use(key, by: claimed)
    held.insert(key)
  }

  /// Records the end of a pause: the next end of a claim with the key ends its use.
  mutating func endHold(_ key: OrderingKey) { held.remove(key) }

  /// Ends the use of a key by this worker, unless it holds a claim with the key.
  mutating func free(_ key: OrderingKey) {
    guard !held.contains(key) else { return }
    own[key] = nil
    if busy[key] == .max { busy[key] = nil }
  }

  /// Forgets the messages, which are being listed again.
  mutating func forgetMessages() { waiting = [:] }

  /// Ends the use of keys by others, as far as it is time to look again.
  mutating func endUses(by now: Int64) {
    for (key, moment) in busy where moment <= now { busy[key] = nil }
  }

  /// When to look again at a key that others use, and for which a message waits.
  var next: Int64? {
    waiting.keys.compactMap { busy[$0] }.filter { $0 != .max }.min()
  }

  /// The first message whose key is not in use.
  var first: (candidate: Candidate, key: OrderingKey)? {
    var first: (candidate: Candidate, key: OrderingKey)?
    for (key, queue) in waiting where busy[key] == nil {
      guard let candidate = queue.first else { continue }
      if first.map({ candidate.name < $0.candidate.name }) ?? true { first = (candidate, key) }
    }
    return first
  }

  /// - Returns: whether no other message with the key is known.
  mutating func removeFirst(_ key: OrderingKey) -> Bool {
    _ = waiting.takeFirst(of: key)
    return waiting[key] == nil
  }

  /// How many messages of one key are known at a time: only the first can be claimed, and the
  /// others must not displace the messages of other keys.
  static let most = 64

  /// Removes, from names in order, all but the first of each key.
  ///
  /// - Returns: whether names were removed.
  static func thin(_ names: inout [MessageName]) -> Bool {
    guard names.count > most else { return false }
    var counts: [OrderingKey: Int] = [:]
    let count = names.count
    names.removeAll { name in
      guard let key = name.key else { return false }
      counts[key, default: 0] += 1
      return counts[key]! > most
    }
    return names.count < count
  }
}
