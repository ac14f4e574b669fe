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
  private let held = Monitor(HeldServices())
  private let machine: Monitor<Machine>
  /// One listing of the folder at a time: all listings share the descriptor's read offset.
  private let listing = Monitor(0)
  private let relisting = Worker(staysOffWatcher: false)
  /// Only losses go to its worker, which lists: names go to the state machine at once.
  private let notices: NoticedFolder
  private let answerRunner = Worker(staysOffWatcher: false)
  private let takingAnswers = Monitor(0)
  private let otherRunner = Worker(staysOffWatcher: false)
  /// Whether the exchange is closed; locked while the folders of earlier incarnations are removed.
  private let sweeping = Monitor(false)
  let askers: LiveFolders
  /// The subscriptions, each until it is stopped or the member leaves.
  let begun: ActiveSubscriptions
  /// Takes requests and messages in place of the handlers, for a carrier.
  private let carry: MessageForwarder?

  /// What the exchange holds until it is closed.
  private struct HeldServices {
    var linkWatching: (any AnyObject & Sendable)?
    var endWatch: NamedWatch?
    var threadHold: ThreadHold?
  }

  /// A closure that replies to a request.
  typealias Replier = @Sendable (Request) -> Void
  /// A closure that returns whether it has taken the message; nil if it was stopped before.
  typealias MessageHandler = @Sendable (ImmediateMessage) -> Bool?
  typealias MessageForwarder = @Sendable (LiveMailbox, LiveName, LiveMessage) -> Void
  private typealias Machine = LiveMachine<LiveMessage, Replier, MessageHandler>

  init(
    _ container: SharedContainer, _ home: MemberDirectory, _ folder: OpenDirectory,
    _ incarnation: Incarnation, mark: String, carry: MessageForwarder? = nil
  ) {
    self.container = container
    self.home = home
    self.folder = folder
    self.incarnation = incarnation
    notices = NoticedFolder(relisting)
    (self.mark, self.carry) = (mark, carry)
    begun = ActiveSubscriptions(container.directory)
    let asking = PendingReplies(container.options.time)
    self.asking = asking
    peers = LivePeers(container, asking, of: home.name)
    askers = LiveFolders(container.storage)
    machine = Monitor(
      Machine(
        youngUntil: .now + container.options.youth,
        mostEarlyBytes: container.options.maximumValueBytes))
  }

  /// Begins to listen.
  ///
  /// Deadlines and later attempts need a thread. The thread is started here: a process without the
  /// thread does not join.
  func begin() throws(WormholeError) {
    try naming("receive immediate messages as", home.name) { () throws(Errno) in
      let hold = try CallThreads.background.hold()
      held.withLock { $0.threadHold = hold }
    }
    peers.beforeLoss.withLock { $0 = ReplyTaker { [weak self] in self?.takeAnswers() ?? .allRead } }
    answerRunner.begin { [weak self] in self?.handleAnswers() }
    otherRunner.begin { [weak self] in self?.handleOthers() }
    relisting.begin { [weak self] in self?.list() }
    try naming("receive immediate messages as", home.name, at: home) { () throws(Errno) in
      try notices.begin { relist throws(Errno) in
        try Watcher.shared.watch(
          folder.descriptor, [.movedTo, .created], keeping: folder
        ) { [weak self] signal in self?.hear(signal, relist) }
      }
    }
    let linkWatching = container.options.link?.watch { [weak peers] in peers?.lookAtLink() }
    held.withLock { $0.linkWatching = linkWatching }
    sweep()
    list()
  }

  /// Removes the folders of earlier incarnations; repeats this if the system refuses it for now.
  private func sweep(again pause: Duration = .seconds(1)) {
    let isDone = sweeping.withLock { isClosed in isClosed || home.sweepLive(but: incarnation) }
    guard !isDone else { return }
    container.background.soon(after: pause) { [weak self] in
      self?.sweep(again: min(pause * 2, .seconds(60)))
    }
  }

  /// Calls a closure if the container is removed or moved away.
  func watchEnd(_ ended: @escaping @Sendable (WormholeError) -> Void) throws(WormholeError) {
    let name = home.name
    let watch = try container.storage.watchEnd { end in
      // On another thread: the closure may wait for subscriptions of this member.
      CallThreads.background.add { ended(end.error("remain joined as", name)) }
    }
    held.withLock { $0.endWatch = watch }
  }

  /// Ends the exchange; each pending request fails with ``hasLeft(_:)``.
  func close() {
    machine.withLock { $0.close() }
    // The next incarnation may make its folder after the close.
    sweeping.withLock { $0 = true }
    let held = held.withLock { exchange(&$0, with: HeldServices()) }
    held.endWatch?.stop()
    notices.stop()
    answerRunner.end()
    otherRunner.end()
    relisting.end()
    peers.close()
    asking.close { hasLeft($0) }
    withExtendedLifetime(held) {}
    try? home.removeLive(incarnation)
  }

  /// The error of the requests that are pending when the member leaves.
  func hasLeft(_ operation: String) -> WormholeError {
    WormholeError(.unreachable, operation, home.name, because: "the requesting member has left")
  }

  // MARK: Arrivals

  private func hear(_ signal: WatchSignal, _ relist: (WatchSignal) -> Void) {
    switch signal {
    case .changed(let names):
      let names = names.compactMap { LiveName($0) }
      arrive { $0.notice(names) }
    case .lookAgain, .replaced, .gone:
      machine.withLock { $0.arrivals.lose() }
      // Not on the notifying thread, since the file system may not respond.
      relist(.lookAgain)
    }
  }

  func list() {
    let clock = container.options.environment.sinceBoot
    let losses = machine.withLock { $0.arrivals.losses }
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
    if !machine.withLock({ $0.isClosed }) { notices.retry() }
  }

  private func names() throws(Errno) -> [LiveName] {
    let names = try listing.withLock { _ throws(Errno) in try folder.descriptor.names() }
    return names.compactMap { LiveName($0) }
  }

  private func arrive(_ takeIn: (inout LiveArrivals) -> Void) {
    let (hasAnswers, hasOthers) = machine.withLock { machine in
      takeIn(&machine.arrivals)
      return (machine.arrivals.hasAnswers, machine.arrivals.hasOthers)
    }
    if hasAnswers { answerRunner.trigger() }
    if hasOthers { otherRunner.trigger() }
  }

  private func log(_ level: LogLevel, _ text: String) {
    container.log(level, text, about: LogSubject(member: home.name))
  }

  /// Reads a file and removes it.
  ///
  /// A reply counts even if its file stays: a second reply to a request has no effect. All else
  /// stays unread with its file, which its sender may withdraw.
  ///
  /// - Returns: nil for a file that is gone, or that no process can use; throws if a later read may
  ///   succeed.
  private func content(of name: LiveName) throws(WormholeError) -> [UInt8]? {
    do throws(WormholeError) {
      let mayStay = name.letter.isAnswer
      switch try container.storage.take(name.text, from: folder, mayStay: mayStay) {
      case .sound(let bytes, _)?: return bytes
      case .damaged(let reason, _)?:
        log(.error, "dropped a message to '\(home.name)': its file is damaged: \(reason)")
      case .missing?, nil: break
      }
    } catch {
      container.log(.error, error, about: LogSubject(member: home.name))
      // On a full disk, some file systems cannot remove a file.
      guard error.mayPass || error.code == .full else { return nil }
      // The file remains, and no further notice will report it.
      listLater()
      throw error
    }
    return nil
  }

  private func handleAnswers() {
    while true {
      let names = machine.withLock { $0.arrivals.takeAnswers() }
      if names.isEmpty { return }
      for name in names { takeAnswer(name) }
    }
  }

  /// - Returns: false if the reply cannot be read for the moment.
  @discardableResult
  private func takeAnswer(_ name: LiveName) -> Bool {
    // A reply in the process of being read counts before the notice of its sender's end.
    takingAnswers.withLock { _ in readAnswer(name) }
  }

  private func readAnswer(_ name: LiveName) -> Bool {
    // The reply is too late, or was taken already.
    guard asking.peer(asked: name.id) != nil else {
      try? folder.descriptor.unlink(name.text)
      return true
    }
    let found: LiveAnswer?
    do throws(WormholeError) {
      found = try answer(of: name)
    } catch {
      return false
    }
    guard let found else { return true }
    guard let link = container.options.link else {
      asking.answer(name.id, found)
      return true
    }
    // No handler may delay a reply.
    let from = asking.peer(asked: name.id)
    link.carry(LinkLetter(name, from: from, to: home.name)) { [weak self] in
      self?.asking.answer(name.id, found)
    }
    return true
  }

  private func answer(of name: LiveName) throws(WormholeError) -> LiveAnswer? {
    guard let word = name.letter.word else { return try content(of: name).map { .content($0) } }
    // The reply is the name; the content of such a file is not read.
    try? folder.descriptor.unlink(name.text)
    return .word(word)
  }

  /// Takes all replies in the folder, and waits for replies that are being taken.
  ///
  /// - Returns: the requests whose replies may be left, because the system has refused a step for
  ///   the moment.
  func takeAnswers() -> UnreadReplies {
    takingAnswers.withLock { _ in }
    do throws(Errno) {
      let answers = try names().filter(\.letter.isAnswer)
      return .known(Set(answers.filter { !takeAnswer($0) }.map(\.id)))
    } catch {
      log(.warning, "cannot list replies to '\(home.name)': \(error)")
      return WormholeError(error, "list replies to", home.name).mayPass ? .unknown : .allRead
    }
  }

  private func handleOthers() {
    while let work = machine.withLock({ $0.next(now: .now) }) {
      switch work {
      case .read(let name): take(name)
      case .deliver(let arrival): handle(arrival)
      }
    }
  }

  private func take(_ name: LiveName) {
    if let deadline = name.deadline, deadline <= container.options.time.sinceBoot {
      try? folder.descriptor.unlink(name.text)
      return log(.info, "dropped a message to '\(home.name)': its deadline has passed")
    }
    guard let bytes = try? content(of: name) else { return }
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
    let arrival = Machine.Arrival(name: name, content: core, kind: header.kind, size: core.size)
    guard let link = container.options.link else { return handle(arrival) }
    link.carry(LinkLetter(name, from: core.from, to: home.name)) { [weak self] in
      guard let self else { return }
      machine.withLock { $0.carry(arrival) }
      otherRunner.trigger()
    }
  }

  private func handle(_ arrival: Machine.Arrival) {
    let (name, core, kind) = (arrival.name, arrival.content, arrival.kind)
    guard !core.isLate else { return core.tellLate() }
    if let carry { return carry(self, name, core) }
    switch machine.withLock({ $0.taker(of: arrival, now: .now) }) {
    case .later: otherRunner.trigger(at: machine.withLock { $0.youngUntil })
    case .hearing(let calls):
      hand(ImmediateMessage(core), to: calls, name)
    case .answering(let answering):
      answering(Request(core, from: LiveRequester(live: self, id: name.id)))
    case .nobody where name.letter == .confirmed: refuse(name, core, hasNoHandler(for: kind))
    case .nobody where name.letter == .message:
      log(.debug, "dropped an immediate message of kind '\(kind)': no handler receives this kind")
    case .nobody:
      Request(core, from: LiveRequester(live: self, id: name.id))
        .refuse("'\(home.name)' has no handler for requests of kind '\(kind)'")
    }
  }

  private func hand(_ message: ImmediateMessage, to calls: [MessageHandler], _ name: LiveName) {
    let core = message.core
    defer { machine.signal { $0.delivered() } }
    var results: Set<Bool?> = []
    // Each previous call may have taken long.
    for call in calls {
      if core.isLate { return core.tellLate() }
      results.insert(call(message))
    }
    guard name.letter == .confirmed else { return }
    if results.contains(true) { return reply(name, core) { .word(true) } }
    // Stopped handlers are like none.
    refuse(name, core, results == [nil] ? hasNoHandler(for: message.kind) : Self.tooMuch)
  }

  private func hasNoHandler(for kind: String) -> String {
    "'\(home.name)' has no handler for immediate messages of kind '\(kind)'"
  }

  /// Waits until the senders of delivered messages have been sent their confirmations.
  func settle() { _ = machine.wait(until: nil) { $0.delivering == 0 ? true : nil } }

  /// The number of arrivals kept for handlers that may still be registered.
  var earlyCount: Int { machine.withLock { $0.earlyCount } }

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

  func add(answering kind: String?, _ call: @escaping Replier) -> Int {
    add { $0.add(answering: kind, call) }
  }

  func add(hearing kinds: Set<String>?, _ call: @escaping MessageHandler) -> Int {
    add { $0.add(hearing: kinds, call) }
  }

  private func add(_ handler: (inout Machine) -> Int) -> Int {
    if isDeaf { return 0 }
    let (number, isDue) = machine.withLock { machine in
      (handler(&machine), machine.deliverEarly())
    }
    if isDue { otherRunner.trigger() }
    return number
  }

  func remove(_ number: Int) {
    let released = machine.withLock { $0.remove(number) }
    withExtendedLifetime(released) {}
  }
}
