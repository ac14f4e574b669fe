internal import FoundationEssentials
internal import Synchronization
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The mailbox of a member that has joined: executes the decisions of ``MailboxMachine``.
///
/// The life of a message (P4), each step one rename of its file or its removal:
///
///     inbox/<name>  →  claimed/<name>~1  →  the sender's receipts/<name>.ok, or nowhere
///                        │      ↑ of a dead process: ~2, ~3, …
///                        └→  dead/<name>, and the sender's receipts/<name>.dead
///
/// Each receiver calls ``step(for:until:)`` whenever its worker is triggered. The machine's actions
/// run outside the lock.
final class Mailbox: Service {
  let container: SharedContainer
  let home: MemberDirectory
  let epoch: Int
  let isStrict: Bool
  let attempts: Int
  /// Stored here, because each message of a batch checks this.
  let hasLink: Bool
  let settlement: Settlement
  let closures = Closures()
  let tasks = TaskReceivers()
  /// Whether a message was released without an outcome.
  let hasAbandoned = Atomic<Bool>(false)
  let state: Monitor<State>
  let progress = Monitor<BatchProgress?>(nil)
  let inbox = InboxWatch()
  private let due: DueMessages
  private let hasClosed = Atomic<Bool>(false)
  private let hasReturned = Atomic<Bool>(false)
  private let linkWatching = Monitor<(any AnyObject & Sendable)?>(nil)

  struct State {
    var machine: MailboxMachine
    var receivers: [Int: Worker] = [:]
    /// By receiver: gives back the work that its task has not taken yet.
    var withdrawals: [Int: @Sendable () -> Void] = [:]
    var lastReceiver = 0
    /// How many receivers are performing an action of the machine, passing on its result, or giving
    /// it back.
    var acting = 0
    /// Claimed files of which a message is redelivered without a new claim.
    var open: [MessageName: Open] = [:]
    /// Claimed files of one message that a receiver has requeued: not an attempt.
    var returned: Set<ClaimedName> = []
    /// Claimed files whose content could not be read.
    var unread: Set<ClaimedName> = []
    /// The reasons for dead letters that could not be written, for the next try.
    var reasons: [ClaimedName: String] = [:]
    /// The moment of the next planned listing for messages with a future stamp; nil for none.
    var awaited: MessageStamp?
  }

  struct Open {
    let delivery: MemberDelivery
    /// The receiver that holds the file; nil if the file waits without a holder.
    var holder: Int?
  }

  init(_ container: SharedContainer, _ home: MemberDirectory, epoch: Int) {
    self.container = container
    self.home = home
    self.epoch = epoch
    due = DueMessages(home, container, epoch: epoch)
    isStrict = container.options.mailbox.keepsOrderOnRetry
    attempts = container.options.mailbox.machine.attempts
    hasLink = container.options.link != nil
    settlement = Settlement(
      container: container, home: home, claims: home, senders: SenderHomes(home.container),
      supersession: "another process has joined as '\(home.name)', and has claimed the message")
    var settings = container.options.mailbox.machine
    settings.trustsListings = Mutants.has(.trustListing)
    state = Monitor(State(machine: MailboxMachine(settings)))
    linkWatching.withLock { watching in
      watching = container.options.link?.watch { [weak self] in self?.wake(urgent: true) }
    }
  }

  var now: Int64 { container.options.time.now.nanoseconds }

  // MARK: Receivers

  /// Adds a receiver, whose worker is triggered whenever work may be waiting; the first receiver
  /// starts the watch on the inbox.
  func add(
    _ runner: Worker, kinds: Set<String>?, takesFiles: Bool = true
  ) throws(WormholeError) -> Int {
    try container.storage.checkOwner("receive as", home.name)
    try begin()
    return state.withLock { state in
      state.lastReceiver += 1
      state.receivers[state.lastReceiver] = runner
      state.machine.add(state.lastReceiver, kinds: kinds, takesFiles: takesFiles)
      return state.lastReceiver
    }
  }

  func remove(_ receiver: Int) {
    tell { $0.remove(receiver) }
    state.withLock { state in
      state.receivers[receiver] = nil
      state.withdrawals[receiver] = nil
    }
  }

