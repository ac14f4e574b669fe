internal import Dispatch
internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// What one member, or one guest, does with others that live now (P5): asks and is asked, and hears
/// messages that only make sense at once.
///
/// Everything goes through one folder for each incarnation, which nobody reads any more when its
/// process has ended. What is in it is named by files that come; each is read and removed. Answers
/// are looked at apart from the rest, so that no handler can be in the way of an answer that it
/// waits for.
final class LiveMailbox: Sendable {
  let hole: Wormhole
  let incarnation: Incarnation
  /// As others find this folder: the escaped name of a member, or the mark of a guest.
  let mark: String
  let asking: Asking
  let peers: LivePeers
  let home: MemberDirectory
  private let folder: OpenDirectory
  private let watch = Monitor<Watch?>(nil)
  private let linkWatching = Monitor<(any AnyObject & Sendable)?>(nil)
  private let arrived = Monitor(LiveArrivals())
  /// One listing of the folder at a time: they share the place that it has come to.
  private let listing = Monitor(0)
  private let relisting = Monitor<Errand?>(nil)
  private let later = LaterLook()
  /// What a link has let through.
  private let carried = Monitor<[(LiveName, LiveMessage)]>([])
  private let answerRunner = CoalescingWorker(staysOnQueue: false)
  private let takingAnswers = Monitor(0)
  private let otherRunner = CoalescingWorker(staysOnQueue: false)
  private let handlers = Monitor(Handlers())
  let askers: LiveFolders
  /// How many messages are being handed out.
  private let confirming = Monitor(0)
  /// What goes on until it is stopped, or the member leaves.
  let begun: Begun
  private let endWatch = Monitor<NamedWatch?>(nil)

  private struct Handlers {
    var next = 0
    /// By kind, or nil for all that nobody else answers; the latest counts.
    var answering: [String?: [(Int, Answering)]] = [:]
    var hearing: [Int: (kinds: Set<String>?, call: @Sendable (Wormhole.ImmediateMessage) -> Bool)] =
      [:]
    /// What came before there was anybody for it.
    var early: [(LiveName, LiveMessage)] = []
    var earlyBytes = 0
    /// Whether it is to be gone through once more.
    var isEarlyDue = false
  }

  /// Until when what nobody wants is kept, in case somebody comes who does.
  ///
  /// Others see who has joined before it can have said what it answers, above all those who have
  /// woken it.
  private let youngUntil: Instant
  /// How much is kept.
  private static let mostEarly = 1000
  private static let aging = DispatchQueue(label: "wormhole.early")

  /// What answers a question.
  typealias Answering = @Sendable (Wormhole.Request) -> Void

  init(
    _ hole: Wormhole, _ home: MemberDirectory, _ folder: OpenDirectory, _ incarnation: Incarnation,
    mark: String
  ) {
    self.hole = hole
    self.home = home
    self.folder = folder
    self.incarnation = incarnation
    self.mark = mark
    begun = Begun(hole.directory)
    let asking = Asking(hole.options.time)
    self.asking = asking
    peers = LivePeers(hole, asking, of: home.name)
    askers = LiveFolders(hole.container)
    youngUntil = .now + hole.options.youth
  }

  /// Begins to listen.
  func begin() throws(WormholeError) {
    peers.beforeLoss.withLock { $0 = Action { [weak self] in self?.takeAnswers() } }
    answerRunner.begin { [weak self] in self?.handleAnswers() }
    otherRunner.begin { [weak self] in self?.handleOthers() }
    relisting.withLock { $0 = Errand { [weak self] in self?.list() } }
    do throws(Errno) {
      let watch = try Watcher.shared.watch(
        folder.descriptor, [.movedTo, .created], keeping: folder
      ) { [weak self] signal in self?.hear(signal) }
      self.watch.withLock { $0 = watch }
    } catch {
      throw WormholeError(error, "listen as", home.name)
    }
    linkWatching.withLock { watching in
      watching = hole.options.link?.watch { [weak peers] in peers?.lookAtLink() }
    }
    list()
  }

  /// Tells if the container is removed or moved away.
  func watchEnd(_ ended: @escaping @Sendable (WormholeError) -> Void) throws(WormholeError) {
    let name = home.name
    let watch = try hole.container.watchEnd { end in
      // Elsewhere: whoever has begun something there may be waited for.
      DispatchQueue.global().async { ended(end.error("go on as", name)) }
    }
    endWatch.withLock { $0 = watch }
  }

  /// Ends it; whoever waits for an answer is told.
  func close() {
    endWatch.withLock { $0.take() }?.stop()
    watch.withLock { $0.take() }?.stop()
    linkWatching.withLock { $0 = nil }
    answerRunner.end()
    otherRunner.end()
    peers.close()
    asking.close(hasLeft)
    try? home.removeLive(incarnation)
  }

  /// What those are told who wait for an answer then.
  var hasLeft: WormholeError {
    WormholeError(.unreachable, "ask", home.name, because: "this member has left meanwhile")
  }

