internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The immediate exchange of one member, or one guest, with running processes (P5): requests in
/// both directions, and immediate messages.
///
/// Each incarnation has one folder. When its process has ended, no process reads the folder any
/// more. Every arrival is a file in the folder, with its kind in the name; the file is read and
/// removed. Replies are taken separately from the rest: a handler must not block a reply for which
/// the handler itself waits.
final class LiveMailbox: Service {
  let container: SharedContainer
  let incarnation: Incarnation
  /// The folder's name for other processes: the escaped name of a member, or the mark of a guest.
  let mark: String
  let asking: PendingReplies
  let peers: LivePeers
  let home: MemberDirectory
  private let folder: OpenDirectory
  private let watch = Monitor<Watch?>(nil)
  private let linkWatching = Monitor<(any AnyObject & Sendable)?>(nil)
  private let arrived = Monitor(LiveArrivals())
  /// One listing of the folder at a time: all listings share the descriptor's read offset.
  private let listing = Monitor(0)
  private let relisting = Worker(on: WorkQueue())
  /// The requests and messages that a link has let through.
  private let carried = Monitor<[(LiveName, LiveMessage)]>([])
  private let answerRunner = Worker(on: WorkQueue())
  private let takingAnswers = Monitor(0)
  private let otherRunner = Worker(on: WorkQueue())
  private let handlers = Monitor(Handlers())
  let askers: LiveFolders
  /// The number of messages that are being delivered to handlers.
  private let confirming = Monitor(0)
  /// The subscriptions, each until it is stopped or the member leaves.
  let begun: ActiveSubscriptions
  private let endWatch = Monitor<NamedWatch?>(nil)
  private let threadHold = Monitor<ThreadHold?>(nil)
  /// Takes requests and messages in place of the handlers, for a carrier.
  private let carry: Carrying?

  private struct Handlers {
    var next = 0
    /// By kind, or nil for all kinds without a handler of their own; the latest handler counts.
    var answering: [String?: [(Int, Answering)]] = [:]
    var hearing: [Int: (kinds: Set<String>?, call: @Sendable (ImmediateMessage) -> Bool)] =
      [:]
    /// Arrivals for which no handler was registered yet.
    var early: [(LiveName, LiveMessage)] = []
    var earlyBytes = 0
    /// Whether the early arrivals are to be handled again.
    var isEarlyDue = false
  }

  /// The end of the time in which arrivals without a handler are kept, in case a handler is
  /// registered.
  ///
  /// Other processes see a new member before the member can have registered its handlers, above all
  /// the processes that have woken it.
  private let youngUntil: Instant
  /// The largest number of early arrivals.
  private static let mostEarly = 1000

  /// A closure that replies to a request.
  typealias Answering = @Sendable (Request) -> Void
  typealias Carrying = @Sendable (LiveMailbox, LiveName, LiveMessage) -> Void

  init(
    _ container: SharedContainer, _ home: MemberDirectory, _ folder: OpenDirectory,
    _ incarnation: Incarnation, mark: String, carry: Carrying? = nil
  ) {
    self.container = container
    self.home = home
    self.folder = folder
    self.incarnation = incarnation
    (self.mark, self.carry) = (mark, carry)
    begun = ActiveSubscriptions(container.directory)
    let asking = PendingReplies(container.options.time)
    self.asking = asking
    peers = LivePeers(container, asking, of: home.name)
    askers = LiveFolders(container.storage)
    youngUntil = .now + container.options.youth
  }

  /// Begins to listen.
  ///
  /// Deadlines and later attempts need a thread. The thread is started here: a process without the
  /// thread does not join.
  func begin() throws(WormholeError) {
    do throws(Errno) {
      let hold = try CallThreads.background.hold()
      threadHold.withLock { $0 = hold }
    } catch {
      throw WormholeError(error, "receive immediate messages as", home.name)
    }
    peers.beforeLoss.withLock { $0 = Action { [weak self] in self?.takeAnswers() } }
    answerRunner.begin { [weak self] in self?.handleAnswers() }
    otherRunner.begin { [weak self] in self?.handleOthers() }
    relisting.begin { [weak self] in self?.list() }
    do throws(Errno) {
      let watch = try Watcher.shared.watch(
        folder.descriptor, [.movedTo, .created], keeping: folder
      ) { [weak self] signal in self?.hear(signal) }
      self.watch.withLock { $0 = watch }
    } catch {
      throw WormholeError(error, "receive immediate messages as", home.name, at: home)
    }
    linkWatching.withLock { watching in
      watching = container.options.link?.watch { [weak peers] in peers?.lookAtLink() }
    }
    list()
  }

