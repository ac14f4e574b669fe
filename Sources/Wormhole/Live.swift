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
final class Live: Sendable {
  let hole: Wormhole
  let incarnation: String
  /// As others find this folder: the escaped name of a member, or the mark of a guest.
  let mark: String
  let asking: Asking
  let peers: LivePeers
  private let home: MemberDirectory
  private let folder: OpenDirectory
  private let watch = Monitor<Watch?>(nil)
  private let linkWatching = Monitor<(any AnyObject & Sendable)?>(nil)
  private let arrived = Monitor(
    (answers: [LiveName](), others: [LiveName](), early: [(LiveName, LiveArrival)]()))
  /// What a link has let through.
  private let carried = Monitor<[(LiveName, LiveArrival)]>([])
  private let answerRunner = Runner(staysOnQueue: false)
  private let takingAnswers = Monitor(0)
  private let otherRunner = Runner(staysOnQueue: false)
  private let handlers = Monitor(Handlers())
  private let askers: LiveFolders

  private struct Handlers {
    var next = 0
    /// By kind, or nil for all that nobody else answers; the latest counts.
    var answering: [String?: [(Int, Answering)]] = [:]
    var hearing: [Int: (kinds: Set<String>?, call: @Sendable (Wormhole.ImmediateMessage) -> Void)] =
      [:]
    /// What came before there was anybody for it.
    var early: [(LiveName, LiveArrival)] = []
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
    _ hole: Wormhole, _ home: MemberDirectory, _ folder: OpenDirectory, _ incarnation: String,
    mark: String
  ) {
    self.hole = hole
    self.home = home
    self.folder = folder
    self.incarnation = incarnation
    self.mark = mark
    let asking = Asking(hole.options.time)
    self.asking = asking
    peers = LivePeers(hole, asking, of: home.name)
    askers = LiveFolders(hole.container)
    youngUntil = .now + hole.options.youth
  }

