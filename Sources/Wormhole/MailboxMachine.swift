internal import SharedContainer

/// What the receivers of one mailbox do next, as a pure state machine.
///
/// Each receiver asks ``next(for:now:)``, does what it is told, and tells how that went. All of
/// what they must keep to is decided here (P4): what a dead process had claimed comes first; only
/// what was sent before a listing began is taken from it, in order; a message is claimed before
/// anything else; what failed comes back when it is due, and is given up after so many attempts.
///
/// A message's kind stands in its file. Where some receiver wants certain kinds only, it is looked
/// up before the claim, and a message that nobody wants stays where it is.
struct MailboxMachine {
  /// What one receiver is to do.
  enum Action: Equatable {
    /// Find out what was claimed before: ``recovered(_:)``.
    case recover
    /// Note the clock, then list the inbox: ``listed(_:before:)``.
    case list
    /// Look up the kind of a message that waits: ``peeked(_:kind:)``.
    case peek(MessageName)
    /// ``missing(_:)`` if it is gone; otherwise handle it.
    case claim(MessageName)
    /// The same, with what is claimed already: it becomes the next attempt.
    case reclaim(ClaimedName)
    /// Handle one message of a file that is in hand, now or once more.
    case again(MessageName, index: Int)
    /// Another has waited for longer: have it ask.
    case yield
    /// Nothing to do until there is a signal, or this moment has come.
    case wait(until: Int64?)
  }

  struct Settings: Equatable, Sendable {
    /// How often a message is handed over before it is given up.
    var attempts = 5
    /// How long until the second attempt, in nanoseconds; each further one takes twice as long.
    var firstDelay: Int64 = 100_000_000
    var longestDelay: Int64 = 60_000_000_000
    /// Whether what failed holds up all that was sent after it.
    var isStrict = false
    /// How many files may be in hand at a time.
    var inHand = 128
    /// Takes what a listing shows, whenever it was sent; for tests.
    var trustsListings = false

    func delay(after attempt: Int) -> Int64 {
      let doublings = min(max(attempt - 1, 0), 20)
      return min(longestDelay, firstDelay << Int64(doublings))
    }
  }

  /// What a failed attempt leads to.
  enum Verdict: Equatable {
    case retry(at: Int64)
    case giveUp
  }

  /// A message that a process which has ended had claimed, or one that has failed.
  struct Claimed: Equatable {
    let claimed: ClaimedName
    let kind: String?
    var due: Int64 = 0
    /// Which message of a file that is in hand.
    var index: Int?
  }

  private struct Receiver {
    let kinds: Set<String>?
    var served = 0
    var isIdle = false

    func wants(_ kind: String?) -> Bool {
      guard let kinds, let kind else { return true }
      return kinds.contains(kind)
    }
  }

  private enum Recovery { case none, underWay, done }

  let settings: Settings
  private var recovery = Recovery.none
  /// What the dead have left, in order.
  private var leftovers: [Claimed] = []
  /// What has failed, by when it is due.
  private var failed: [Claimed] = []
  /// What a listing has shown, in order; those before `first` are taken.
  private var ready: [MessageName] = []
  private var first = 0
  /// What nobody wanted when it was looked at, by kind, in order.
  private var parked: [String?: [MessageName]] = [:]
  private var parkedKinds: [MessageName: String?] = [:]
  /// Whether something may have come since the latest listing began.
  private var isDirty = true
  private var isUrgent = false
  private var isListing = false
  private var receivers: [Int: Receiver] = [:]
  private var turns = 0
  /// Whether somebody has let another go first, and has not asked again since that one was served.
  private var isHeldUp = false
  private(set) var inHand = 0
  /// Whether a claim was refused since the latest listing.
  private var isDoubtful = false
  /// Until when nothing is tried, because the system has refused something.
  private var paused: Int64 = 0

  init(_ settings: Settings) { self.settings = settings }

  // MARK: Receivers

  /// - Parameter kinds: what it wants; nil for all.
  mutating func add(_ receiver: Int, kinds: Set<String>?) {
    receivers[receiver] = Receiver(kinds: kinds)
  }

  mutating func remove(_ receiver: Int) { receivers[receiver] = nil }

  private var anybodyChooses: Bool { receivers.values.contains { $0.kinds != nil } }