  /// Calls a closure if the container is removed or moved away.
  func watchEnd(_ ended: @escaping @Sendable (WormholeError) -> Void) throws(WormholeError) {
    let name = home.name
    let watch = try container.storage.watchEnd { end in
      // On another thread: the closure may wait for subscriptions of this member.
      CallThreads.background.add { ended(end.error("remain joined as", name)) }
    }
    endWatch.withLock { $0 = watch }
  }

  /// Ends the exchange; each pending request fails with ``hasLeft``.
  func close() {
    endWatch.withLock { $0.take() }?.stop()
    watch.withLock { $0.take() }?.stop()
    linkWatching.withLock { $0 = nil }
    answerRunner.end()
    otherRunner.end()
    relisting.end()
    peers.close()
    asking.close(hasLeft)
    threadHold.withLock { $0 = nil }
    try? home.removeLive(incarnation)
  }

  /// The error of the requests that are pending when the member leaves.
  var hasLeft: WormholeError {
    WormholeError(
      .unreachable, OutgoingRequest.operation, home.name,
      because: "the requesting member has left")
  }

  // MARK: Arrivals

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      let names = names.compactMap { LiveName($0) }
      arrive { $0.notice(names) }
    case .lookAgain, .replaced, .gone:
      arrived.withLock { $0.lose() }
      // Not on the notifying thread, since the file system may not respond.
      relisting.trigger()
    }
  }

  func list() {
    let clock = container.options.environment.sinceBoot
    let losses = arrived.withLock { $0.losses }
    let began = clock()
    do throws(Errno) {
      let names = try names()
      let ended = clock()
      arrive { $0.find(names, from: began, to: ended, losses: losses) }
    } catch {
      log(.warning, "cannot list immediate messages for '\(home.name)': \(error)")
      listLater()
    }
  }

  private func listLater() {
    if watch.withLock({ $0 != nil }) { relisting.retry() }
  }

  private func names() throws(Errno) -> [LiveName] {
    let names = try listing.withLock { _ throws(Errno) in try folder.descriptor.names() }
    return names.compactMap { LiveName($0) }
  }

  private func arrive(_ takeIn: (inout LiveArrivals) -> Void) {
    let (hasAnswers, hasOthers) = arrived.withLock { arrived in
      takeIn(&arrived)
      return (arrived.hasAnswers, arrived.hasOthers)
    }
    if hasAnswers { answerRunner.trigger() }
    if hasOthers { otherRunner.trigger() }
  }

  private func log(_ level: LogLevel, _ text: String) {
    container.log(level, text, about: LogSubject(member: home.name))
  }

  private func content(of name: LiveName) -> [UInt8]? {
    do throws(WormholeError) {
      switch try container.storage.take(name.text, from: folder) {
      case .sound(let bytes, _)?: return bytes
      case .damaged(let reason, _)?:
        log(.error, "dropped a message to '\(home.name)': its file is damaged: \(reason)")
      case .missing?, nil: break
      }
    } catch {
      container.log(.error, error, about: LogSubject(member: home.name))
      // The file remains, and no further notice will report it.
      if error.mayPass { listLater() }
    }
    return nil
  }

  private func handleAnswers() {
    while true {
      let names = arrived.withLock { $0.takeAnswers() }
      if names.isEmpty { return }
      for name in names { takeAnswer(name) }
    }
  }

  private func takeAnswer(_ name: LiveName) {
    // A reply in the process of being read counts before the notice of its sender's end.
    takingAnswers.withLock { _ in
      // The reply is too late, or was taken already.
      guard asking.peer(asked: name.id) != nil else {
        try? folder.descriptor.unlink(name.text)
        return
      }
      guard let answer = answer(of: name) else { return }
      guard let link = container.options.link else { return asking.answer(name.id, answer) }
      // No handler may delay a reply.
      let from = asking.peer(asked: name.id)
      link.carry(LinkLetter(name, from: from, to: home.name)) { [weak self] in
        self?.asking.answer(name.id, answer)
      }
    }
  }

  private func answer(of name: LiveName) -> LiveAnswer? {
    guard let word = name.letter.word else { return content(of: name).map { .content($0) } }
    // The reply is the name; the content of such a file is not read.
    try? folder.descriptor.unlink(name.text)
    return .word(word)
  }

  /// Takes all replies in the folder, and waits for replies that are being taken.
  func takeAnswers() {
    takingAnswers.withLock { _ in }
    for name in (try? names()) ?? [] where name.letter.isAnswer { takeAnswer(name) }
  }

  private func handleOthers() {
    while true {
      let names = arrived.withLock { $0.takeOthers() }
      let carried = carried.withLock { carried in
        defer { carried = [] }
        return carried
      }
      if !handleEarly(), names.isEmpty, carried.isEmpty { return }
      for (name, core) in carried { handle(name, core) }
      for name in names {
        // Early arrivals are handled before later arrivals.
        if !Mutants.has(.overtakeEarly) { _ = handleEarly() }
        take(name)
      }
    }
  }

  private func take(_ name: LiveName) {
    if let deadline = name.deadline, deadline <= container.options.time.sinceBoot {
      try? folder.descriptor.unlink(name.text)
      return log(.info, "dropped a message to '\(home.name)': its deadline has passed")
    }
    guard let bytes = content(of: name) else { return }
    guard let core = try? LiveMessage(container, bytes) else {
      return log(.error, "dropped a message to '\(home.name)': its file has an unknown format")
    }
    let header = core.header
    if let complaint = header.headers?.complaint(of: "a '\(header.kind)' message") {
      log(.warning, complaint)
    }
    // The check is worth its cost only if the request has waited because this process was busy.
    if name.letter == .question, hasWaited(name), askers.isGone(header.from, header.incarnation) {
      return log(
        .info, "dropped a '\(header.kind)' request to '\(home.name)': the requester has ended")
    }
    guard let link = container.options.link else { return handle(name, core) }
    link.carry(LinkLetter(name, from: core.from, to: home.name)) { [weak self] in
      guard let self else { return }
      carried.withLock { $0.append((name, core)) }
      otherRunner.trigger()
    }
  }

  private func handle(_ name: LiveName, _ core: LiveMessage) {
    let kind = core.header.kind
    guard !core.isLate else { return core.tellLate() }
    if let carry { return carry(self, name, core) }
    switch taker(of: name, core) {
    case .later: otherRunner.trigger(at: youngUntil)
    case .hearing(let calls):
      hand(ImmediateMessage(core), to: calls, name)
    case .answering(let answering):
      answering(Request(core, from: LiveRequester(live: self, id: name.id)))
    case .nobody where name.letter == .confirmed:
      refuse(name, core, "'\(home.name)' has no handler for immediate messages of kind '\(kind)'")
    case .nobody where name.letter == .message:
      log(.debug, "dropped an immediate message of kind '\(kind)': no handler receives this kind")
    case .nobody:
      Request(core, from: LiveRequester(live: self, id: name.id))
        .refuse("'\(home.name)' has no handler for requests of kind '\(kind)'")
    }
  }

  private func hand(
    _ message: ImmediateMessage,
    to calls: [@Sendable (ImmediateMessage) -> Bool], _ name: LiveName
  ) {
    let core = message.core
    confirming.withLock { $0 += 1 }
    defer { confirming.signal { $0 -= 1 } }
    var isHeard = false
    // Each previous call may have taken long.
    for call in calls {
      if core.isLate { return core.tellLate() }
      if call(message) { isHeard = true }
    }
    guard name.letter == .confirmed else { return }
    guard isHeard else { return refuse(name, core, Self.tooMuch) }
    reply(name, core) { .word(true) }
  }

  /// Waits until the senders of delivered messages have been sent their confirmations.
  func settle() { _ = confirming.wait(until: nil) { $0 == 0 ? true : nil } }

  private enum Taker {
    case answering(Answering)
    case hearing([@Sendable (ImmediateMessage) -> Bool])
    /// The arrival is kept until a handler is registered, or until its time is over.
    case later
    case nobody
  }

  private func taker(of name: LiveName, _ core: LiveMessage) -> Taker {
    handlers.withLock { handlers in
      let kind = core.header.kind
      // Earlier arrivals of this kind may still wait, if their handler was registered just now.
      let isBehind = handlers.early.contains {
        $0.0.letter.isMessage == name.letter.isMessage && $0.1.header.kind == kind
      }
      if !isBehind, name.letter.isMessage {
        let calls = handlers.hearing.values.filter { $0.kinds?.contains(kind) ?? true }
        if !calls.isEmpty { return .hearing(calls.map(\.call)) }
      } else if !isBehind,
        let last = handlers.answering[kind]?.last ?? handlers.answering[nil]?.last
      {
        return .answering(last.1)
      }
      guard isBehind || Instant.now < youngUntil, handlers.early.count < Self.mostEarly,
        handlers.early.isEmpty
          || handlers.earlyBytes + core.size <= container.options.maximumValueBytes
      else { return .nobody }
      handlers.early.append((name, core))
      handlers.earlyBytes += core.size
      return .later
    }
  }

  /// The number of arrivals kept for handlers that may still be registered.
  var earlyCount: Int { handlers.withLock { $0.early.count } }

  /// Has the early arrivals handled again.
  private func lookAtEarly() {
    let isDue = handlers.withLock { handlers in
      handlers.isEarlyDue = !handlers.early.isEmpty
      return handlers.isEarlyDue
    }
    if isDue { otherRunner.trigger() }
  }

  /// Handles the early arrivals again if that is due, or if their time is over; returns whether
  /// there were any.
  ///
  /// Only the runner calls this function: no later arrival is delivered in between.
  private func handleEarly() -> Bool {
    let early = handlers.withLock { handlers -> [(LiveName, LiveMessage)] in
      guard handlers.isEarlyDue || Instant.now >= youngUntil else { return [] }
      handlers.isEarlyDue = false
      handlers.earlyBytes = 0
      defer { handlers.early = [] }
      return handlers.early
    }
    for (name, core) in early { handle(name, core) }
    return !early.isEmpty
  }

  // MARK: Handlers

  /// Keeps a subscription of this member until the subscription has ended.
  func subscribe(_ one: any Stoppable) -> Subscription {
    if let subscription = begun.keepIfOpen(one) { return subscription }
    one.stop()
    return Subscription(one, in: begun, hasEnded: true)
  }

  /// Returns whether the process is a forked child, which cannot receive anything.
  private var isDeaf: Bool {
    guard !container.storage.isOwned else { return false }
    log(.error, "\(WormholeError(.ownerDied, "receive immediate messages as", home.name))")
    return true
  }

  func add(answering kind: String?, _ answering: @escaping Answering) -> Int {
    if isDeaf { return 0 }
    let number = handlers.withLock { handlers in
      handlers.next += 1
      handlers.answering[kind, default: []].append((handlers.next, answering))
      return handlers.next
    }
    lookAtEarly()
    return number
  }

  func add(
    hearing kinds: Set<String>?, _ call: @escaping @Sendable (ImmediateMessage) -> Bool
  ) -> Int {
    if isDeaf { return 0 }
    let number = handlers.withLock { handlers in
      handlers.next += 1
      handlers.hearing[handlers.next] = (kinds, call)
      return handlers.next
    }
    lookAtEarly()
    return number
  }

  func remove(_ number: Int) {
    // Released after the lock: the closure's objects may remove another handler when they are
    // released.
    _ = handlers.withLock { handlers in
      let gone = (handlers.hearing.removeValue(forKey: number), handlers.answering)
      let left = gone.1.mapValues { $0.filter { $0.0 != number } }
      handlers.answering = left.filter { !$0.value.isEmpty }
      return gone
    }
  }
}
