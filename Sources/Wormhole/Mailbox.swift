internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Synchronization
internal import Syscalls

/// The mailbox of a member that has joined: carries out what ``MailboxMachine`` decides.
///
/// The life of a message (P4), each step one rename of its file or its removal:
///
///     inbox/<name>  →  claimed/<name>~1  →  the sender's receipts/<name>.ok, or nowhere
///                        │      ↑ of a dead process: ~2, ~3, …
///                        └→  dead/<name>, and the sender's receipts/<name>.dead
///
/// Receivers call ``step(for:until:)`` whenever they are kicked. What the machine tells them they
/// do outside its lock.
final class Mailbox: Sendable {
  let hole: Wormhole
  let home: MemberDirectory
  let deadLimit: Int
  let isStrict: Bool
  let attempts: Int
  /// Looked at for each message of a batch.
  let hasLink: Bool
  let senders: SenderHomes
  private let state: Monitor<State>
  private let progress = Monitor<Progress?>(nil)
  private let inbox = InboxWatch()
  private let hasClosed = Atomic<Bool>(false)

  private struct State {
    var machine: MailboxMachine
    var receivers: [Int: Runner] = [:]
    var lastReceiver = 0
    /// How many receivers do at the moment what the machine told them.
    var acting = 0
    /// Files that are in hand and of which something comes again without being claimed anew.
    var open: [MessageName: Delivery] = [:]
    /// Files that are in hand and could not be read.
    var unread: Set<ClaimedName> = []
  }

  init(_ hole: Wormhole, _ home: MemberDirectory) {
    self.hole = hole
    self.home = home
    deadLimit = hole.options.mail.largestDeadLetters
    isStrict = hole.options.mail.isStrict
    attempts = hole.options.mail.machine.attempts
    hasLink = hole.options.link != nil
    senders = SenderHomes(home.container)
    var settings = hole.options.mail.machine
    settings.trustsListings = hole.options.environment.mutants.has(.trustListing)
    state = Monitor(State(machine: MailboxMachine(settings)))
  }

  var mutants: Mutants { hole.options.environment.mutants }
  private var now: Int64 { hole.options.time.now.nanoseconds }

  // MARK: Receivers

  /// Adds a receiver, which is kicked whenever there may be something for it; the first one begins
  /// to watch the inbox.
  func add(_ runner: Runner, kinds: Set<String>?) throws(WormholeError) -> Int {
    try begin()
    return state.withLock { state in
      state.lastReceiver += 1
      state.receivers[state.lastReceiver] = runner
      state.machine.add(state.lastReceiver, kinds: kinds)
      return state.lastReceiver
    }
  }

  func remove(_ receiver: Int) {
    tell { $0.remove(receiver) }
    state.withLock { $0.receivers[receiver] = nil }
  }

  private func begin() throws(WormholeError) {
    try progress.withLock { progress throws(WormholeError) in
      if progress == nil { progress = try Progress(home, isMute: mutants.has(.noProgress)) }
    }
    do throws(Errno) {
      try inbox.begin(home) { [weak self] signal in self?.hear(signal) }
    } catch {
      throw WormholeError(error, "watch inbox of", home.name)
    }
  }

  private func hear(_ signal: NamedWatch.Signal) {
    switch signal {
    case .changed(let names):
      let isUrgent = names.contains { $0.hasPrefix("0") }
      // Before the wake-up, as who is woken and has nothing more to do ends the lull.
      if !isUrgent, state.withLock({ $0.receivers.values.allSatisfy(\.isBusy) }) { inbox.pause() }
      wake(urgent: isUrgent)
    case .lookAgain, .replaced: wake(urgent: true)
    case .removed: remakeInbox()
    }
  }

  /// Has all receivers look again.
  func wake(urgent: Bool = false) { tell { $0.signal(urgent: urgent) } }

  /// As ``wake(urgent:)`` for the receiver that asks, which is awake.
  private func lookForAll() { state.withLock { $0.machine.signal(urgent: true) } }

