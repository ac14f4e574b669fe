internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A worker of a queue: executes the decisions of ``QueueMachine``.
///
/// Each claim is a rename into the worker's own directory, under a name that no claim ever has
/// twice. All that ends the claim is a rename or removal of exactly this name: acknowledgement,
/// failure, and the return by another worker when this one has ended or the handling deadline has
/// passed. So exactly one of them happens, and a late acknowledgement is refused.
final class QueueWorker: Stoppable {
  let container: SharedContainer
  let epoch: Int
  let settlement: Settlement
  /// The directory with the queue's name.
  let named: MemberDirectory
  /// The directory with the messages.
  let queue: MemberDirectory
  let own: MemberDirectory
  private let presence: Presence
  let settings: MailboxMachine.Settings
  let state = Monitor(State())
  let runner: Worker
  private let patrol: Monitor<QueuePatrol?>
  let keys: KeyClaims
  private let inbox = InboxWatch()
  private let due: DueMessages
  private let watches = Monitor<[NamedWatch]>([])

  struct State {
    var machine = QueueMachine()
    /// The callers that wait for a message, in order.
    var asking: [(ticket: Int, resume: @Sendable () -> Void)] = []
    /// The messages for the callers that were resumed.
    ///
    /// Passed under the lock: the thread sanitizer does not follow data passed between threads with
    /// a continuation.
    var handed: [Int: Message] = [:]
    var lastTicket = 0
    var lastClaim = 0
    /// How many claims have no outcome.
    var inHand = 0
    var isStopped = false
    /// Whether the home of the queue has changed.
    var hasMoved = false
    var hasLeft = false

    /// Removes a caller that no longer waits.
    mutating func takeAsking(_ ticket: Int) -> (@Sendable () -> Void)? {
      guard let index = asking.firstIndex(where: { $0.ticket == ticket }) else { return nil }
      return asking.remove(at: index).resume
    }
  }

  /// Whether the worker may claim a message.
  private let takes: @Sendable (MessageName) throws(Errno) -> Bool

  /// - Parameters:
  ///   - deadline: the time after which another worker may have a message; nil for none.
  ///   - room: how many messages are handled at the same time.
  ///   - takes: whether the worker may claim a message; nil for all.
  init(
    _ name: String, _ container: SharedContainer, deadline: Duration?, room: Int = 1,
    takes: (@Sendable (MemberDirectory, MessageName) throws(Errno) -> Bool)? = nil
  ) throws(WormholeError) {
    let operation = "work on queue"
    try container.storage.checkOwner(operation, name)
    self.container = container
    settings = container.options.mailbox.machine
    let named = try container.storage.member(name, in: .queues)
    self.named = named
    epoch = try container.storage.epoch()
    (queue, own, presence) = try naming(
      operation, name, at: named, Self.makeDirectory(in: named, deadline, room))
    let queue = queue
    self.takes = { (name) throws(Errno) in try takes?(queue, name) ?? true }
    settlement = Settlement(
      container: container, home: queue, claims: own, senders: SenderHomes(container.storage),
      supersession: "the handling deadline has passed, and the message is another worker's")
    keys = KeyClaims(queue)
    due = DueMessages(queue, container, epoch: epoch)
    runner = Worker(staysOffWatcher: false, container.options.time)
    // Two workers do not return a message under the same name.
    let first = UInt64(own.escaped.prefix(8), radix: 16) ?? 0
    state.withLock { $0.lastClaim = Int(first) % ClaimedName.lastClaim }
    patrol = Monitor(nil)
  }

  /// Makes the worker's directory: in the queue, or, if the queue's home is another machine, in
  /// what that machine lends.
  private static func makeDirectory(
    in named: MemberDirectory, _ deadline: Duration?, _ room: Int
  ) throws(Errno) -> (MemberDirectory, MemberDirectory, Presence) {
    if try named.elsewhere == nil {
      let (own, presence) = try named.makeWorker(deadline: deadline)
      // A carrier that makes the queue one of another machine looks for workers afterwards.
      if try named.elsewhere == nil { return (named, own, presence) }
      _ = try own.removeWorker(presence)
    }
    let away = try named.away()
    let (own, presence) = try away.makeWorker(deadline: deadline, room: room)
    return (away, own, presence)
  }

