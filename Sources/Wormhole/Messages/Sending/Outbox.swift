internal import Dispatch
internal import PropertyLists
internal import SharedContainer
internal import Synchronization
internal import Syscalls

/// What a member has sent and wants to know the end of: reads the receipts as they come.
///
/// A receipt stays until it was told: to all who ask for outcomes, or to somebody who has asked the
/// ``Wormhole/Sent`` for its end. Until then it waits for whoever asks next, in this life or in a
/// later one. Of those that come while nobody has ever asked only the latest are kept.
final class Outbox: Sendable {
  let hole: Wormhole
  let home: MemberDirectory
  /// What was sent before this was sent by an earlier incarnation.
  private let joined: MessageStamp
  private let state = Monitor(State())
  private let watch = Monitor<NamedWatch?>(nil)
  let expiries: Expiries

  private struct State {
    /// There may be several of one name: who asks what is outstanding gets others.
    var waiting: [MessageName: [WeakSent]] = [:]
    var listeners: [ObjectIdentifier: MemberListener<Wormhole.Outcome>] = [:]
    /// What each of them has still to hear.
    var pending: [ObjectIdentifier: Set<ReceiptName>] = [:]
    var telling: [ReceiptName: Telling] = [:]
    /// What has come since nobody listens any more, or ever has, and that nobody has asked for.
    var kept: Set<ReceiptName> = []
    /// How many of these there may be: a program that never listens has no use for more.
    var mostKept = 1024
  }

  /// What is to be looked at.
  private let news = Monitor(Watcher.Signal.changed([]))

  private struct WeakSent {
    let identifier: ObjectIdentifier
    weak var sent: Wormhole.Sent?
  }

  /// A receipt that listeners have been told of.
  private struct Telling {
    /// How many have yet to be done with it.
    var left: Int
    var isHeard = false
  }

  /// Held while the receipts are looked at, so that they are told in order.
  private let looking = Monitor(0)
  private let hasClosed = Atomic<Bool>(false)
  private let later = LaterLook()

  init(_ hole: Wormhole, _ home: MemberDirectory, joined: MessageStamp) {
    self.hole = hole
    self.home = home
    self.joined = joined
    expiries = Expiries(hole)
  }

  // MARK: Those who want to know

  /// Expects a receipt, from before the message can be seen.
  func expect(_ sent: Wormhole.Sent) throws(WormholeError) {
    try begin()
    let entry = WeakSent(identifier: ObjectIdentifier(sent), sent: sent)
    state.withLock { $0.waiting[sent.name, default: []].append(entry) }
    // It may have closed before it could tell this one.
    if isClosed { sent.abandon() }
  }

  /// Ends a message that is not received by that moment, in nanoseconds since 1970, so that whoever
  /// wants to know its end is told without a receiver.
  func expire(_ sent: Wormhole.Sent, at receiver: MemberDirectory, due: Int64) {
    guard !isClosed else { return }
    expiries.add(sent.name, at: receiver, due: due)
    // It may have ended before that was to be told.
    if sent.hasEnded { expiries.forget(sent.name) }
  }

  /// The one that waits for this message's receipt, if somebody keeps it.
  func expected(_ name: MessageName) -> Wormhole.Sent? {
    let kept = state.withLock { $0.waiting[name]?.compactMap(\.sent) }
    return kept?.first
  }

  func forget(_ name: MessageName, _ sent: ObjectIdentifier) {
    state.withLock { state in
      // Not asked whether they are still there: to ask is to hold one, and to let go of it here
      // might be to come back here.
      state.waiting[name]?.removeAll { $0.identifier == sent }
      if state.waiting[name]?.isEmpty == true { state.waiting[name] = nil }
    }
  }

  /// One who is told once it has been added.
  func listener(
    on queue: DispatchQueue, _ handler: @escaping @Sendable (Wormhole.Outcome) -> Bool,
    left: @escaping @Sendable () -> Void = {}
  ) -> MemberListener<Wormhole.Outcome> {
    MemberListener(of: hole.container, on: queue, handler, left: left) { self.remove($0) }
  }

  func add(_ listener: MemberListener<Wormhole.Outcome>) throws(WormholeError) {
    try hole.container.checkOwner("watch outcomes of", home.name)
    guard !isClosed else {
      throw WormholeError(
        .notJoined, "receive outcomes of", home.name, because: "it has left", hint: "join again")
    }
    try begin()
    state.withLock { state in
      state.listeners[ObjectIdentifier(listener)] = listener
      state.pending[ObjectIdentifier(listener)] = []
      state.kept = []
      state.mostKept = 16_384
    }
    // It may have closed before it could tell this one.
    if isClosed {
      remove(listener)
      listener.left()
    }
    news.withLock { $0 = .lookAgain }
    look()
  }

