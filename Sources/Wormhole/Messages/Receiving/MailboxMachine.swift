internal import SharedContainer

/// What the receivers of one mailbox do next, as a pure state machine.
///
/// Each receiver asks ``next(for:now:)``, does what it is told, and tells how that went. All of
/// what they must keep to is decided here (P4): what a dead process had claimed comes first; only
/// what was sent before a listing began is taken from it, in order; a message is claimed before
/// anything else; what failed comes back when it is due, and is given up after so many attempts.
///
/// A message's kind stands in its file. Where some receiver wants certain kinds only, it is looked
/// up before the claim, and a message that nobody wants stays where it is; its kind is remembered.
///
/// The inbox is listed when something may have come unheard: see ``arrived(_:now:)``.
///
/// What is bounded is bounded for each who causes it, so that it holds up nobody else: what one
/// receiver may have in hand, and how many messages of one sender may be out of the inbox and wait,
/// to be tried again or to have their end written down.
package struct MailboxMachine: Hashable {
  private enum Recovery { case none, underWay, done }

  let settings: Settings
  private var recovery = Recovery.none
  /// What the dead have left, by kind, in order.
  private var leftovers: [MessageLabel?: Line<Claimed>] = [:]
  /// What has failed, by kind, and by when it is due.
  private var failed: [MessageLabel?: Line<Claimed>] = [:]
  /// What has ended and does not say so yet, by when that is tried again.
  private var unended = Line<Unended>()
  /// What is known to wait, in order.
  private var ready = Line<MessageName>()
  /// What somebody else wanted when it was looked at, by kind, in order.
  private var shelves: [MessageLabel?: Line<MessageName>] = [:]
  /// What is looked at just now, and may be of any kind: none that came later goes ahead.
  private var looking: Set<MessageName> = []
  /// What is known of the kinds of messages that nobody has claimed.
  private var kinds = KnownKinds()
  private var isDirty = true
  private var isUrgent = false
  private var isListing = false
  /// Whether all that has come since the latest listing began was heard of.
  private var tracks = false
  /// What was heard of since the listing that is under way began.
  private var heard: [MessageName] = []
  private var listAgain: Int64 = 0
  private var end: MessageName?
  private var receivers: [Int: Receiver] = [:]
  private var turns = 0
  /// Whether somebody has let another go first, and has not asked again since that one was served.
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

  /// - Parameter kinds: what it wants; nil for all. What has a file goes to who takes files only.
  package mutating func add(_ receiver: Int, kinds: Set<String>?, takesFiles: Bool = true) {
    receivers[receiver] = Receiver(kinds: kinds, takesFiles: takesFiles)
    // It may want what nobody wanted, and what is known of that is its kind alone.
    if !self.kinds.isEmpty { signal(urgent: true) }
  }

  mutating func remove(_ receiver: Int) { receivers[receiver] = nil }

  private var anybodyChooses: Bool { receivers.values.contains(where: \.chooses) }

  /// Whether no other receiver that wants it has waited for longer.
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

  // MARK: What waits although it is claimed

  private mutating func waitNoMore(_ name: MessageName) {
    // What was passed over meanwhile is not known any more, and comes before all that is heard of.
    if waiting.remove(name) { signal(urgent: true) }
  }

  /// Nothing of a file is in anybody's hand any more.
  mutating func rests(_ name: MessageName, by receiver: Int) {
    letGo(by: receiver)
    waiting.add(name)
  }

  /// Something of a file that has rested is handed over again.
  mutating func wakes(_ name: MessageName, by receiver: Int) {
    waitNoMore(name)
    take(by: receiver)
  }

  /// A file that has rested has come to its end.
  mutating func endedAtRest(_ name: MessageName) { waitNoMore(name) }

  /// The end of a file could not be written down, so that it rests until then.
  mutating func endLater(_ name: MessageName, at due: Int64) {
    unended.insert(Unended(name: name, due: due)) { $0.due < $1.due }
  }

  // MARK: What to do

  /// Something may have come.
  package mutating func signal(urgent: Bool) {
    (isDirty, isUrgent) = (true, isUrgent || urgent)
  }

  /// Something may have come, or come and gone, that is not heard of.
  package mutating func loseTrack() {
    tracks = false
    heard = []
    isDirty = true
  }

  /// These have come, and this is heard of in the order in which it happens.
  ///
  /// Of two messages the one that was sent first is heard of first. So what is heard of, together
  /// with what was there before, is at each moment all that had been sent at some moment, and may
  /// be taken in order without a listing. To list costs as much as there is in the inbox, wanted or
  /// not; it is done as often as that is next to nothing, as there may be what nobody has heard of.
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

  /// - Parameter isHeard: whether all that comes from now on is heard of.
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

  /// Whether those who have nothing to do are to ask again: the one that went first was served.
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

  /// Whether what comes after the end is to be found out, since most of what was before it is gone.
  private var isWindowUsedUp: Bool {
    end != nil && shelves.values.reduce(0) { $0 + $1.count } < settings.window / 2
  }

  private mutating func takeWaiting(_ receiver: Int, _ me: Receiver, _ now: Int64) -> Action {
    while true {
      let front = ready.first
      var oldest: (kind: MessageLabel?, name: MessageName)?
      for (kind, line) in shelves where me.wants(kind) {
        if oldest.map({ line.first! < $0.name }) ?? true { oldest = (kind, line.first!) }
      }
      if let oldest, front.map({ oldest.name < $0 }) ?? true {
        guard !waiting.isHeldBack(oldest.name) else {
          _ = shelves.takeFirst(of: oldest.kind)
          continue
        }
        guard !isBehind(oldest.name), isTurn(of: receiver, oldest.kind) else { return .yield }
        let name: MessageName = shelves.takeFirst(of: oldest.kind)
        // What cannot be read has no kind, as whoever claims it finds out. What has one is looked
        // at again: its digest alone told that it was the one.
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

  /// What was claimed before, of which messages of files that are in hand come first.
  private mutating func takeClaimed(_ receiver: Int, _ me: Receiver, _ now: Int64) -> Action? {
    guard !leftovers.isEmpty || !failed.isEmpty else { return nil }
    var due: (kind: MessageLabel?, first: Claimed)?
    for (kind, line) in failed where me.wants(kind) {
      let first = line.first!
      if first.due <= now, due.map({ first.due < $0.first.due }) ?? true { due = (kind, first) }
    }
    if let due, let index = due.first.index {
      let _: Claimed = failed.takeFirst(of: due.kind)
      return .again(due.first.claimed.name, index: index)
    }
    guard !settings.isStrict || inHand == 0 else { return nil }
    if let kind = oldestLeftover(for: me) {
      let taken: Claimed = leftovers.takeFirst(of: kind)
      return reclaim(taken, receiver)
    }
    guard let due, !settings.isStrict || leftovers.isEmpty else { return nil }
    let taken: Claimed = failed.takeFirst(of: due.kind)
    waitNoMore(taken.claimed.name)
    return reclaim(taken, receiver)
  }

  private mutating func reclaim(_ taken: Claimed, _ receiver: Int) -> Action {
    take(by: receiver)
    serve(receiver)
    return .reclaim(taken.claimed)
  }

  /// The kind of the first that the dead have left and this one may have.
  private func oldestLeftover(for me: Receiver) -> MessageLabel?? {
    let lines = settings.isStrict ? leftovers : leftovers.filter { me.wants($0.key) }
    let oldest = lines.min { $0.value.first!.claimed.name < $1.value.first!.claimed.name }
    return oldest.flatMap { me.wants($0.key) ? .some($0.key) : nil }
  }

  /// When something will be due that it may have; what is so already it cannot have now.
  private func nextDue(for me: Receiver, _ now: Int64) -> Int64? {
    var next = unended.first?.due
    for (kind, line) in failed where me.wants(kind) {
      let due = line.first!.due
      if due > now { next = min(next ?? due, due) }
    }
    return next
  }

  // MARK: How it went

  /// What was found to be claimed.
  package mutating func recovered(_ found: [Claimed]) {
    leftovers = Dictionary(grouping: found, by: \.kind)
      .mapValues { Line($0.sorted { $0.claimed.name < $1.claimed.name }) }
    recovery = .done
  }

  /// The claimed could not be listed; whoever asks next tries again.
  mutating func recoveryFailed(until: Int64) {
    recovery = .none
    paused = until
  }

  /// What a listing need not show.
  var skipping: InboxListing.Skipping {
    kinds.skipping(but: isWanted, senders: waiting.heldBack)
  }

  func isWanted(_ kind: MessageLabel) -> Bool { receivers.values.contains { $0.wants(kind) } }
  func wants(_ kind: MessageLabel, _ one: Int) -> Bool { receivers[one]?.wants(kind) ?? true }

  /// What a listing has shown that began at `start` or later.
  ///
  /// A listing is no snapshot: of two messages it may show the later one alone. Of those sent
  /// before it began it shows all, so only these are taken; the rest is heard of, or listed again.
  /// A stamp far ahead of its end comes from a wrong clock; to wait for it would hold up everybody.
  ///
  /// It was over `now`, showed as many as `shown`, of which those up to `end` are given, and is not
  /// to be done again for what is heard of until `listAgain`.
  ///
  /// - Returns: the latest that was sent later than now, to be looked for at that moment.
  @discardableResult
  package mutating func listed(
    _ names: [MessageName], before start: MessageStamp, now: MessageStamp? = nil,
    end: MessageName? = nil, shown: Int? = nil, listAgain: Int64 = 0
  ) -> MessageStamp? {
    isListing = false
    isDoubtful = false
    self.end = end
    self.listAgain = listAgain
    // As many more are of messages that are gone.
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
    shelves = sorted.mapValues { Line($0.sorted()) }
    unknown.sort()
    ready = Line(unknown)
    return awaited
  }

  mutating func listingFailed(until: Int64) {
    isListing = false
    loseTrack()
    paused = until
  }

  /// The kind of a message that waits; nil if it is gone or cannot be read, which whoever claims it
  /// finds out.
  ///
  /// - Returns: whether the receiver is to claim it at once.
  package mutating func peeked(_ name: MessageName, kind: MessageLabel?, by receiver: Int) -> Bool {
    looking.remove(name)
    if let kind {
      kinds.note(kind, of: name)
      guard isWanted(kind) else { return false }
    }
    // It may stand there already, if the inbox was listed while it was looked at.
    let isOldest = shelves[kind].map { name <= $0.first! } ?? true
    if let me = receivers[receiver], kind != nil, me.wants(kind), isOldest,
      isTurn(of: receiver, kind),
      settings.isStrict ? inHand == 0 : me.inHand < settings.inHand
    {
      _ = claim(name, receiver)
      return true
    }
    shelves[kind, default: Line()].insert(name, comesBefore: <)
    return false
  }

  /// A message that was to be claimed is not there: cancelled, or expired.
  package mutating func missing(by receiver: Int) { letGo(by: receiver) }

  /// The system has refused a claim; the message is where it was.
  ///
  /// That may be about this message or about all of them, so the next one is tried at once. If that
  /// is refused too, none is tried for a while, and then all in order; if not, the first one is not
  /// in its way.
  mutating func claimFailed(by receiver: Int, until: Int64) {
    letGo(by: receiver)
    isDirty = true
    if !isDoubtful, !settings.isStrict, !ready.isEmpty {
      isDoubtful = true
      return
    }
    (isDoubtful, isUrgent, paused) = (false, true, until)
  }

  /// A file has come to its end, or is left to whoever comes next.
  package mutating func finished(by receiver: Int) { letGo(by: receiver) }

  /// An attempt has failed.
  ///
  /// - Parameter index: which message of a file that stays in hand; nil for the file.
  package mutating func failed(
    _ claimed: ClaimedName, kind: MessageLabel, attempt: Int, index: Int? = nil, by receiver: Int,
    now: Int64
  ) -> Verdict {
    guard attempt < settings.attempts else { return .giveUp }
    let due = now + settings.delay(after: attempt)
    if let index {
      comeAgain(claimed, kind: kind, index: index, at: due)
    } else {
      postpone(claimed, kind: kind, by: receiver, until: due)
    }
    return .retry(at: due)
  }

  /// A file that could not be handled, given up, or even be read: it is tried again later.
  mutating func postpone(
    _ claimed: ClaimedName, kind: MessageLabel?, by receiver: Int, until due: Int64
  ) {
    letGo(by: receiver)
    waiting.add(claimed.name)
    keep(Claimed(claimed: claimed, kind: kind, due: due))
  }

  /// A message of a file that was claimed: others may have it from then on, without claiming it.
  mutating func comeAgain(_ claimed: ClaimedName, kind: MessageLabel?, index: Int, at due: Int64) {
    keep(Claimed(claimed: claimed, kind: kind, due: due, index: index))
  }

  private mutating func keep(_ entry: Claimed) {
    failed[entry.kind, default: Line()].insert(entry) { $0.due < $1.due }
  }
}