  /// Begins to listen.
  func begin() throws(WormholeError) {
    peers.beforeLoss.withLock { $0 = { [weak self] in self?.takeAnswers() } }
    answerRunner.begin { [weak self] in self?.handleAnswers() }
    otherRunner.begin { [weak self] in self?.handleOthers() }
    do throws(Errno) {
      let environment = hole.container.options.environment
      let watch = try Watcher.shared.watch(
        folder.descriptor, .movedTo, mutants: environment.mutants, log: environment.log
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

  /// Ends it; whoever waits for an answer is told.
  func close() {
    watch.withLock { $0.take() }?.stop()
    linkWatching.withLock { $0 = nil }
    answerRunner.end()
    otherRunner.end()
    peers.close()
    asking.failAll(
      WormholeError(.unreachable, "ask", home.name, because: "this member has left meanwhile"))
    try? home.removeLive(incarnation)
  }

  // MARK: Arrivals

  private func hear(_ signal: Watcher.Signal) {
    switch signal {
    case .changed(let names): arrive(names.compactMap { LiveName($0) })
    case .lookAgain, .gone: list()
    }
  }

  private func list() {
    let names = (try? folder.descriptor.names()) ?? []
    // Named by when they were sent; what comes twice is found only once.
    arrive(names.compactMap { LiveName($0) }.sorted { $0.text < $1.text })
  }

  private func arrive(_ names: [LiveName]) {
    let (hasAnswers, hasOthers) = arrived.withLock { arrived in
      for name in names {
        if name.letter == .answer {
          arrived.answers.append(name)
        } else {
          arrived.others.append(name)
        }
      }
      return (!arrived.answers.isEmpty, !arrived.others.isEmpty)
    }
    if hasAnswers { answerRunner.kick() }
    if hasOthers { otherRunner.kick() }
  }

  private func content(of name: LiveName) -> [UInt8]? {
    do throws(WormholeError) {
      switch try hole.container.take(name.text, from: folder) {
      case .sound(let bytes, _)?: return bytes
      case .damaged(let reason, _)?:
        hole.log(.error, "dropped something that came for '\(home.name)': it is damaged: \(reason)")
      case .missing?, nil: break
      }
    } catch {
      hole.log(.error, "\(error)")
    }
    return nil
  }

  private func handleAnswers() -> Int64? {
    while true {
      let names = arrived.withLock { arrived in
        defer { arrived.answers = [] }
        return arrived.answers
      }
      if names.isEmpty { return nil }
      for name in names { takeAnswer(name) }
    }
  }

  private func takeAnswer(_ name: LiveName) {
    // One that is being read counts before the word that its sender has ended.
    takingAnswers.withLock { _ in
      guard let bytes = content(of: name) else { return }
      guard let link = hole.options.link else { return asking.answer(name.id, bytes) }
      // No handler may be in the way of an answer.
      let from = asking.peer(asked: name.id)
      link.carry(LinkLetter(name, from: from, to: home.name)) { [weak self] in
        self?.asking.answer(name.id, bytes)
      }
    }
  }

  /// Takes all answers that are there, and waits for those that are being taken.
  func takeAnswers() {
    takingAnswers.withLock { _ in }
    let names = (try? folder.descriptor.names()) ?? []
    for name in names.compactMap({ LiveName($0) }) where name.letter == .answer {
      takeAnswer(name)
    }
  }

  private func handleOthers() -> Int64? {
    while true {
      let arrived = arrived.withLock { arrived in
        defer { (arrived.others, arrived.early) = ([], []) }
        return (early: arrived.early, others: arrived.others)
      }
      let carried = carried.withLock { carried in
        defer { carried = [] }
        return carried
      }
      if arrived.early.isEmpty, arrived.others.isEmpty, carried.isEmpty { return nil }
      for (name, core) in carried { handle(name, core) }
      for (name, core) in arrived.early { handle(name, core) }
      for name in arrived.others {
        if let bytes = content(of: name) { open(name, bytes) }
      }
    }
  }

  private func open(_ name: LiveName, _ bytes: [UInt8]) {
    let decoder = BinaryDecoder(limits: hole.options.limits)
    guard let header = try? decoder.decode(LiveFile.Header.self, from: bytes) else {
      return hole.log(.error, "dropped something that came for '\(home.name)': of no known form")
    }
    let core = LiveArrival(hole, header, bytes)
    guard let link = hole.options.link else { return handle(name, core) }
    link.carry(LinkLetter(name, from: core.from, to: home.name)) { [weak self] in
      guard let self else { return }
      carried.withLock { $0.append((name, core)) }
      otherRunner.kick()
    }
  }

  private func handle(_ name: LiveName, _ core: LiveArrival) {
    let kind = core.header.kind
    guard hole.options.time.sinceBoot < core.header.deadline else {
      return hole.log(.info, "dropped a '\(kind)' that came for '\(home.name)' too late")
    }
    switch taker(of: name, core) {
    case .later: break
    case .hearing(let calls):
      let message = Wormhole.ImmediateMessage(core)
      for call in calls { call(message) }
    case .answering(let answering):
      answering(Wormhole.Request(core, id: name.id, self))
    case .nobody where name.letter == .message:
      hole.log(.debug, "nobody here wants an immediate '\(kind)'; dropped")
    case .nobody:
      Wormhole.Request(core, id: name.id, self)
        .refuse("'\(home.name)' answers no requests of kind '\(kind)'")
    }
  }

  private enum Taker {
    case answering(Answering)
    case hearing([@Sendable (Wormhole.ImmediateMessage) -> Void])
    /// It is kept until somebody comes, or it is clear that nobody will.
    case later
    case nobody
  }

  private func taker(of name: LiveName, _ core: LiveArrival) -> Taker {
    let (taker, isFirst) = handlers.withLock { handlers -> (Taker, Bool) in
      let kind = core.header.kind
      if name.letter == .message {
        let calls = handlers.hearing.values.filter { $0.kinds?.contains(kind) ?? true }
        if !calls.isEmpty { return (.hearing(calls.map(\.call)), false) }
      } else if let last = handlers.answering[kind]?.last ?? handlers.answering[nil]?.last {
        return (.answering(last.1), false)
      }
      guard Instant.now < youngUntil, handlers.early.count < Self.mostEarly else {
        return (.nobody, false)
      }
      handlers.early.append((name, core))
      return (.later, handlers.early.count == 1)
    }
    if isFirst {
      let pause = max(0, (youngUntil - .now).inNanoseconds)
      Self.aging.asyncAfter(deadline: .now() + .nanoseconds(Int(pause))) { [weak self] in
        self?.handleEarly()
      }
    }
    return taker
  }

  /// How much is kept for those who may still come.
  var earlyCount: Int { handlers.withLock { $0.early.count } }

  /// Goes once more through what was kept.
  private func handleEarly() {
    let early = handlers.withLock { handlers in
      defer { handlers.early = [] }
      return handlers.early
    }
    guard !early.isEmpty else { return }
    arrived.withLock { $0.early += early }
    otherRunner.kick()
  }

  // MARK: Those who answer and hear

  func add(answering kind: String?, _ answering: @escaping Answering) -> Int {
    let number = handlers.withLock { handlers in
      handlers.next += 1
      handlers.answering[kind, default: []].append((handlers.next, answering))
      return handlers.next
    }
    handleEarly()
    return number
  }

  func add(
    hearing kinds: Set<String>?, _ call: @escaping @Sendable (Wormhole.ImmediateMessage) -> Void
  ) -> Int {
    let number = handlers.withLock { handlers in
      handlers.next += 1
      handlers.hearing[handlers.next] = (kinds, call)
      return handlers.next
    }
    handleEarly()
    return number
  }

  func remove(_ number: Int) {
    handlers.withLock { handlers in
      handlers.hearing[number] = nil
      handlers.answering = handlers.answering.mapValues { $0.filter { $0.0 != number } }
        .filter { !$0.value.isEmpty }
    }
  }

  // MARK: Answering

  /// Puts an answer where the asker looks; one that is no more needs none.
  func answer(_ request: LiveFile.Header, _ id: String, _ bytes: [UInt8]) throws(WormholeError) {
    guard let folder = try askers.folder(request.from, request.incarnation) else { return }
    let name = LiveName(MessageStamp(hole.container), .answer, id: id)
    do throws(Errno) {
      try hole.container.place(bytes, in: folder, as: name.text)
    } catch {
      guard error == .noSuchFile else {
        throw WormholeError(error, "answer request of", request.from)
      }
      askers.forget(request.incarnation)
    }
  }
}

/// Something that has come and is for now.
final class LiveArrival: Sendable {
  /// Nil for what a test has made.
  let hole: Wormhole?
  let header: LiveFile.Header
  private let bytes: [UInt8]

  init(_ hole: Wormhole?, _ header: LiveFile.Header, _ bytes: [UInt8]) {
    self.hole = hole
    self.header = header
    self.bytes = bytes
  }

  var limits: PropertyListLimits { hole?.options.limits ?? PropertyListLimits() }

  var from: String? {
    if case .member(let name)? = MessageName.Sender(header.from) { name } else { nil }
  }

  func value<Value: Decodable>(
    as type: Value.Type, _ operation: String
  ) throws(WormholeError) -> Value {
    let (bytes, limits) = (bytes, limits)
    return try WormholeError.reading(operation, header.kind) {
      try BinaryDecoder(limits: limits).decode(MessageFile.Opened<Value>.self, from: bytes).value
    }
  }
}

/// The folders of those who have asked, by incarnation.
final class LiveFolders: Sendable {
  private let container: Container
  private let known = Monitor<[String: OpenDirectory]>([:])

  init(_ container: Container) { self.container = container }

  /// Nil if it is no more.
  func folder(_ mark: String, _ incarnation: String) throws(WormholeError) -> OpenDirectory? {
    if let folder = known.withLock({ $0[incarnation] }) { return folder }
    // It becomes part of a path, and comes from a file.
    guard incarnation.utf8.count == 16, let sender = MessageName.Sender(mark),
      incarnation.utf8.allSatisfy({ $0 > 0x2f && $0 < 0x7f })
    else { return nil }
    let home: MemberDirectory? =
      switch sender {
      case .member(let name): try container.existingMember(name)
      case .guest(let name): try container.existingMember(name, in: .guests)
      }
    do throws(Errno) {
      guard let folder = try home?.live(incarnation) else { return nil }
      known.withLock { known in
        // Askers come and go; those who still ask are looked up again.
        if known.count >= 64 { known = [:] }
        known[incarnation] = folder
      }
      return folder
    } catch {
      throw WormholeError(error, "find the asker", mark)
    }
  }

  func forget(_ incarnation: String) { known.withLock { $0[incarnation] = nil } }
}