  /// Whether nothing more may be claimed, given out or noted, because the member has left.
  var isClosed: Bool { hasClosed.load(ordering: .acquiring) }

  /// Lets nothing more be claimed; what is in hand stays there.
  func close() {
    let (runners, open) = state.withLock { state in
      hasClosed.store(true, ordering: .releasing)
      return (Array(state.receivers.values), Array(state.open.values))
    }
    for delivery in open { delivery.close() }
    _ = state.wait(until: nil) { $0.acting == 0 ? true : nil }
    for runner in runners { runner.kick() }
    inbox.stop()
  }

  // MARK: What to do next

  /// Goes on until there is work for a receiver, or nothing more to do.
  func step(for receiver: Int, until isStopped: () -> Bool) -> Step {
    while !isStopped() {
      if inbox.isLookDue { lookForAll() }
      let action = state.withLock { state -> MailboxMachine.Action? in
        guard !isClosed else { return nil }
        let action = state.machine.next(for: receiver, now: now)
        switch action {
        case .wait, .yield: break
        default: state.acting += 1
        }
        return action
      }
      guard let action else { return .ended }
      if case .wait(let due) = action {
        guard !mutants.has(.noEndOfLull), inbox.resume() else { return .idle(until: due) }
        lookForAll()
        continue
      }
      if action == .yield {
        for other in others(than: receiver, if: { _ in true }) { other.kick() }
        return .idle(until: nil)
      }
      let work = act(action, for: receiver)
      let isClosing = state.withLock { state in
        state.acting -= 1
        return isClosed
      }
      if isClosing { state.broadcast() }
      if let work {
        for other in others(than: receiver, if: { $0.takeHeldUp() }) { other.kick() }
        return .work(work)
      }
    }
    return .idle(until: nil)
  }

  private func others(
    than receiver: Int, if condition: (inout MailboxMachine) -> Bool
  ) -> [Runner] {
    state.withLock { state in
      guard state.receivers.count > 1, condition(&state.machine) else { return [] }
      return state.receivers.filter { $0.key != receiver }.map(\.value)
    }
  }

  private func act(_ action: MailboxMachine.Action, for receiver: Int) -> Work? {
    switch action {
    case .wait, .yield: break
    case .recover: recover()
    case .list: list()
    case .peek(let name): return peek(name, for: receiver).map { .file($0) }
    case .claim(let name): return claim(name).map { .file($0) }
    case .reclaim(let claimed): return reclaim(claimed).map { .file($0) }
    case .again(let name, let index):
      let delivery = state.withLock { $0.open[name] }
      return delivery?.again(index).map { .message($0) }
    }
    return nil
  }

  /// Changes what the machine knows, and has all who have nothing to do ask it again.
  @discardableResult
  func tell<Result>(_ change: (inout MailboxMachine) -> Result) -> Result {
    let (result, runners) = state.withLock { state in
      (change(&state.machine), Array(state.receivers.values))
    }
    for runner in runners { runner.kick() }
    return result
  }

  /// For how long nothing is tried after the system has refused something.
  private var pause: Int64 { now + 1_000_000_000 }

  private func recover() {
    do throws(Errno) {
      var claimed: [ClaimedName] = []
      try home.list(.claimed) { name in
        if let name = ClaimedName(String(cString: name)) { claimed.append(name) }
      }
      progress.withLock { $0 }?.forgetInherited(but: claimed.map(\.name))
      let found = claimed.map { claimed in
        MailboxMachine.Claimed(
          claimed: claimed, kind: content(of: claimed.text, in: .claimed).flatMap(kind))
      }
      tell { $0.recovered(found) }
    } catch {
      hole.log(.error, "cannot list what '\(home.name)' had claimed: \(error)")
      tell { $0.recoveryFailed(until: pause) }
    }
  }

  private func list() {
    let began = Instant.now
    defer { inbox.looked(since: began) }
    let start = MessageStamp(home.container)
    do throws(Errno) {
      var names: [MessageName] = []
      try home.list(.inbox) { name in
        if let name = MessageName(name) { names.append(name) }
      }
      let here = arrived(names, before: start)
      tell { $0.listed(here, before: start) }
    } catch {
      hole.log(.error, "cannot list the inbox of '\(home.name)': \(error)")
      tell { $0.listingFailed(until: pause) }
    }
  }