  private func remove(_ listener: MemberListener<Wormhole.Outcome>) {
    let pending = state.withLock { state in
      state.listeners[ObjectIdentifier(listener)] = nil
      return state.pending.removeValue(forKey: ObjectIdentifier(listener))
    }
    for receipt in pending ?? [] { settle(receipt, isHeard: false) }
  }

  private func begin() throws(WormholeError) {
    try watch.withLock { watch throws(WormholeError) in
      guard watch == nil else { return }
      do throws(Errno) {
        watch = try home.watch(.receipts) { [weak self] signal in
          // To look would make it again, and it may go with the member's directory.
          guard let self, signal != .gone else { return }
          news.withLock { $0.add(signal) }
          hole.finding.afterTelling { self.look() }
        }
      } catch {
        throw WormholeError(error, "watch receipts of", home.name)
      }
    }
  }

  /// Whether whoever sends through it has left.
  var isClosed: Bool { hasClosed.load(ordering: .acquiring) }

  /// Leaves what comes from now on to the next life: somebody else may be it already.
  ///
  /// Those who wait are told that it is over.
  func close() {
    hasClosed.store(true, ordering: .sequentiallyConsistent)
    looking.withLock { _ in }
    watch.withLock { $0.take() }?.stop()
    expiries.close()
    let (waiting, listeners) = state.withLock { state in
      (state.waiting.values.flatMap { $0.compactMap(\.sent) }, Array(state.listeners.values))
    }
    for sent in waiting { sent.abandon() }
    for listener in listeners { listener.left() }
  }

  // MARK: Receipts

  /// Reads what has come.
  func look() { looking.withLock { _ in if !isClosed { lookAround() } } }

  /// What lies there untold, and perhaps was for long, is not looked at for each that comes.
  private func lookAround() {
    let looked = news.withLock { news in
      defer { news = .changed([]) }
      return news
    }
    var found: [ReceiptName]
    switch looked {
    case .changed(let names): found = names.compactMap { ReceiptName($0) }
    default:
      do throws(Errno) {
        found = try Receipts.list(home)
      } catch {
        news.withLock { $0 = .lookAgain }
        later.plan(on: hole.finding) { [weak self] in self?.look() }
        return hole.log(
          .error, "cannot list the receipts of '\(home.name)': \(error)",
          about: LogSubject(member: home.name), because: error)
      }
    }
    for receipt in found.sorted(by: { $0.name < $1.name }) { take(receipt) }
    dropSurplus()
  }

  private func take(_ receipt: ReceiptName) {
    let told = state.withLock { state -> ([Wormhole.Sent], [MemberListener<Wormhole.Outcome>])? in
      guard state.telling[receipt] == nil else { return nil }
      let sent = state.waiting.removeValue(forKey: receipt.name)?.compactMap(\.sent) ?? []
      let listeners = Array(state.listeners.values)
      if !listeners.isEmpty {
        state.telling[receipt] = Telling(left: listeners.count)
        for key in state.listeners.keys { state.pending[key]?.insert(receipt) }
      } else if !sent.isEmpty || receipt.name.stamp >= joined {
        // Before anybody can ask for it.
        state.kept.insert(receipt)
      }
      return (sent, listeners)
    }
    guard let (sent, listeners) = told else { return }
    for sent in sent {
      let content = sent.wantsContent ? content(of: receipt) : nil
      sent.end(end(receipt, to: sent.to), content ?? nil)
    }
    expiries.forget(receipt.name)
    for listener in listeners {
      listener.queue?.async { listener.gate.call { self.tell(listener, receipt) } }
    }
  }

  /// Somebody has asked how a message ended, and heard it.
  func heard(_ name: MessageName, _ end: Wormhole.Outcome.End) {
    let receipt = ReceiptName(name, MessageEnd(end))
    let isOver = state.withLock { $0.kept.remove(receipt) != nil }
    if isOver, !isClosed { remove(receipt) }
  }

  private func dropSurplus() {
    let surplus = state.withLock { state -> ArraySlice<ReceiptName> in
      guard state.kept.count > state.mostKept else { return [] }
      let oldest = state.kept.sorted { $0.name.stamp < $1.name.stamp }
        .prefix(state.kept.count - state.mostKept / 8 * 7)
      state.kept.subtract(oldest)
      return oldest
    }
    for receipt in surplus { remove(receipt) }
  }

