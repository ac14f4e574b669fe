internal import WormholeContainerStorage
internal import WormholeSyscalls

/// A pure state machine: decides the next action of one worker of a queue.
///
/// Unlike a member's inbox, the inbox of a queue has several readers: each name here may be gone by
/// now, and the claim, a rename, decides. The life of a message, each step one rename of its file
/// or its removal:
///
///     inbox/<name>  →  workers/<own>/claimed/<name>~1.<claim>  →  a receipt, or nowhere
///                         │   ↑ of a dead or late worker, or failed
///                         ↓   │
///                      claimed/<name>~1   and, after the last attempt, dead/<name>
///
/// The messages of the queue's `claimed/` were claimed before, and wait for their next attempt.
/// They precede the messages in `inbox/`, as they were sent earlier. A message with an ordering key
/// never returns to `inbox/`; see ``KeyClaims``.
package struct QueueMachine: Hashable {
  package enum Action: Hashable {
    /// List the inbox and the returned messages.
    case list
    case claim(MessageName)
    /// Claim a returned message as its next attempt.
    case reclaim(ClaimedName)
    /// Return a held message, to be claimed by any worker.
    case putBack(HeldClaim)
    /// Renew the claim of a held message: its pause is longer than the handling deadline.
    case renew(HeldClaim)
    /// Nothing, until a notice arrives or this moment has come.
    case wait(until: Int64?)
  }

  /// How many names are known at a time.
  private let window: Int
  /// The names that may be in the inbox, in order.
  private var fresh = SortedQueue<MessageName>()
  /// The names that may be among the returned messages, in order.
  private var returned = SortedQueue<ClaimedName>()
  private var held = SortedQueue<HeldClaim>()
  private var keyed = KeyedMessages()
  /// Whether there may be names that are not known.
  private var isDirty = true
  /// Whether a listing has shown more names than are known.
  private var isCut = false
  private var isUrgent = false
  private var isListing = false
  /// No message is claimed, and nothing is listed, before this moment.
  private var paused: Int64 = .min

  package init(window: Int = 1 << 13) { self.window = window }

  /// Whether there may be a message that can be claimed without a listing.
  package var knowsMessages: Bool { !fresh.isEmpty || !returned.isEmpty }

  // MARK: Events

  /// Records possible arrivals.
  ///
  /// - Parameter isUrgent: whether one of them may precede the known names.
  package mutating func signal(isUrgent: Bool) {
    isDirty = true
    self.isUrgent = self.isUrgent || isUrgent
  }

  /// Records a message that waits for its next attempt.
  package mutating func came(back claimed: ClaimedName) {
    // Another worker may have the message before a listing could show it here.
    if let key = claimed.name.key { keyed.came(back: claimed, key) }
    // A worker that is busy for long does not collect the names of messages that others take. A
    // listing in progress may have been too early for the name, and replaces the known ones.
    guard returned.count < window, !isListing || Mutants.has(.forgetReturned) else {
      return signal(isUrgent: true)
    }
    // A listing that began before may show the name as well; the second claim finds it gone.
    returned.insert(claimed) { $0.name < $1.name }
  }

  /// Records that this worker has claimed a message with the key.
  package mutating func took(_ key: OrderingKey, _ claimed: ClaimedName) {
    keyed.use(key, by: claimed)
  }

  /// Records that this worker no longer has a message with the key, unless it holds one.
  package mutating func released(_ key: OrderingKey) { keyed.free(key) }

  /// Records that another worker has a message with the same key.
  package mutating func found(
    _ key: OrderingKey, inUseFor candidate: KeyedMessages.Candidate?, until moment: Int64
  ) {
    keyed.use(key, until: moment)
    if let candidate { keyed.add(candidate, key) }
  }

  /// Records a claimed message that no handler has until a moment; its ordering key stays in use.
  ///
  /// The worker itself returns the message, and need not look for the end of the use.
  package mutating func hold(_ one: HeldClaim) {
    held.insert(one) { $0.next < $1.next }
    if let key = one.claimed.name.key { keyed.hold(one.claimed, key) }
  }

  /// Takes all held messages, because the worker ends.
  package mutating func takeHeld() -> [HeldClaim] {
    var all: [HeldClaim] = []
    while !held.isEmpty { all.append(held.removeFirst()) }
    return all
  }

  /// Takes the result of a listing that began at `start` and ended at `now`.
  ///
  /// A listing is not a snapshot: of two messages, perhaps only the later one is shown. All
  /// messages sent before its start are shown, so only these are taken. A stamp of the far future
  /// is from a wrong clock; waiting would block the queue.
  ///
  /// - Returns: the latest stamp after `now`, a moment at which the inbox must be listed again.
  package mutating func listed(
    fresh names: [MessageName], returned: [ClaimedName], before start: MessageStamp,
    now: MessageStamp
  ) -> MessageStamp? {
    isListing = false
    let future = now.advanced(by: 1_000_000_000)
    var awaited: MessageStamp?
    var taken: [MessageName] = []
    for name in names {
      let stamp = name.stamp
      if stamp < start || stamp >= future || Mutants.has(.trustListing) {
        taken.append(name)
      } else if stamp > now {
        awaited = max(awaited ?? stamp, stamp)
      } else {
        isDirty = true
      }
    }
    taken.sort()
    isCut = KeyedMessages.thin(&taken)
    if taken.count > window {
      taken.removeLast(taken.count - window)
      isCut = true
    }
    keyed.forgetMessages()
    fresh = SortedQueue(taken)
    self.returned = SortedQueue(returned.sorted { $0.name < $1.name })
    return awaited
  }

  /// Records that the system has refused a listing or a claim; the names are listed again later.
  package mutating func pause(until moment: Int64) {
    isListing = false
    paused = moment
    signal(isUrgent: true)
  }

  /// Records an entry that is no message, and cannot be claimed: it holds up no message.
  ///
  /// If a listing shows more names than are known, and no message, the next listing waits.
  package mutating func skip(until moment: Int64) {
    if isCut, !knowsMessages { pause(until: moment) }
  }

  // MARK: Actions

  /// - Parameter isAsked: whether a handler is free.
  package mutating func next(now: Int64, isAsked: Bool) -> Action {
    if let first = held.first, first.next <= now {
      _ = held.removeFirst()
      if let key = first.claimed.name.key { keyed.endHold(key) }
      return first.due <= now ? .putBack(first) : .renew(first)
    }
    guard isAsked, !isListing else { return .wait(until: held.first?.next) }
    guard paused <= now else { return .wait(until: min(paused, held.first?.next ?? paused)) }
    keyed.endUses(by: now)
    while true {
      let free = keyed.first
      let isKnown = knowsMessages || free != nil
      if isUrgent || !isKnown && (isDirty || isCut && keyed.isEmpty) {
        (isDirty, isCut, isUrgent, isListing) = (false, false, false, true)
        return .list
      }
      let known = nextKnown
      if let free, known.map({ free.candidate.name < $0.name }) ?? true {
        // Further names of the key may be unknown.
        if keyed.removeFirst(free.key), isCut { isDirty = true }
        return action(free.candidate)
      }
      guard let known else {
        return .wait(until: [held.first?.next, keyed.next].compactMap { $0 }.min())
      }
      switch known {
      case .fresh: _ = fresh.removeFirst()
      case .returned: _ = returned.removeFirst()
      }
      guard let key = known.name.key, keyed.mustWait(key) else { return action(known) }
      keyed.add(known, key)
    }
  }

  /// The first of the known names, those aside that wait for their key.
  private var nextKnown: KeyedMessages.Candidate? {
    if let first = returned.first, fresh.first.map({ first.name < $0 }) ?? true {
      return .returned(first)
    }
    return fresh.first.map { .fresh($0) }
  }

  private func action(_ candidate: KeyedMessages.Candidate) -> Action {
    switch candidate {
    case .fresh(let name): .claim(name)
    case .returned(let claimed): .reclaim(claimed)
    }
  }
}