  /// Looks up the kind, and claims the message if this receiver is to have it.
  ///
  /// What was read for the kind is good after the claim too: what is in a file never changes.
  private func peek(_ name: MessageName, for receiver: Int) -> Delivery? {
    let bytes = content(of: name.text, in: .inbox)
    let kind = bytes.flatMap(kind)
    let isMine = tell { $0.peeked(name, kind: kind, by: receiver) }
    return isMine ? claim(name, bytes) : nil
  }

  private func content(of file: String, in part: MemberDirectory.Part) -> [UInt8]? {
    guard case .sound(let bytes, _)? = try? home.read(file, in: part, "read message") else {
      return nil
    }
    return bytes
  }

  private func kind(of bytes: [UInt8]) -> String? {
    let decoder = BinaryDecoder(limits: hole.options.limits)
    return (try? MessageFile.Document(bytes, decoder))?.header.kind
  }

  // MARK: Claiming

  /// - Parameter bytes: what is in the file, if that is known.
  private func claim(_ name: MessageName, _ bytes: [UInt8]? = nil) -> Delivery? {
    let claimed = ClaimedName(name, attempt: 1)
    if mutants.has(.readBeforeClaim) { return claimLate(claimed) }
    do throws(Errno) {
      guard try home.move(name.text, from: .inbox, .claimed, as: claimed.text) else {
        tell { $0.missing() }
        return nil
      }
    } catch {
      hole.log(.error, "cannot claim message '\(name.id)' of '\(home.name)': \(error)")
      tell { $0.claimFailed(until: pause) }
      return nil
    }
    return if let bytes { open(claimed, bytes) } else { open(claimed) }
  }

  /// Takes over what a process that has ended had claimed, or what has failed, as the next attempt.
  private func reclaim(_ old: ClaimedName) -> Delivery? {
    // What could not even be read was no attempt.
    if state.withLock({ $0.unread.remove(old) }) != nil { return open(old) }
    let isKnown = progress.withLock { $0?.knows(old.name) ?? false }
    let next = ClaimedName(old.name, attempt: min(old.attempt + 1, ClaimedName.limit))
    if old.attempt >= attempts, !isKnown {
      let reason = "each of \(old.attempt) attempts to handle it was cut off"
      try? giveUp(old, kind: nil, attempts: old.attempt, reason)
      return nil
    }
    do throws(Errno) {
      let isOurs =
        if next == old { true } else {
          try home.move(old.text, from: .claimed, .claimed, as: next.text)
        }
      guard isOurs else {
        tell { $0.missing() }
        return nil
      }
    } catch {
      hole.log(.error, "cannot claim message '\(old.name.id)' of '\(home.name)': \(error)")
      tell { $0.postpone(old, kind: nil, until: pause) }
      return nil
    }
    return open(next)
  }

  private func open(_ claimed: ClaimedName) -> Delivery? {
    do throws(WormholeError) {
      switch try home.read(claimed.text, in: .claimed, "read message") {
      case .sound(let bytes, _):
        return open(claimed, bytes)
      case .missing:
        tell { $0.missing() }
      case .damaged(let reason, _):
        try giveUp(claimed, kind: nil, attempts: claimed.attempt, "it is damaged: \(reason)")
      }
    } catch {
      refuse(claimed, error)
    }
    return nil
  }

  /// A file that could not be read.
  private func refuse(_ claimed: ClaimedName, _ error: WormholeError) {
    hole.log(.error, "\(error)")
    // What the system says of itself may pass; what it says of the file will not.
    if [.refused, .tooLarge, .damaged].contains(error.code) {
      try? giveUp(claimed, kind: nil, attempts: claimed.attempt, error.reason)
    } else {
      state.withLock { _ = $0.unread.insert(claimed) }
      tell { $0.postpone(claimed, kind: nil, until: pause) }
    }
  }