  /// Tells a listener whose turn it is, and waits for it.
  ///
  /// It is read only now: many may wait, and some may be large.
  /// One that cannot be read is tried again, ever more rarely.
  private func tell(
    _ listener: MemberListener<Wormhole.Outcome>, _ receipt: ReceiptName,
    after pause: Duration = .zero
  ) {
    let key = ObjectIdentifier(listener)
    // What it is being told is settled here, also if it is stopped meanwhile.
    let isDue = state.withLock { $0.pending[key]?.remove(receipt) != nil }
    guard isDue else { return }
    var isHeard = false
    var isUnread = false
    do throws(WormholeError) {
      // It is there no more if somebody has cleared it.
      isHeard = try outcome(of: receipt).map(listener.handler) ?? true
    } catch {
      if pause == .zero { hole.log(.error, error, about: LogSubject(member: home.name)) }
      isUnread = true
    }
    // What it declines goes to others once it listens no more.
    let isKept = state.withLock { state in
      !isHeard && state.pending[key]?.insert(receipt) != nil
    }
    guard isKept else { return settle(receipt, isHeard: isHeard) }
    guard isUnread else { return }
    let next = min(max(pause * 2, .seconds(1)), .seconds(60))
    listener.queue?.soon(after: next) {
      listener.gate.call { self.tell(listener, receipt, after: next) }
    }
  }

  /// A listener is done with it.
  private func settle(_ receipt: ReceiptName, isHeard: Bool) {
    let isOver = state.withLock { state in
      guard var telling = state.telling[receipt] else { return false }
      telling.left -= 1
      telling.isHeard = telling.isHeard || isHeard
      state.telling[receipt] = telling
      guard telling.left <= 0 else { return false }
      if !telling.isHeard {
        state.telling[receipt] = nil  // It waits for somebody else.
      }
      return telling.isHeard
    }
    if isOver { remove(receipt) }
  }

  private func remove(_ receipt: ReceiptName) {
    do throws(Errno) {
      _ = try home.remove(receipt.text, from: .receipts)
      state.withLock { $0.telling[receipt] = nil }
    } catch {
      hole.log(
        .error, "cannot remove a receipt of '\(home.name)': \(error)",
        about: LogSubject(member: home.name), because: error)
    }
  }

  /// What a receipt says; nil if it is there no more.
  private func outcome(of receipt: ReceiptName) throws(WormholeError) -> Wormhole.Outcome? {
    try Wormhole.Outcome(receipt, in: home, hole)
  }

  private func content(of receipt: ReceiptName) -> SentContent? {
    (try? Wormhole.Outcome.content(of: receipt, in: home, hole)) ?? nil
  }

  private func end(_ receipt: ReceiptName, to name: String?) -> Wormhole.Outcome.End {
    Wormhole.Outcome.End(receipt, to: name, home.container)
  }
}

extension MessageEnd {
  fileprivate init(_ end: Wormhole.Outcome.End) {
    self =
      switch end {
      case .delivered: .ok
      case .cancelled: .cancelled
      case .expired: .expired
      case .givenUp: .dead
      }
  }
}

extension Wormhole.Outcome.End {
  fileprivate init(_ receipt: ReceiptName, to name: String?, _ container: Container) {
    switch receipt.end {
    case .ok: self = .delivered
    case .cancelled: self = .cancelled
    case .expired: self = .expired
    case .dead:
      let peer = name.flatMap { try? container.existingMember($0) }
      let why = peer.flatMap { DeathReason.read(receipt.name, in: $0) }
      let several = receipt.name.count > 1 ? "some of its messages were given up" : nil
      self = .givenUp(why?.reason ?? several ?? "the reason is no longer kept")
    }
  }
}

extension Wormhole.Outcome {
  /// What a receipt says; its file is the message that was sent.
  ///
  /// Nil if it is there no more. One that is damaged says only how it ended. Throws if it may be
  /// read a little later.
  init?(
    _ receipt: ReceiptName, in home: MemberDirectory, _ hole: Wormhole
  ) throws(WormholeError) {
    guard let content = try Self.content(of: receipt, in: home, hole) else { return nil }
    let end = End(receipt, to: content?.to, home.container)
    self.init(receipt.name, end, content)
  }

  /// Nil if it is there no more; nothing inside if it cannot be read.
  fileprivate static func content(
    of receipt: ReceiptName, in home: MemberDirectory, _ hole: Wormhole
  ) throws(WormholeError) -> SentContent?? {
    do throws(WormholeError) {
      switch try home.read(receipt.text, in: .receipts, "read receipt") {
      case .missing: return nil
      case .damaged: return .some(nil)
      case .sound(let bytes, _): return .some(try? SentContent(bytes, hole.options.limits))
      }
    } catch {
      if error.mayPass { throw error }
      return .some(nil)
    }
  }
}