  /// Whether no other receiver that wants it has waited for longer.
  private func isTurn(of receiver: Int, _ kind: String?) -> Bool {
    guard receivers.count > 1, let served = receivers[receiver]?.served else { return true }
    return !receivers.contains { other, its in
      other != receiver && its.isIdle && its.served < served && its.wants(kind)
    }
  }

  private mutating func serve(_ receiver: Int) {
    turns += 1
    receivers[receiver]?.served = turns
    receivers[receiver]?.isIdle = false
  }

  // MARK: What to do

  /// Something may have come.
  mutating func signal(urgent: Bool) {
    isDirty = true
    if urgent { isUrgent = true }
  }

  mutating func next(for receiver: Int, now: Int64) -> Action {
    receivers[receiver]?.isIdle = false
    let action = choose(for: receiver, now: now)
    switch action {
    case .wait, .yield: receivers[receiver]?.isIdle = true
    default: break
    }
    if action == .yield { isHeldUp = true }
    return action
  }

  /// Whether those who have nothing to do are to ask again: the one that they let go first has been
  /// served, and may take its time.
  mutating func takeHeldUp() -> Bool {
    defer { isHeldUp = false }
    return isHeldUp
  }

  private mutating func choose(for receiver: Int, now: Int64) -> Action {
    guard let me = receivers[receiver] else { return .wait(until: nil) }
    guard paused <= now else { return .wait(until: paused) }
    switch recovery {
    case .none:
      recovery = .underWay
      return .recover
    case .underWay:
      return .wait(until: nil)
    case .done: break
    }
    if let again = takeFailedInBatch(me, now) { return again }
    guard inHand < (settings.isStrict ? 1 : settings.inHand) else { return .wait(until: nextDue) }
    if let claimed = takeClaimed(me, now) {
      inHand += 1
      serve(receiver)
      return .reclaim(claimed)
    }
    if settings.isStrict, !leftovers.isEmpty || !failed.isEmpty { return .wait(until: nextDue) }
    guard !isListing else { return .wait(until: nextDue) }
    if isUrgent || (isDirty && first == ready.count) {
      isDirty = false
      isUrgent = false
      isListing = true
      return .list
    }
    return takeWaiting(receiver, me)
  }

  private mutating func takeWaiting(_ receiver: Int, _ me: Receiver) -> Action {
    let front = first < ready.count ? ready[first] : nil
    let oldest = parked.filter { me.wants($0.key) }.min { $0.value[0] < $1.value[0] }
    if let (kind, names) = oldest, front.map({ names[0] < $0 }) ?? true {
      guard isTurn(of: receiver, kind) else { return .yield }
      parked[kind] = names.count > 1 ? Array(names.dropFirst()) : nil
      parkedKinds[names[0]] = nil
      return claim(names[0], receiver)
    }
    guard let front else { return .wait(until: nextDue) }
    if anybodyChooses {
      takeFront()
      return .peek(front)
    }
    guard isTurn(of: receiver, nil) else { return .yield }
    takeFront()
    return claim(front, receiver)
  }

  private mutating func takeFront() {
    first += 1
    guard first == ready.count else { return }
    ready = []
    first = 0
  }

  private mutating func claim(_ name: MessageName, _ receiver: Int) -> Action {
    inHand += 1
    serve(receiver)
    return .claim(name)
  }

  private mutating func takeFailedInBatch(_ me: Receiver, _ now: Int64) -> Action? {
    let place = failed.firstIndex { $0.index != nil && $0.due <= now && me.wants($0.kind) }
    guard let place else { return nil }
    let taken = failed.remove(at: place)
    return .again(taken.claimed.name, index: taken.index!)
  }

  private mutating func takeClaimed(_ me: Receiver, _ now: Int64) -> ClaimedName? {
    let candidates = settings.isStrict ? leftovers.prefix(1) : leftovers[...]
    if let place = candidates.firstIndex(where: { me.wants($0.kind) }) {
      return leftovers.remove(at: place).claimed
    }
    if settings.isStrict, !leftovers.isEmpty { return nil }
    let place = failed.firstIndex { $0.index == nil && $0.due <= now && me.wants($0.kind) }
    return place.map { failed.remove(at: $0).claimed }
  }

  private var nextDue: Int64? { failed.first?.due }

  // MARK: How it went