  private func begin() throws(WormholeError) {
    try checkJoined()
    try progress.withLock { progress throws(WormholeError) in
      guard progress == nil else { return }
      do throws(WormholeError) {
        progress = try BatchProgress(home, isMute: Mutants.has(.noProgress))
      } catch {
        // A full disk must not stop reception, because reception frees space.
        guard error.code == .full else { throw error }
        log(
          .warning, "\(error); handled messages of a batch may be redelivered", because: error)
      }
    }
    try naming("watch inbox of", home.name, at: home) { () throws(Errno) in
      try inbox.begin(home) { [weak self] signal in self?.hear(signal) }
      try due.begin()
    }
    // The member may have left before the watches began: its end has found none to stop.
    guard isClosed else { return }
    inbox.stop()
    due.stop()
    try checkJoined()
  }

  private func hear(_ signal: WatchSignal) {
    switch signal {
    case .changed(let names):
      let messages = hasLink ? [] : names.compactMap { MessageName($0) }
      let isUrgent = names.contains { $0.begins(with: "0") }
      let now = now
      // Pause before triggering: a triggered receiver without further work resumes the watch.
      triggering { state in
        if !isUrgent, state.receivers.values.allSatisfy(\.isBusy), inbox.pause() {
          state.machine.loseTrack()
        }
        if hasLink {
          state.machine.signal(urgent: isUrgent)
        } else {
          state.machine.arrived(messages, now: now)
        }
      }
    case .lookAgain, .replaced:
      tell { machine in
        machine.loseTrack()
        machine.signal(urgent: true)
      }
    case .gone: remakeInbox()
    }
  }

  /// Makes all receivers list the inbox again.
  func wake(urgent: Bool = false) { tell { $0.signal(urgent: urgent) } }

  /// As ``wake(urgent:)`` for the calling receiver, which is awake.
  private func lookForAll() { state.withLock { $0.machine.signal(urgent: true) } }

  /// Whether no message may be claimed, given out or recorded any more: the member has left.
  var isClosed: Bool { hasClosed.load(ordering: .acquiring) }

  /// Whether the next process to join may have the claimed messages.
  var isOver: Bool { hasReturned.load(ordering: .acquiring) }

  /// Prevents further claims; claimed messages stay claimed.
  func close() {
    let (runners, open) = state.withLock { state in
      hasClosed.store(true, ordering: .releasing)
      return (Array(state.receivers.values), Array(state.open.values))
    }
    for open in open { open.delivery.close() }
    let withdrawals = state.wait(until: nil) { state in
      state.acting == 0 ? Array(state.withdrawals.values) : nil
    }
    for withdraw in withdrawals ?? [] { withdraw() }
    // Receivers that are being stopped may still give their work back.
    _ = state.wait(until: nil) { $0.acting == 0 ? true : nil }
    for runner in runners { runner.trigger() }
    inbox.stop()
    due.stop()
    // Each delivery retains this mailbox: leaving with a claimed batch would leak the mailbox.
    let (left, returned) = state.withLock { state in
      defer { (state.open, state.returned) = ([:], []) }
      return (state.open, state.returned)
    }
    hasReturned.store(true, ordering: .releasing)
    for open in left.values { open.delivery.close() }
    if !Mutants.has(.countReturned) {
      unclaimAll(
        returned.map { claimed -> (claimed: ClaimedName, end: AttemptEnd) in
          let isInterrupted = left[claimed.name]?.delivery.isInterrupted ?? false
          return (claimed, isInterrupted ? .interrupted : .undone)
        })
    }
    withExtendedLifetime(left) {}
  }

  // MARK: Steps

