internal import WormholeContainerStorage

/// A pure state machine: decides the next action of each receiver of one mailbox.
///
/// Each receiver calls ``next(for:now:)``, performs the action, and reports the result. The machine
/// enforces the rules of delivery (P4): files claimed by a dead process come first; of a listing,
/// only messages sent before its start are taken, in order; a message is claimed before anything
/// else; a failed message is redelivered when due, and dead-lettered after the last attempt.
///
/// A message's kind is in its file. If a receiver wants certain kinds only, the kind is read before
/// the claim. A message wanted by no receiver stays in the inbox; its kind is remembered.
///
/// The inbox is listed when messages may have arrived without a notice: see ``arrived(_:now:)``.
///
/// Limits apply to each receiver and each sender, so that none can block the rest: to the files
/// held by one receiver, and to the files of one sender outside the inbox that wait, to be tried
/// again or to have their outcome written.
package struct MailboxMachine: Hashable {
  private enum Recovery { case none, underWay, done }

  let settings: Settings
  private var recovery = Recovery.none
  /// Files claimed by dead processes, by kind, in order.
  private var leftovers: [MessageLabel?: SortedQueue<Leftover>] = [:]
  /// Failed files and messages, by kind, and by due time.
  private var failed: [MessageLabel?: SortedQueue<Leftover>] = [:]
  /// Settled files without a written outcome, by the time of the next try.
  private var unended = SortedQueue<OpenSettlement>()
  /// The names known to be in the inbox, in order.
  private var ready = SortedQueue<MessageName>()
  /// Messages left to another receiver when their kind was read, by kind, in order.
  private var shelves: [MessageLabel?: SortedQueue<MessageName>] = [:]
  /// Messages whose kind is being read: any kind is possible, so no later message overtakes them.
  private var looking: Set<MessageName> = []
  /// The known kinds of unclaimed messages.
  private var kinds = KnownKinds()
  private var isDirty = true
  private var isUrgent = false
  private var isListing = false
  /// Whether the watch has reported every arrival since the latest listing began.
  private var tracks = false
  /// Arrivals reported by the watch since the listing in progress began.
  private var heard: [MessageName] = []
  private var listAgain: Int64 = 0
  private var end: MessageName?
  private var receivers: [Int: ReceiverState] = [:]
  private var turns = 0
  /// Whether a receiver has yielded and was not triggered since the preferred one was served.
  private var isHeldUp = false
  private(set) var inHand = 0
  private var waiting: WaitingSenders
  private var isDoubtful = false
  private var paused: Int64 = 0

  package init(_ settings: Settings) {
    self.settings = settings
    waiting = WaitingSenders(limit: settings.isStrict ? .max : settings.waiting)
  }

  // MARK: Receivers

  /// - Parameter kinds: the wanted kinds; nil for all. Only receivers that take files get files.
  package mutating func add(_ receiver: Int, kinds: Set<String>?, takesFiles: Bool = true) {
    receivers[receiver] = ReceiverState(kinds: kinds, takesFiles: takesFiles)
    // The receiver may want so far unwanted messages. Only their kinds are known: list them again.
    if !self.kinds.isEmpty { signal(urgent: true) }
  }

  mutating func remove(_ receiver: Int) { receivers[receiver] = nil }

  private var anybodyChooses: Bool { receivers.values.contains(where: \.chooses) }

  /// Whether no other idle receiver of this kind has waited for longer.
  private func isTurn(of receiver: Int, _ kind: MessageLabel?) -> Bool {
    guard receivers.count > 1, let served = receivers[receiver]?.served else { return true }
    return !receivers.contains { other, its in
      other != receiver && its.isIdle && its.served < served && its.wants(kind)
        && its.inHand < settings.inHand
    }
  }

  private mutating func serve(_ receiver: Int) {
    turns += 1
    receivers[receiver]?.served = turns
    receivers[receiver]?.isIdle = false
  }

  private mutating func take(by receiver: Int) {
    inHand += 1
    receivers[receiver]?.inHand += 1
  }

  private mutating func letGo(by receiver: Int) {
    inHand -= 1
    receivers[receiver]?.inHand -= 1
  }

  // MARK: Leftover files without a holder

  private mutating func waitNoMore(_ name: MessageName) {
    // The sender's skipped messages are no longer known and precede all reported ones: list them.
    if waiting.remove(name) { signal(urgent: true) }
  }

  /// Records a file without a holder: no receiver has any of its messages.
  mutating func rests(_ name: MessageName, by receiver: Int) {
    letGo(by: receiver)
    waiting.add(name)
  }

  /// Records the new holder of a file without one, which is given a message of the file.
  mutating func wakes(_ name: MessageName, by receiver: Int) {
    waitNoMore(name)
    take(by: receiver)
  }

  /// Records the outcome of a file without a holder.
  mutating func endedAtRest(_ name: MessageName) { waitNoMore(name) }

  /// Records a failure to write a file's outcome; the file has no holder until the next try.
  mutating func endLater(_ name: MessageName, at due: Int64) {
    unended.insert(OpenSettlement(name: name, due: due)) { $0.due < $1.due }
  }

  // MARK: Actions

  /// Records possible arrivals.
  package mutating func signal(urgent: Bool) {
    (isDirty, isUrgent) = (true, isUrgent || urgent)
  }

  /// Records possible arrivals without a notice; the messages may be gone again.
  package mutating func loseTrack() {
    tracks = false
    heard = []
    isDirty = true
  }

  /// Records arrivals, in the order of their reports by the watch.
  ///
  /// Of two messages, the watch reports the earlier first. Listed and reported messages together
  /// are therefore, at each moment, all messages sent by some moment. They are taken in order
  /// without a listing. A listing costs as much as the inbox contains, wanted or not. As arrivals
  /// may be unreported, the inbox is listed as often as the cost is negligible.
  package mutating func arrived(_ names: [MessageName], now: Int64) {
    if isListing {
      guard tracks, heard.count < settings.window else {
        loseTrack()
        return signal(urgent: names.contains(where: \.isUrgent))
      }
      heard += names
      return
    }
    guard tracks, now < listAgain else { return signal(urgent: names.contains(where: \.isUrgent)) }
    for name in names where end.map({ name < $0 }) ?? true {
      ready.insert(name, comesBefore: <)
    }
    if ready.count > settings.window { signal(urgent: true) }
  }

  /// - Parameter isHeard: whether the watch reports all messages that arrive from now on.
  package mutating func next(for receiver: Int, now: Int64, isHeard: Bool = false) -> Action {
    receivers[receiver]?.isIdle = false
    let action = choose(for: receiver, now: now)
    switch action {
    case .wait, .yield: receivers[receiver]?.isIdle = true
    case .list: (tracks, heard) = (isHeard, [])
    case .peek(let name): looking.insert(name)
    default: break
    }
    if action == .yield { isHeldUp = true }
    return action
  }

  /// Whether idle receivers must ask again, because the preferred receiver was served.
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
    case .underWay: return .wait(until: nil)
    case .done: break
    }
    if let first = unended.first, first.due <= now { return .end(unended.removeFirst().name) }
    guard me.inHand < settings.inHand else { return .wait(until: unended.first?.due) }
    if let action = takeClaimed(receiver, me, now) { return action }
    let isHeldUp =
      settings.isStrict && (inHand > 0 || !leftovers.isEmpty || !failed.isEmpty)
    guard !isHeldUp, !isListing else { return .wait(until: nextDue(for: me, now)) }
    if isUrgent || (ready.isEmpty && (isDirty || isWindowUsedUp)) {
      (isDirty, isUrgent, isListing) = (false, false, true)
      return .list
    }
    return takeWaiting(receiver, me, now)
  }

  /// Whether to list the names after `end`, since most names before `end` were taken.
  private var isWindowUsedUp: Bool {
    end != nil && shelves.values.reduce(0) { $0 + $1.count } < settings.window / 2
  }

  private mutating func takeWaiting(_ receiver: Int, _ me: ReceiverState, _ now: Int64) -> Action {
    while true {
      let front = ready.first
      var oldest: (kind: MessageLabel?, name: MessageName)?
      for (kind, line) in shelves where me.wants(kind) {
        if oldest.map({ line.first! < $0.name }) ?? true { oldest = (kind, line.first!) }
      }
      if let oldest, front.map({ oldest.name < $0 }) ?? true {
        guard !waiting.isHeldBack(oldest.name) || settings.passesHeldBack else {
          _ = shelves.takeFirst(of: oldest.kind)
          continue
        }
        guard !isBehind(oldest.name), isTurn(of: receiver, oldest.kind) else { return .yield }
        let name: MessageName = shelves.takeFirst(of: oldest.kind)
        // An unreadable message has no kind; its claim reports the cause. A message with a kind is
        // read again, because only its digest has matched.
        return oldest.kind == nil ? claim(name, receiver) : .peek(name)
      }
      guard let front else { return .wait(until: nextDue(for: me, now)) }
      if waiting.isHeldBack(front) {
        _ = ready.removeFirst()
        continue
      }
      if anybodyChooses {
        return isBehind(front) ? .yield : .peek(ready.removeFirst())
      }
      guard isTurn(of: receiver, nil) else { return .yield }
      return claim(ready.removeFirst(), receiver)
    }
  }

  private func isBehind(_ name: MessageName) -> Bool { looking.contains { $0 < name } }

  private mutating func claim(_ name: MessageName, _ receiver: Int) -> Action {
    take(by: receiver)
    serve(receiver)
    kinds.forget(name)
    return .claim(name)
  }

  /// Returns the next claimed file or message; messages of open files come first.
  private mutating func takeClaimed(_ receiver: Int, _ me: ReceiverState, _ now: Int64) -> Action? {
    guard !leftovers.isEmpty || !failed.isEmpty else { return nil }
    var due: (kind: MessageLabel?, first: Leftover)?
    for (kind, line) in failed where me.wants(kind) {
      let first = line.first!
      if first.due <= now, due.map({ first.due < $0.first.due }) ?? true { due = (kind, first) }
    }
    if let due, let index = due.first.index {
      let _: Leftover = failed.takeFirst(of: due.kind)
      return .again(due.first.claimed.name, index: index)
    }
    guard !settings.isStrict || inHand == 0 else { return nil }
    if let kind = oldestLeftover(for: me) {
      let taken: Leftover = leftovers.takeFirst(of: kind)
      return reclaim(taken, receiver)
    }
    guard let due, !settings.isStrict || leftovers.isEmpty else { return nil }
    let taken: Leftover = failed.takeFirst(of: due.kind)
    waitNoMore(taken.claimed.name)
    return reclaim(taken, receiver)
  }

  private mutating func reclaim(_ taken: Leftover, _ receiver: Int) -> Action {
    take(by: receiver)
    serve(receiver)
    return .reclaim(taken.claimed)
  }

  /// Returns the kind of the oldest file of a dead process, if this receiver may have the file.
  private func oldestLeftover(for me: ReceiverState) -> MessageLabel?? {
    let lines = settings.isStrict ? leftovers : leftovers.filter { me.wants($0.key) }
    let oldest = lines.min { $0.value.first!.claimed.name < $1.value.first!.claimed.name }
    return oldest.flatMap { me.wants($0.key) ? .some($0.key) : nil }
  }

  /// Returns when this receiver's next entry is due; those due already are unavailable to it now.
  private func nextDue(for me: ReceiverState, _ now: Int64) -> Int64? {
    var next = unended.first?.due
    for (kind, line) in failed where me.wants(kind) {
      let due = line.first!.due
      if due > now { next = min(next ?? due, due) }
    }
    return next
  }

  // MARK: Results

  /// Takes the list of files found in `claimed/`.
  package mutating func recovered(_ found: [Leftover]) {
    leftovers = Dictionary(grouping: found, by: \.kind)
      .mapValues { SortedQueue($0.sorted { $0.claimed.name < $1.claimed.name }) }
    recovery = .done
  }

  /// Records a failure to list the claimed files; the next call of `next` tries again.
  mutating func recoveryFailed(until: Int64) {
    recovery = .none
    paused = until
  }

  /// Messages that a listing may leave out.
  var skipping: InboxListing.Exclusions {
    kinds.skipping(but: isWanted, senders: waiting.heldBack)
  }

  func isWanted(_ kind: MessageLabel) -> Bool { receivers.values.contains { $0.wants(kind) } }
  func wants(_ kind: MessageLabel, _ one: Int) -> Bool { receivers[one]?.wants(kind) ?? true }

  /// Takes the result of a listing that began at `start` or later.
  ///
  /// A listing is not a snapshot: of two messages, perhaps only the later is shown. All messages
  /// sent before its start are shown, so only these are taken; the watch reports the rest, or they
  /// are listed again. A far future stamp is from a wrong clock; waiting would block all receivers.
  ///
  /// The listing ended at `now` and showed `shown` messages, of which `names` are those up to
  /// `end`. Reported arrivals cause no further listing until `listAgain`.
  ///
  /// - Returns: the latest stamp after `now`, a moment at which the inbox must be listed again.
  @discardableResult
  package mutating func listed(
    _ names: [MessageName], before start: MessageStamp, now: MessageStamp? = nil,
    end: MessageName? = nil, shown: Int? = nil, listAgain: Int64 = 0
  ) -> MessageStamp? {
    isListing = false
    isDoubtful = false
    self.end = end
    self.listAgain = listAgain
    // Beyond this bound, most of the kinds belong to removed messages.
    if kinds.count > 2 * (shown ?? names.count) + 1024 { kinds = KnownKinds() }
    let future = (now ?? start).advanced(by: 1_000_000_000)
    let fresh = Set(heard)
    var awaited: MessageStamp?
    var sorted: [MessageLabel?: [MessageName]] = [:]
    var unknown: [MessageName] = []
    func add(_ name: MessageName) {
      guard let kind = kinds.kind(of: name) else { return unknown.append(name) }
      if isWanted(kind) { sorted[kind, default: []].append(name) }
    }
    for name in names where !fresh.contains(name) {
      let stamp = name.stamp
      if stamp < start || stamp >= future || settings.trustsListings {
        add(name)
      } else if let now, stamp > now {
        awaited = max(awaited ?? stamp, stamp)
      } else {
        isDirty = true
      }
    }
    for name in heard where end.map({ name < $0 }) ?? true { add(name) }
    heard = []
    shelves = sorted.mapValues { SortedQueue($0.sorted()) }
    unknown.sort()
    ready = SortedQueue(unknown)
    return awaited
  }

  mutating func listingFailed(until: Int64) {
    isListing = false
    loseTrack()
    paused = until
  }

  /// Takes the kind of a waiting message; nil if the message is gone or unreadable, as its claim
  /// finds out.
  ///
  /// - Returns: whether the receiver is to claim the message at once.
  package mutating func peeked(_ name: MessageName, kind: MessageLabel?, by receiver: Int) -> Bool {
    looking.remove(name)
    if let kind {
      kinds.note(kind, of: name)
      guard isWanted(kind) else { return false }
    }
    // The shelf may contain this name already, if the inbox was listed during the read.
    let isOldest = shelves[kind].map { name <= $0.first! } ?? true
    if let me = receivers[receiver], kind != nil, me.wants(kind), isOldest,
      isTurn(of: receiver, kind),
      settings.isStrict ? inHand == 0 : me.inHand < settings.inHand
    {
      _ = claim(name, receiver)
      return true
    }
    shelves[kind, default: SortedQueue()].insert(name, comesBefore: <)
    return false
  }

  /// Records the absence of a message to be claimed: it was cancelled, or has expired.
  package mutating func missing(by receiver: Int) { letGo(by: receiver) }

  /// Records a claim refused by the system; the message is still in its place.
  ///
  /// The refusal may concern this message or all messages, so the next claim is tried at once. If
  /// the system refuses it too, all claims pause, and then start in order. If not, the refused
  /// message does not block the next. A foreign entry is no message, and blocks none; but a full
  /// window without messages is listed again after a pause.
  mutating func claimFailed(by receiver: Int, until: Int64, isForeign: Bool = false) {
    letGo(by: receiver)
    if isForeign, end == nil || !ready.isEmpty { return }
    isDirty = true
    isDoubtful = !isDoubtful && !settings.isStrict && !ready.isEmpty
    if !isDoubtful { (isUrgent, paused) = (true, until) }
  }

  /// Records a settled file, or a file left to a later receiver or process.
  package mutating func finished(by receiver: Int) { letGo(by: receiver) }

  /// Records a failed attempt.
  ///
  /// - Parameter index: the index of the message in a file that stays open; nil for the file.
  package mutating func failed(
    _ claimed: ClaimedName, kind: MessageLabel, attempt: Int, index: Int? = nil, by receiver: Int,
    now: Int64
  ) -> RetryDecision {
    guard attempt < settings.attempts else { return .giveUp }
    let due = now + settings.delay(after: attempt)
    if let index {
      comeAgain(claimed, kind: kind, index: index, at: due)
    } else {
      postpone(claimed, kind: kind, by: receiver, until: due)
    }
    return .retry(at: due)
  }

  /// Schedules a file again after a failure to handle, dead-letter, or even read the file.
  mutating func postpone(
    _ claimed: ClaimedName, kind: MessageLabel?, by receiver: Int, until due: Int64
  ) {
    letGo(by: receiver)
    waiting.add(claimed.name)
    keep(Leftover(claimed: claimed, kind: kind, due: due))
  }

  /// Schedules a message of a claimed file: any receiver may then have it, without a claim.
  mutating func comeAgain(_ claimed: ClaimedName, kind: MessageLabel?, index: Int, at due: Int64) {
    keep(Leftover(claimed: claimed, kind: kind, due: due, index: index))
  }

  private mutating func keep(_ entry: Leftover) {
    failed[entry.kind, default: SortedQueue()].insert(entry) { $0.due < $1.due }
  }
}