  // MARK: Arrivals

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names):
      let names = names.compactMap { LiveName($0) }
      arrive { $0.notice(names) }
    case .lookAgain, .replaced, .gone:
      arrived.withLock { $0.lose() }
      // Not here, where others wait: the file system may not answer.
      relisting.withLock { $0 }?.ask()
    }
  }

  func list() {
    let clock = hole.options.environment.sinceBoot
    let losses = arrived.withLock { $0.losses }
    let began = clock()
    do throws(Errno) {
      let names = try names()
      let ended = clock()
      arrive { $0.find(names, from: began, to: ended, losses: losses) }
    } catch {
      log(.warning, "cannot see what has come for '\(home.name)': \(error)")
      listLater()
    }
  }

  private func listLater() {
    guard watch.withLock({ $0 != nil }) else { return }
    later.plan(on: hole.finding) { [weak self] in self?.relisting.withLock { $0 }?.ask() }
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
    if hasAnswers { answerRunner.kick() }
    if hasOthers { otherRunner.kick() }
  }

  private func log(_ level: LogLevel, _ text: String) {
    hole.log(level, text, about: LogSubject(member: home.name))
  }

  private func content(of name: LiveName) -> [UInt8]? {
    do throws(WormholeError) {
      switch try hole.container.take(name.text, from: folder) {
      case .sound(let bytes, _)?: return bytes
      case .damaged(let reason, _)?:
        log(.error, "dropped something that came for '\(home.name)': it is damaged: \(reason)")
      case .missing?, nil: break
      }
    } catch {
      hole.log(.error, error, about: LogSubject(member: home.name))
      // It lies there still, and nobody tells of it once more.
      if error.mayPass { listLater() }
    }
    return nil
  }

  private func handleAnswers() -> Int64? {
    while true {
      let names = arrived.withLock { $0.takeAnswers() }
      if names.isEmpty { return nil }
      for name in names { takeAnswer(name) }
    }
  }

  private func takeAnswer(_ name: LiveName) {
    // One that is being read counts before the word that its sender has ended.
    takingAnswers.withLock { _ in
      // Too late, or taken already.
      guard asking.peer(asked: name.id) != nil else {
        try? folder.descriptor.unlink(name.text)
        return
      }
      guard let answer = answer(of: name) else { return }
      guard let link = hole.options.link else { return asking.answer(name.id, answer) }
      // No handler may be in the way of an answer.
      let from = asking.peer(asked: name.id)
      link.carry(LinkLetter(name, from: from, to: home.name)) { [weak self] in
        self?.asking.answer(name.id, answer)
      }
    }
  }

  private func answer(of name: LiveName) -> LiveAnswer? {
    guard let word = name.letter.word else { return content(of: name).map { .content($0) } }
    // Whatever lies there under that name is not looked at.
    try? folder.descriptor.unlink(name.text)
    return .word(word)
  }

  /// Takes all answers that are there, and waits for those that are being taken.
  func takeAnswers() {
    takingAnswers.withLock { _ in }
    for name in (try? names()) ?? [] where name.letter.isAnswer { takeAnswer(name) }
  }

  private func handleOthers() -> Int64? {
    while true {
      let names = arrived.withLock { $0.takeOthers() }
      let carried = carried.withLock { carried in
        defer { carried = [] }
        return carried
      }
      if !handleEarly(), names.isEmpty, carried.isEmpty { return nil }
      for (name, core) in carried { handle(name, core) }
      for name in names {
        // What came before somebody wanted it goes before what has come since.
        _ = handleEarly()
        take(name)
      }
    }
  }

  private func take(_ name: LiveName) {
    if let deadline = name.deadline, deadline <= hole.options.time.sinceBoot {
      try? folder.descriptor.unlink(name.text)
      return log(.info, "dropped what came for '\(home.name)' too late")
    }
    guard let bytes = content(of: name) else { return }
    guard let core = try? LiveMessage(hole, bytes) else {
      return log(.error, "dropped something that came for '\(home.name)': of no known form")
    }
    let header = core.header
    // Whoever has nothing else to do need not know.
    if name.letter == .question, hasWaited(name), askers.isGone(header.from, header.incarnation) {
      return log(
        .info, "dropped a '\(header.kind)' that came for '\(home.name)': its asker has ended")
    }
    guard let link = hole.options.link else { return handle(name, core) }
    link.carry(LinkLetter(name, from: core.from, to: home.name)) { [weak self] in
      guard let self else { return }
      carried.withLock { $0.append((name, core)) }
      otherRunner.kick()
    }
  }

  private func hasWaited(_ name: LiveName) -> Bool {
    hole.options.environment.sinceBoot() - name.sent > Duration.milliseconds(10).inNanoseconds
  }

  private func handle(_ name: LiveName, _ core: LiveMessage) {
    let kind = core.header.kind
    guard !core.isLate else { return core.tellLate() }
    switch taker(of: name, core) {
    case .later: break
    case .hearing(let calls):
      hand(Wormhole.ImmediateMessage(core), to: calls, name)
    case .answering(let answering):
      answering(Wormhole.Request(core, id: name.id, self))
    case .nobody where name.letter == .confirmed:
      refuse(name, core, "'\(home.name)' listens for no immediate messages of kind '\(kind)'")
    case .nobody where name.letter == .message:
      log(.debug, "nobody here wants an immediate '\(kind)'; dropped")
    case .nobody:
      Wormhole.Request(core, id: name.id, self)
        .refuse("'\(home.name)' answers no requests of kind '\(kind)'")
    }
  }

  private func hand(
    _ message: Wormhole.ImmediateMessage,
    to calls: [@Sendable (Wormhole.ImmediateMessage) -> Bool], _ name: LiveName
  ) {
    let core = message.core
    confirming.withLock { $0 += 1 }
    defer { confirming.signal { $0 -= 1 } }
    var isHeard = false
    // Each may have taken long.
    for call in calls {
      if core.isLate { return core.tellLate() }
      if call(message) { isHeard = true }
    }
    guard name.letter == .confirmed else { return }
    guard isHeard else { return refuse(name, core, Self.tooMuch) }
    reply(name, core) { .word(true) }
  }

  /// Waits until the senders of what was heard have been told so.
  func settle() { _ = confirming.wait(until: nil) { $0 == 0 ? true : nil } }

  private enum Taker {
    case answering(Answering)
    case hearing([@Sendable (Wormhole.ImmediateMessage) -> Bool])
    /// It is kept until somebody comes, or it is clear that nobody will.
    case later
    case nobody
  }

  private func taker(of name: LiveName, _ core: LiveMessage) -> Taker {
    let (taker, isFirst) = handlers.withLock { handlers -> (Taker, Bool) in
      let kind = core.header.kind
      // What came before it waits still, if somebody has just begun to want it.
      let isBehind = handlers.early.contains {
        $0.0.letter.isMessage == name.letter.isMessage && $0.1.header.kind == kind
      }
      if !isBehind, name.letter.isMessage {
        let calls = handlers.hearing.values.filter { $0.kinds?.contains(kind) ?? true }
        if !calls.isEmpty { return (.hearing(calls.map(\.call)), false) }
      } else if !isBehind,
        let last = handlers.answering[kind]?.last ?? handlers.answering[nil]?.last
      {
        return (.answering(last.1), false)
      }
      guard isBehind || Instant.now < youngUntil, handlers.early.count < Self.mostEarly,
        handlers.early.isEmpty || handlers.earlyBytes + core.size <= hole.options.largestValue
      else { return (.nobody, false) }
      handlers.early.append((name, core))
      handlers.earlyBytes += core.size
      return (.later, handlers.early.count == 1)
    }
    if isFirst {
      let pause = max(0, (youngUntil - .now).inNanoseconds)
      Self.aging.asyncAfter(deadline: .now() + .nanoseconds(Int(pause))) { [weak self] in
        self?.lookAtEarly()
      }
    }
    return taker
  }

  /// How much is kept for those who may still come.
  var earlyCount: Int { handlers.withLock { $0.early.count } }

  /// Has what was kept gone through once more.
  private func lookAtEarly() {
    let isDue = handlers.withLock { handlers in
      handlers.isEarlyDue = !handlers.early.isEmpty
      return handlers.isEarlyDue
    }
    if isDue { otherRunner.kick() }
  }

  /// Goes once more through what was kept, if it is due; whether it was.
  ///
  /// Called by the runner alone, so that nothing that came later is handed out meanwhile.
  private func handleEarly() -> Bool {
    let early = handlers.withLock { handlers -> [(LiveName, LiveMessage)] in
      guard handlers.isEarlyDue else { return [] }
      handlers.isEarlyDue = false
      handlers.earlyBytes = 0
      defer { handlers.early = [] }
      return handlers.early
    }
    for (name, core) in early { handle(name, core) }
    return !early.isEmpty
  }

  // MARK: Those who answer and hear

  /// Keeps something of this member's until it has ended.
  func subscribe(_ one: any Lasting) -> Wormhole.Subscription {
    if let subscription = begun.keepIfOpen(one) { return subscription }
    one.stop()
    return Wormhole.Subscription(one, in: begun, hasEnded: true)
  }

  /// Whether nobody can be heard here any more: in a copy of the process.
  private var isDeaf: Bool {
    guard !hole.container.isOwned else { return false }
    log(
      .error, "'\(home.name)' hears nothing: \(WormholeError(.ownerDied, "listen as", home.name))")
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
    hearing kinds: Set<String>?, _ call: @escaping @Sendable (Wormhole.ImmediateMessage) -> Bool
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
    // Let go of once the lock is free: what a closure refers to may end another one when it goes.
    _ = handlers.withLock { handlers in
      let gone = (handlers.hearing.removeValue(forKey: number), handlers.answering)
      let left = gone.1.mapValues { $0.filter { $0.0 != number } }
      handlers.answering = left.filter { !$0.value.isEmpty }
      return gone
    }
  }
}