  /// Performs actions until the receiver has work, or nothing is left to do.
  func step(for receiver: Int, until isStopped: () -> Bool) -> Step {
    while !isStopped() {
      if inbox.isLookDue { lookForAll() }
      let action = state.withLock { state -> MailboxMachine.Action? in
        guard !isClosed else { return nil }
        let action = state.machine.next(
          for: receiver, now: now, isHeard: !hasLink && !inbox.isPaused)
        switch action {
        case .wait, .yield: break
        default: state.acting += 1
        }
        return action
      }
      guard let action else { return .ended }
      if case .wait(let due) = action {
        guard !Mutants.has(.noEndOfLull), inbox.resume() else { return .idle(until: due) }
        // The receiver that resumes the watch lists the inbox; a stopping receiver wakes the rest
        // instead.
        if isStopped() { wake(urgent: true) } else { lookForAll() }
        continue
      }
      if action == .yield {
        for other in others(than: receiver, if: { _ in true }) { other.trigger() }
        return .idle(until: nil)
      }
      let work = act(action, for: receiver)
      endAction()
      if let work {
        for other in others(than: receiver, if: { $0.takeHeldUp() }) { other.trigger() }
        return .work(work)
      }
    }
    return .idle(until: nil)
  }

  /// Performs a step, and passes its work on before a member that leaves returns the messages that
  /// no handler has.
  func step(
    for receiver: Int, until isStopped: () -> Bool, handing hand: (ReceiverWork) -> Void
  ) -> Step {
    state.withLock { $0.acting += 1 }
    defer { endAction() }
    let step = step(for: receiver, until: isStopped)
    if case .work(let work) = step { hand(work) }
    return step
  }

  func endAction() {
    let isClosing = state.withLock { state in
      state.acting -= 1
      return isClosed
    }
    if isClosing { state.broadcast() }
  }

  private func others(
    than receiver: Int, if condition: (inout MailboxMachine) -> Bool
  ) -> [Worker] {
    state.withLock { state in
      guard state.receivers.count > 1, condition(&state.machine) else { return [] }
      return state.receivers.filter { $0.key != receiver }.map(\.value)
    }
  }

  private func act(_ action: MailboxMachine.Action, for receiver: Int) -> ReceiverWork? {
    switch action {
    case .wait, .yield: break
    case .recover: recover()
    case .list: list()
    case .peek(let name): return peek(name, for: receiver).map { .file($0) }
    case .claim(let name): return claim(name, for: receiver).map { .file($0) }
    case .reclaim(let claimed): return reclaim(claimed, for: receiver).map { .file($0) }
    case .again(let name, let index):
      return takeUp(name, for: receiver)?.again(index).map { .message($0) }
    case .end(let name):
      state.withLock { $0.open[name]?.delivery }?.settle()
    }
    return nil
  }

  /// Changes the machine's state, and makes all idle receivers ask the machine again.
  @discardableResult
  func tell<Result>(_ change: (inout MailboxMachine) -> Result) -> Result {
    triggering { change(&$0.machine) }
  }

  /// Changes the state, and makes all idle receivers ask the machine again.
  func triggering<Result>(_ change: (inout State) -> Result) -> Result {
    let (result, runners) = state.withLock { state in
      (change(&state), Array(state.receivers.values))
    }
    for runner in runners { runner.trigger() }
    return result
  }

  /// The end of the pause after the system has refused an operation.
  var pause: Int64 { now + 1_000_000_000 }

  private func recover() {
    do throws(Errno) {
      let claimed = try home.claimedNames()
      progress.withLock { $0 }?.forgetInherited(but: claimed.map(\.name))
      let found = claimed.map { claimed in
        MailboxMachine.Leftover(
          claimed: claimed, kind: content(of: claimed.text, in: .claimed).flatMap(label))
      }
      tell { $0.recovered(found) }
    } catch {
      home.log(.error, "cannot list claimed messages of", error)
      tell { $0.recoveryFailed(until: pause) }
    }
  }

  /// The present time as a stamp.
  private var stamp: MessageStamp {
    MessageStamp(epoch: epoch, nanoseconds: home.container.options.environment.sinceBoot())
  }

  private func list() {
    let began = Instant.now
    defer { inbox.looked(since: began) }
    let start = stamp
    var listing = state.withLock {
      InboxListing(window: $0.machine.settings.window, skipping: $0.machine.skipping)
    }
    do throws(Errno) {
      try home.list(.inbox) { listing.add($0) }
      let here = arrived(listing.finish(), before: start)
      let over = stamp
      let effort = (Instant.now - began).inNanoseconds
      let awaited = tell {
        $0.listed(
          here, before: start, now: over, end: listing.end, shown: listing.shown,
          listAgain: now + 50 * effort)
      }
      if let awaited { lookAgain(at: awaited, from: over) }
    } catch {
      home.log(.error, "cannot list the inbox of", error)
      tell { $0.listingFailed(until: pause) }
    }
  }