  private var present: Date { Date(sinceEpoch: hole.options.environment.sinceEpoch()) }

  func open(_ claimed: ClaimedName, _ bytes: [UInt8]) -> Delivery? {
    do throws(WormholeError) {
      let decoder = BinaryDecoder(limits: hole.options.limits)
      let document = try WormholeError.reading("read message", claimed.name.id) {
        try MessageFile.Document(bytes, decoder)
      }
      // What was received in time may come again later.
      if claimed.attempt == 1, let expires = document.header.expires, expires < present {
        try end(claimed, .expired)
        dropFile(of: claimed.name, document.header)
        tell { $0.finished() }
        return nil
      }
      return try open(claimed, document)
    } catch {
      if error.code == .superseded {
        tell { $0.finished() }
      } else {
        refuse(claimed, error)
      }
      return nil
    }
  }

  private func open(
    _ claimed: ClaimedName, _ document: MessageFile.Document
  ) throws(WormholeError) -> Delivery? {
    let count = claimed.name.count
    guard count > 1 else {
      try verifyFile(of: claimed, document.header)
      return Delivery(self, claimed, document, record: nil, BatchSlots(count: 1))
    }
    guard document.count == count, count <= Progress.slotCount else {
      throw WormholeError(
        .damaged, "read message", claimed.name.id,
        because: "it holds \(document.count) messages, and its name says \(count)")
    }
    let progress = progress.withLock { $0 }
    guard let progress, let (record, slots) = progress.open(claimed.name, count: count) else {
      throw WormholeError(
        .exhausted, "read message", claimed.name.id, because: "too many batches are in hand")
    }
    let delivery = Delivery(
      self, claimed, document, record: (record, progress), slots)
    state.withLock { $0.open[claimed.name] = delivery }
    guard !delivery.isComplete else {
      delivery.settle()
      return nil
    }
    return delivery
  }

  // MARK: For deliveries

  func failed(
    _ delivery: Delivery, attempt: Int, index: Int?
  ) -> MailboxMachine.Verdict {
    let now = now
    // A single message is claimed anew.
    if index == nil { forget(delivery) }
    return tell {
      $0.failed(
        delivery.claimed, kind: delivery.header.kind, attempt: attempt, index: index, now: now)
    }
  }

  func closed(_ delivery: Delivery, _ record: Int?) {
    if let record { progress.withLock { $0 }?.close(record) }
    forget(delivery)
    finished()
  }

  private func forget(_ delivery: Delivery) {
    state.withLock { if !$0.open.isEmpty { $0.open[delivery.name] = nil } }
  }

  /// A message was let go of without a word.
  func abandon(_ delivery: Delivery, _ index: Int, _ attempt: Int) {
    do throws(WormholeError) {
      try delivery.fail(index, attempt: attempt, Message.abandoned)
    } catch {
      hole.log(.error, "\(error)")
    }
  }

  func postpone(_ claimed: ClaimedName, kind: String?, index: Int? = nil) {
    tell { $0.postpone(claimed, kind: kind, index: index, until: now + $0.settings.longestDelay) }
  }

  /// Leaves a message to whoever asks next.
  func release(_ delivery: Delivery, _ index: Int) { comeAgain(delivery, index, at: now) }

  /// Has a message come again as its next attempt, as if this one had been cut off.
  func cutOff(_ delivery: Delivery, _ index: Int) {
    guard delivery.count == 1 else { return release(delivery, index) }
    forget(delivery)
    tell { $0.postpone(delivery.claimed, kind: delivery.header.kind, until: now) }
  }

  /// What was handled could not be ended; it is tried again.
  func endLater(_ delivery: Delivery) { comeAgain(delivery, 0, at: pause) }

  private func comeAgain(_ delivery: Delivery, _ index: Int, at due: Int64) {
    state.withLock { $0.open[delivery.name] = delivery }
    tell {
      $0.release(delivery.claimed, kind: delivery.header.kind, index: index, at: due)
    }
  }

  func finished() { tell { $0.finished() } }
}