/// A claimed message that no handler has, until a moment.
package struct HeldClaim: Hashable {
  package let claimed: ClaimedName
  package let due: Int64
  /// When the claim must be renewed, if the moment is not due before.
  package let renewal: Int64
  /// When the handling deadline of the claim began.
  package let begun: Int64
  /// How its last attempt has ended.
  package let end: AttemptEnd

  package init(
    claimed: ClaimedName, due: Int64, renewal: Int64 = .max, begun: Int64 = 0, end: AttemptEnd
  ) {
    (self.claimed, self.due, self.end) = (claimed, due, end)
    (self.renewal, self.begun) = (renewal, begun)
  }

  fileprivate var next: Int64 { min(due, renewal) }
}

/// A pure record of the claims that an observer has seen; finds the claims that last too long.
///
/// A claim's name is never used again, and a renewal changes it. So a claim whose name an observer
/// has seen for the whole time was not renewed in that time, whatever the clocks of the worker say.
package struct ClaimObserver: Hashable {
  package struct Claim: Hashable {
    package let worker: String
    package let claimed: ClaimedName

    package init(worker: String, claimed: ClaimedName) {
      (self.worker, self.claimed) = (worker, claimed)
    }
  }

  private var seen: [Claim: Int64] = [:]

  package init() {}

  /// Takes the claims that are there now, each with the nanoseconds it may last.
  ///
  /// - Returns: the claims that have lasted too long, and when the next one will have.
  package mutating func observe(
    _ claims: [(claim: Claim, limit: Int64)], now: Int64
  ) -> (late: [Claim], next: Int64?) {
    var (late, next): ([Claim], Int64?) = ([], nil)
    var seen: [Claim: Int64] = [:]
    for (claim, limit) in claims {
      let since = self.seen[claim] ?? now
      let end = since.addingClamped(limit)
      if end <= now { late.append(claim) } else { next = min(next ?? end, end) }
      seen[claim] = since
    }
    self.seen = seen
    return (late, next)
  }
}