  /// Makes all receivers list again at a moment that some sender's clock has reached already.
  private func lookAgain(at moment: MessageStamp, from now: MessageStamp) {
    let isFirst = state.withLock { state in
      defer { state.awaited = state.awaited ?? moment }
      return state.awaited == nil
    }
    guard isFirst else { return }
    container.background.soon(after: .nanoseconds(moment.nanoseconds - now.nanoseconds)) {
      [weak self] in
      guard let self else { return }
      state.withLock { $0.awaited = nil }
      wake(urgent: true)
    }
  }

  /// Reads the kind, and claims the message if this receiver is to have it.
  ///
  /// The content read for the kind stays valid after the claim, as a message's file never changes.
  private func peek(_ name: MessageName, for receiver: Int) -> OpenedMessage? {
    let bytes = content(of: name.text, in: .inbox)
    let label = bytes.flatMap(label)
    let isMine = tell { $0.peeked(name, kind: label, by: receiver) }
    if let label, label.hasFile, !state.withLock({ $0.machine.isWanted(label) }) {
      log(
        .notice,
        "message '\(name.id)' to '\(home.name)' waits: the message has a file, and no receiver "
          + "of this process accepts files", name)
    }
    return isMine ? claim(name, bytes, for: receiver) : nil
  }

  private func content(of file: String, in part: MemberDirectory.Part) -> [UInt8]? {
    guard case .sound(let bytes, _)? = try? home.read(file, in: part, "read message") else {
      return nil
    }
    return bytes
  }

  private func label(of bytes: [UInt8]) -> MessageLabel? {
    let decoder = BinaryDecoder(limits: container.options.limits)
    return (try? MessageFile.Document(bytes, decoder))?.header.label
  }
}

extension Member {
  var mailbox: Mailbox { services.get { Mailbox(container, home, epoch: joined.epoch) } }
}

/// Recreates an inbox that was removed, or moved away, while it was watched.
extension Mailbox {
  /// How long the member's directory must stay unchanged before its inbox is made again.
  ///
  /// A program that is removing the whole directory would find it not empty. A sender that arrives
  /// first also makes the inbox.
  private static let pause = Duration.milliseconds(200)

  /// Makes the inbox again after the last removal there; the watch is notified of it.
  func remakeInbox() { remakeInbox(unlessChangedSince: home.lastChange) }

  private func remakeInbox(unlessChangedSince change: Int64?) {
    container.background.soon(after: Self.pause) { [weak self] in
      guard let self, !isClosed, !home.isStale else { return }
      let latest = home.lastChange
      guard latest == change else { return remakeInbox(unlessChangedSince: latest) }
      do throws(Errno) {
        _ = try home.part(.inbox)
        log(.warning, "the inbox of '\(home.name)' was removed, and has been created again")
      } catch {
        log(.error, "cannot create the inbox of '\(home.name)' again: \(error)", because: error)
      }
    }
  }
}

extension Mailbox {
  /// Returns the messages of a listing, without the messages that the link holds back.
  func arrived(_ names: [MessageName], before start: MessageStamp) -> [MessageName] {
    guard let link = container.options.link else { return names }
    // The listing of later messages may be incomplete, and is repeated.
    let all = names.sorted()
    let settled = all.filter { $0.stamp < start }
    let here = link.haveArrived(settled.map { LinkLetter($0, to: home.name) }) { [weak self] in
      self?.wake(urgent: true)
    }
    return zip(settled, here).filter(\.1).map(\.0) + all.filter { $0.stamp >= start }
  }

  /// Returns whether the link redelivers a message, as if this process had died before its
  /// acknowledgement.
  func isAcknowledgementLost(_ name: MessageName, _ place: Int) -> Bool {
    guard hasLink, let link = container.options.link, attempts > 1 else { return false }
    return link.losesAcknowledgement(of: LinkLetter(name, to: home.name), place: place)
  }
}