  /// Starts to claim messages for the callers of ``next()``.
  func begin() throws(WormholeError) {
    runner.begin { [weak self] in self?.run() }
    container.sweepFiles(ofQueue: queue, but: own)
    let patrol = QueuePatrol(queue, own.escaped, container)
    self.patrol.withLock { $0 = patrol }
    do throws(Errno) {
      // The messages of dead workers come first.
      try inbox.begin(queue) { [weak self] signal in self?.hear(signal) }
      let watches = [
        try queue.watch(.claimed) { [weak self] signal in self?.hearReturned(signal) },
        try named.watchElsewhere { [weak self] in self?.lookForHome(after: .zero) },
      ]
      self.watches.withLock { $0 = watches }
      try patrol.begin()
      try due.begin()
    } catch {
      stop()
      throw WormholeError(error, "work on queue", queue.name, at: queue)
    }
    runner.trigger()
    // Before the watch, the home may have moved.
    followHome()
  }

  var hasStopped: Bool { state.withLock { $0.isStopped } }

  var now: Int64 { container.options.time.now.nanoseconds }

  private func hear(_ signal: WatchSignal) {
    let isUrgent =
      if case .changed(let names) = signal { names.contains { $0.begins(with: "0") } } else { true }
    state.withLock { state in
      // The names are listed once a handler is free, and the known ones are used up.
      if !isUrgent, state.asking.isEmpty || state.machine.knowsMessages { _ = inbox.pause() }
      state.machine.signal(isUrgent: isUrgent)
    }
    runner.trigger()
  }

  private func hearReturned(_ signal: WatchSignal) {
    state.withLock { state in
      guard case .changed(let names) = signal else { return state.machine.signal(isUrgent: true) }
      for name in names { if let back = ClaimedName(name) { state.machine.came(back: back) } }
    }
    runner.trigger()
  }

  // MARK: Callers

  /// Throws in a forked child, to which no message is delivered.
  func checkOwner() throws(WormholeError) {
    try container.storage.checkOwner("work on queue", queue.name)
  }