  /// What was found to be claimed.
  mutating func recovered(_ found: [Claimed]) {
    leftovers = found.sorted { $0.claimed.name < $1.claimed.name }
    recovery = .done
  }

  /// The claimed could not be listed; whoever asks next tries again.
  mutating func recoveryFailed(until: Int64) {
    recovery = .none
    paused = until
  }

  /// What a listing has shown that began at `start` or later.
  ///
  /// A listing is no snapshot: of two messages it may show the later one alone. Of those sent
  /// before it began it shows all, so only these are taken; the rest is listed again. A stamp far
  /// ahead comes from a clock that is wrong, and waiting for it would hold up everybody.
  mutating func listed(_ names: [MessageName], before start: MessageStamp) {
    isListing = false
    isDoubtful = false
    let future = start.advanced(by: 1_000_000_000)
    var fresh: [MessageName] = []
    var stillParked: [String?: [MessageName]] = [:]
    for name in names {
      let stamp = name.stamp
      if stamp >= start, stamp < future, !settings.trustsListings {
        isDirty = true
      } else if let kind = parkedKinds[name] {
        stillParked[kind, default: []].append(name)
      } else {
        fresh.append(name)
      }
    }
    parked = stillParked.mapValues { $0.sorted() }
    if parked.isEmpty { parkedKinds = [:] }
    ready = fresh.sorted()
    first = 0
  }

  mutating func listingFailed(until: Int64) {
    isListing = false
    isDirty = true
    paused = until
  }

  /// The kind of a message that waits; nil if it is gone or cannot be read, which whoever claims it
  /// finds out.
  ///
  /// - Returns: whether the receiver is to claim it at once.
  mutating func peeked(_ name: MessageName, kind: String?, by receiver: Int) -> Bool {
    let isOldest = parked[kind].map { name < $0[0] } ?? true
    if let me = receivers[receiver], kind != nil, me.wants(kind), isOldest,
      isTurn(of: receiver, kind), inHand < (settings.isStrict ? 1 : settings.inHand)
    {
      _ = claim(name, receiver)
      return true
    }
    parkedKinds[name] = .some(kind)
    let place = parked[kind]?.lastIndex { $0 < name }.map { $0 + 1 } ?? 0
    parked[kind, default: []].insert(name, at: place)
    return false
  }

  /// A message that was to be claimed is not there: cancelled, or expired.
  mutating func missing() { inHand -= 1 }

  /// The system has refused a claim; the message is where it was.
  ///
  /// That may be about this message or about all of them, so the next one is tried at once. If that
  /// is refused too, none is tried for a while, and then all in order; if not, the first one is not
  /// in its way.
  mutating func claimFailed(until: Int64) {
    inHand -= 1
    isDirty = true
    if !isDoubtful, !settings.isStrict, first < ready.count {
      isDoubtful = true
      return
    }
    isDoubtful = false
    isUrgent = true
    paused = until
  }

  /// A file has come to its end, or is left to whoever comes next.
  mutating func finished() { inHand -= 1 }

  /// An attempt has failed.
  mutating func failed(
    _ claimed: ClaimedName, kind: String, attempt: Int, index: Int? = nil, now: Int64
  ) -> Verdict {
    guard attempt < settings.attempts else { return .giveUp }
    let due = now + settings.delay(after: attempt)
    keep(claimed, kind: kind, index: index, until: due)
    return .retry(at: due)
  }

  /// A message that could not be given up, or not even be read: it is tried again later.
  mutating func postpone(
    _ claimed: ClaimedName, kind: String?, index: Int? = nil, until due: Int64
  ) {
    keep(claimed, kind: kind, index: index, until: due)
  }

  /// A message that was claimed and not handed over: others may have it from that moment on,
  /// without claiming it.
  mutating func release(_ claimed: ClaimedName, kind: String?, index: Int, at due: Int64) {
    keep(claimed, kind: kind, index: index, until: due)
  }

  private mutating func keep(_ claimed: ClaimedName, kind: String?, index: Int?, until due: Int64) {
    let entry = Claimed(claimed: claimed, kind: kind, due: due, index: index)
    let place = failed.lastIndex { $0.due <= due }.map { $0 + 1 } ?? 0
    failed.insert(entry, at: place)
    if index == nil { inHand -= 1 }
  }
}