  /// Returns the next message; nil once the worker has stopped or the task is cancelled.
  func next() async -> Message? {
    let ticket = newTicket
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in ask(ticket) { continuation.resume() } }
    } onCancel: {
      let asking = state.withLock { $0.takeAsking(ticket) }
      asking?()
    }
    return state.withLock { $0.handed.removeValue(forKey: ticket) }
  }

  var newTicket: Int {
    state.withLock { state in
      state.lastTicket += 1
      return state.lastTicket
    }
  }

  func ask(_ ticket: Int, _ resume: @escaping @Sendable () -> Void) {
    let isLate = state.withLock { state in
      guard !state.isStopped, !Task.isCancelled else { return true }
      state.asking.append((ticket, resume))
      return false
    }
    if isLate { resume() } else { runner.trigger() }
  }

  // MARK: Steps

  private func run() {
    while true {
      let (action, isAsked) = state.withLock { state -> (QueueMachine.Action?, Bool) in
        if inbox.isLookDue { state.machine.signal(isUrgent: true) }
        let isAsked = !state.asking.isEmpty
        return (state.isStopped ? nil : state.machine.next(now: now, isAsked: isAsked), isAsked)
      }
      switch action {
      case nil: return
      case .wait(let due):
        if isAsked, !Mutants.has(.noQueueResume), inbox.resume() {
          // No notice has told of what came during the pause.
          state.withLock { $0.machine.signal(isUrgent: false) }
          continue
        }
        if let due { runner.trigger(at: Instant(nanoseconds: due)) }
        return
      case .list: list()
      case .putBack(let held): putBack(held)
      case .renew(let held): renew(held)
      case .claim(let name): claim(name)
      case .reclaim(let old): reclaim(old)
      }
    }
  }

  private var stamp: MessageStamp {
    MessageStamp(epoch: epoch, nanoseconds: container.storage.options.environment.sinceBoot())
  }

  private func list() {
    let began = Instant.now
    defer { inbox.looked(since: began) }
    let start = stamp
    let (fresh, returned): ([MessageName], [ClaimedName])
    do throws(Errno) {
      returned = try queue.claimedNames()
      fresh = try queue.names(in: .inbox) { MessageName($0) }
    } catch {
      queue.log(.error, "cannot list the messages of queue", error)
      return state.withLock { $0.machine.pause(until: now + 1_000_000_000) }
    }
    let end = stamp
    let awaited = state.withLock {
      $0.machine.listed(fresh: fresh, returned: returned, before: start, now: end)
    }
    guard let awaited else { return }
    later(.nanoseconds(awaited.nanoseconds - end.nanoseconds)) { [weak self] in
      self?.hear(.lookAgain)
    }
  }

  /// The number of a new claim.
  var freshClaim: Int {
    state.withLock { state in
      // A number comes again only after billions of claims, when no holder of the first is left.
      state.lastClaim = state.lastClaim == ClaimedName.lastClaim ? 1 : state.lastClaim + 1
      return state.lastClaim
    }
  }

  /// The highest counted attempt: the name of the file has space for two digits.
  private static let mostAttempts = 60

  private func claim(_ name: MessageName) {
    guard isTaken(name), !mustWait(.fresh(name)) else { return }
    let claimed = ClaimedName(name, attempt: 1, claim: freshClaim)
    take(name.text, from: .inbox, claimed) { worker throws(WormholeError) in
      try worker.open(claimed)
    }
  }

  private func reclaim(_ old: ClaimedName) {
    guard isTaken(old.name), !mustWait(.returned(old)) else { return }
    let isSpent = old.attempt >= settings.attempts
    let claimed =
      isSpent
      ? old.renewed(claim: freshClaim) : old.next(limit: Self.mostAttempts, claim: freshClaim)
    take(old.text, from: .claimed, claimed) { worker throws(WormholeError) in
      guard !isSpent else {
        return worker.giveUp(
          claimed, attempts: old.attempt,
          "each of \(old.attempt) attempts failed or was interrupted")
      }
      try worker.open(claimed)
    }
  }

  private func isTaken(_ name: MessageName) -> Bool {
    do throws(Errno) {
      return try takes(name)
    } catch {
      pause(after: error, name)
      return false
    }
  }

  /// Moves a message to the own claims, and processes it; does nothing if another worker has it.
  private func take(
    _ file: String, from part: MemberDirectory.Part, _ claimed: ClaimedName,
    _ body: (QueueWorker) throws(WormholeError) -> Void
  ) {
    // Counted before the claim: a worker that stops leaves when nothing is in hand.
    state.withLock { $0.inHand += 1 }
    let begun = now
    do throws(Errno) {
      guard try queue.move(file, from: part, to: own, .claimed, as: claimed.text) else {
        return letGo(claimed)
      }
    } catch {
      // A directory is no message, and only its owner may move it.
      let isForeign = (try? queue.status(of: file, in: part))?.kind == .directory
      pause(after: error, claimed.name, isForeign: isForeign)
      return letGo(claimed)
    }
    do throws(WormholeError) {
      guard try isFirstOfKey(claimed) else { return letGo(claimed) }
      try body(self)
    } catch {
      log(.error, error, claimed.name)
      if error.code != .superseded { hold(claimed, .seconds(1), .undone, since: begun) }
      letGo(claimed)
    }
  }

  /// Pauses after a failed claim, unless of a foreign entry: the other names would fail in the same
  /// way.
  func pause(after error: Errno, _ name: MessageName, isForeign: Bool = false) {
    log(.error, WormholeError(error, "claim message", name.id, at: queue), name)
    let moment = now + 1_000_000_000
    state.withLock { isForeign ? $0.machine.skip(until: moment) : $0.machine.pause(until: moment) }
  }

  private func open(_ claimed: ClaimedName) throws(WormholeError) {
    let (operation, begun) = ("read message", now)
    do throws(WormholeError) {
      switch try own.read(claimed.text, in: .claimed, operation) {
      case .missing: return letGo(claimed)
      case .damaged(let reason, _):
        throw WormholeError(
          .damaged, operation, claimed.name.id, because: "the message is damaged: \(reason)")
      case .sound(let bytes, _):
        let limits = container.options.limits
        let contents = try WormholeError.reading(operation, claimed.name.id, of: .message) {
          try Contents(
            claimed.name, MessageFile.Document(bytes, BinaryDecoder(limits: limits)), limits)
        }
        try open(claimed, contents, since: begun)
      }
    } catch {
      // A system error about its own state may pass; an error about the file will not.
      guard error.meansUnreadable else { throw error }
      log(.error, error, claimed.name)
      giveUp(claimed, attempts: claimed.attempt, error.reason, since: begun)
    }
  }

  private func open(
    _ claimed: ClaimedName, _ contents: Contents, since begun: Int64
  ) throws(WormholeError) {
    let header = contents.document.header
    if let complaint = header.headers?.complaint(of: "message '\(claimed.name.id)'") {
      container.log(
        .warning, complaint, about: LogSubject(member: queue.name, message: claimed.name.id))
    }
    let present = Date(sinceEpoch: container.options.environment.sinceEpoch())
    if header.hasExpired(claimed.name, isRepeated: claimed.isRepeated, by: present) {
      return expire(claimed, header)
    }
    guard claimed.name.count == 1, contents.document.count == 1 else {
      throw WormholeError(
        .damaged, "read message", claimed.name.id, because: "a message of a queue has one value")
    }
    try container.verifyFile(of: claimed, header, in: queue) { self.hasStopped }
    let delivery = QueueDelivery(self, claimed, contents, since: begun)
    let message = Message(made: delivery, attempt: claimed.attempt)
    let resume = state.withLock { state -> (@Sendable () -> Void)? in
      guard !state.isStopped, !state.asking.isEmpty else { return nil }
      let asking = state.asking.removeFirst()
      state.handed[asking.ticket] = message
      return asking.resume
    }
    // Claimed for a caller that no longer asks.
    guard let resume else { return message.requeue() }
    patrol.withLock { $0 }?.expectClaim()
    resume()
  }

  // MARK: End

  /// Claims no further message; the claimed ones end with their handlers.
  ///
  /// Waits for a claim in progress: should the process end now, its attempt would count.
  func stop() {
    guard container.storage.isOwned else { return }
    end()
    runner.drain()
    leaveIfDone()
  }

  func end() {
    guard container.storage.isOwned else { return }
    let (asking, handed, held) = state.withLock { state in
      guard !state.isStopped else {
        return ([], [], []) as ([@Sendable () -> Void], [Message], [HeldClaim])
      }
      state.isStopped = true
      defer { (state.asking, state.handed) = ([], [:]) }
      return (
        state.asking.map(\.resume), Array(state.handed.values), state.machine.takeHeld()
      )
    }
    inbox.stop()
    due.stop()
    for one in watches.withLock({ exchange(&$0, with: []) }) { one.stop() }
    patrol.withLock { $0.take() }?.stop()
    runner.end()
    for resume in asking { resume() }
    // The callers have not continued yet: no handler has these messages.
    for message in handed { message.requeue() }
    for one in held { putBack(one) }
  }

  /// Removes the worker's directory once it has stopped and nothing is in hand.
  func leaveIfDone() {
    let isDone = state.withLock { state in
      guard state.isStopped, state.inHand == 0, !state.hasLeft else { return false }
      state.hasLeft = true
      return true
    }
    guard isDone, container.storage.isOwned else { return }
    let failure = Errno.of { () throws(Errno) in _ = try own.removeWorker(presence) }
    if let failure {
      container.log(
        .notice, "cannot remove \(own.path): \(failure)", about: LogSubject(member: queue.name),
        because: failure)
    }
  }

  // No claim is in progress here, which would retain the worker.
  deinit {
    end()
    leaveIfDone()
  }

  func log(_ level: LogLevel, _ error: WormholeError, _ name: MessageName) {
    container.log(level, error, about: LogSubject(member: queue.name, message: name.id))
  }
}
