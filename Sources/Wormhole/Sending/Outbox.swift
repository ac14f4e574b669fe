internal import Synchronization
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The sent messages of a member whose outcome is wanted: reads the receipts as they arrive.
///
/// A receipt is stored until its outcome was reported: to all listeners, or to a caller that has
/// asked the ``Sent`` for its end. Until then the receipt waits for the next listener or
/// caller, in this incarnation or a later one. If no program has ever listened, only the latest
/// receipts are stored.
final class Outbox: Service {
  let container: SharedContainer
  let home: MemberDirectory
  /// Messages sent before this stamp were sent by an earlier incarnation.
  private let joined: MessageStamp
  private let state = Monitor(State())
  let expiries: Expiries

  private struct State {
    /// A name may have several objects, because a call of `pendingMessages` may make another.
    var waiting: [MessageName: [WeakSent]] = [:]
    /// The delayed messages in `waiting`, by what their names share.
    var delayed: [String: [SentName]] = [:]
    var listeners: [ObjectIdentifier: MemberListener<Outcome>] = [:]
    /// The receipts not yet reported to each listener.
    var pending: [ObjectIdentifier: Set<ReceiptName>] = [:]
    var telling: [ReceiptName: ReceiptProgress] = [:]
    /// Since when a receipt whose content is wanted could not be read.
    var unread: [ReceiptName: Instant] = [:]
    /// Receipts that arrived while no listener existed, and whose outcome no caller has requested.
    var kept: Set<ReceiptName> = []
    /// The limit of `kept`: a program that never listens has no use for more.
    var mostKept = 1024

    /// The message that was delayed and has this name now; nil for none.
    func delayed(_ name: MessageName) -> SentName? {
      // Of several messages with one id, the earlier ones were settled before the last was sent.
      delayed.isEmpty ? nil : delayed[name.unique]?.last { $0.matches(name) }
    }

    /// Whether an object waits for the content of its message as well as for the end.
    func wantsContent(of name: MessageName) -> Bool {
      waiting[name]?.contains { $0.wantsContent } ?? false
    }

    /// Forgets the refused reads of receipts that are gone.
    mutating func forgetUnread(except found: [ReceiptName]) {
      if unread.isEmpty { return }
      let listed = Set(found)
      unread = unread.filter { listed.contains($0.key) }
    }

    /// Removes and returns the objects of a message.
    mutating func takeWaiting(_ sent: SentName) -> [Sent] {
      // Two delayed messages have the same name at first if their ids and their moments are equal.
      let taken = waiting[sent.name]?.filter { $0.since == sent.since } ?? []
      waiting[sent.name]?.removeAll { $0.since == sent.since }
      forgetIfOver(sent)
      return taken.compactMap(\.sent)
    }

    /// Removes a message without objects.
    mutating func forgetIfOver(_ sent: SentName) {
      if waiting[sent.name]?.isEmpty == true { waiting[sent.name] = nil }
      let isWaiting = waiting[sent.name]?.contains { $0.since == sent.since } ?? false
      guard sent.since != nil, !isWaiting else { return }
      let unique = sent.name.unique
      delayed[unique]?.removeAll { $0 == sent }
      if delayed[unique]?.isEmpty == true { delayed[unique] = nil }
    }
  }

  private struct WeakSent {
    let identifier: ObjectIdentifier
    let since: MessageStamp?
    /// Whether the content was unknown when the object began to wait.
    let wantsContent: Bool
    weak var sent: Sent?
  }

  /// A receipt that is being reported to listeners.
  private struct ReceiptProgress {
    /// How many listeners have not finished with the receipt.
    var left: Int
    var isHeard = false
    /// Whether only the removal of the receipt is left to do.
    var isOver: Bool { left <= 0 && isHeard }
  }

  /// Reads receipts, one run at a time, so that outcomes are reported in order.
  let worker: Worker
  private let receipts: NoticedFolder
  private let hasClosed = Atomic<Bool>(false)
  /// How long the report of an end waits for the content of its receipt.
  static let patience = Duration.seconds(60)

  init(_ container: SharedContainer, _ home: MemberDirectory, joined: MessageStamp) {
    self.container = container
    self.home = home
    self.joined = joined
    expiries = Expiries(container)
    worker = Worker(on: container.background)
    receipts = NoticedFolder(worker)
    worker.begin { [weak self] in self?.look() }
  }

  // MARK: Listeners

  /// Expects a receipt; called before the message becomes visible.
  func expect(_ sent: Sent) throws(WormholeError) {
    try begin()
    let entry = WeakSent(
      identifier: ObjectIdentifier(sent), since: sent.identity.since,
      wantsContent: sent.wantsContent, sent: sent)
    state.withLock { state in
      state.waiting[sent.name, default: []].append(entry)
      guard sent.identity.since != nil else { return }
      state.delayed[sent.name.unique, default: []].append(sent.identity)
    }
    // If the outbox has closed before the entry was added, `close()` has missed the entry.
    if isClosed { sent.abandon() }
  }

  /// Settles a message not received by the given moment, in nanoseconds since 1970, so that a
  /// waiting sender is notified of the outcome without a receiver.
  func expire(_ sent: Sent, at receiver: MemberDirectory, due: Int64) {
    guard !isClosed else { return }
    expiries.add(sent.identity, at: receiver, due: due)
    // The message may have been settled before the entry was added.
    if sent.hasEnded { expiries.forget(sent.name) }
  }

  /// Returns the object that waits for this message's receipt, if still retained by the program.
  func expected(_ name: SentName) -> Sent? {
    let kept = state.withLock { state in
      let known = state.delayed(name.name)?.name ?? name.name
      return state.waiting[known]?.compactMap(\.sent)
    }
    return kept?.first
  }

  func forget(_ name: SentName, _ sent: ObjectIdentifier) {
    state.withLock { state in
      // Compares identifiers only. Loading a weak reference retains its object, and releasing the
      // object here might call this function again.
      state.waiting[name.name]?.removeAll { $0.identifier == sent }
      state.forgetIfOver(name)
    }
  }

  /// Makes a listener; notices start once the listener has been added.
  func listener(
    on queue: any CallQueue, _ handler: @escaping @Sendable (Outcome) -> Bool,
    left: @escaping @Sendable () -> Void = {}
  ) -> MemberListener<Outcome> {
    MemberListener(of: container.storage, on: queue, handler, left: left) { self.remove($0) }
  }

  func add(_ listener: MemberListener<Outcome>) throws(WormholeError) {
    try container.storage.checkOwner("watch outcomes of", home.name)
    guard !isClosed else { throw WormholeError.hasLeft(home, "receive outcomes of") }
    try begin()
    state.withLock { state in
      state.listeners[ObjectIdentifier(listener)] = listener
      state.pending[ObjectIdentifier(listener)] = []
      state.kept = []
      state.mostKept = 16_384
    }
    // If the outbox has closed before the listener was added, `close()` has missed the listener.
    if isClosed {
      remove(listener)
      listener.left()
    }
    receipts.loseTrack()
    worker.run()
  }

  private func remove(_ listener: MemberListener<Outcome>) {
    let pending = state.withLock { state in
      state.listeners[ObjectIdentifier(listener)] = nil
      return state.pending.removeValue(forKey: ObjectIdentifier(listener))
    }
    for receipt in pending ?? [] { settle(receipt, isHeard: false) }
  }

  private func begin() throws(WormholeError) {
    try naming("watch receipts of", home.name, at: home) { () throws(Errno) in
      try receipts.begin { hear throws(Errno) in
        // Reading would make the directory again, and the member's whole directory may go.
        try home.watch(.receipts) { signal in if signal != .gone { hear(signal) } }
      }
    }
  }

  /// Whether the sender has left.
  var isClosed: Bool { hasClosed.load(ordering: .acquiring) }

  /// Closes the outbox: receipts that arrive later belong to the next incarnation, which may have
  /// joined already.
  ///
  /// Waiting tasks and listeners are notified of the end.
  func close() {
    hasClosed.store(true, ordering: .sequentiallyConsistent)
    worker.end()
    worker.drain()
    receipts.stop()
    expiries.close()
    let (waiting, listeners) = state.withLock { state in
      (state.waiting.values.flatMap { $0.compactMap(\.sent) }, Array(state.listeners.values))
    }
    for sent in waiting { sent.abandon() }
    for listener in listeners { listener.left() }
  }

  // MARK: Receipts

  /// Reads the new receipts.
  ///
  /// After a notice, reads the new receipts only: pending ones, perhaps old, are not read again for
  /// each arrival.
  private func look() {
    var found: [ReceiptName]
    switch receipts.take() {
    case .changed(let names): found = names.compactMap { ReceiptName($0) }
    default:
      do throws(Errno) {
        found = try Receipts.list(home)
        state.withLock { $0.forgetUnread(except: found) }
      } catch {
        receipts.retry()
        return home.log(.error, "cannot list the receipts of", error)
      }
    }
    for receipt in found.sorted(by: { $0.name < $1.name }) { take(receipt) }
    dropSurplus()
  }

  private func take(_ receipt: ReceiptName) {
    // The system has refused the removal, and may allow it now.
    if state.withLock({ $0.telling[receipt]?.isOver == true }) { return remove(receipt) }
    if isGone(receipt) { return }
    let wanted: SentContent?
    do throws(WormholeError) {
      wanted = try wantedContent(of: receipt)
    } catch {
      // Once the end is reported, the receipt is removed, and the content with it. A receipt that
      // stays unreadable, as on a failing disk, shows only how the message ended.
      if waitsForContent(of: receipt, error) { return receipts.retry(receipt.text) }
      wanted = nil
    }
    let told = state.withLock { state -> ([Sent], [MemberListener<Outcome>], MessageName?)? in
      state.unread[receipt] = nil
      guard state.telling[receipt] == nil else { return nil }
      var sent = state.takeWaiting(SentName(receipt.name))
      let delayed = state.delayed(receipt.name)
      if let delayed { sent += state.takeWaiting(delayed) }
      let listeners = Array(state.listeners.values)
      if !listeners.isEmpty {
        state.telling[receipt] = ReceiptProgress(left: listeners.count)
        for key in state.listeners.keys { state.pending[key]?.insert(receipt) }
      } else if !sent.isEmpty || receipt.name.stamp >= joined {
        // Recorded before any caller can ask for the outcome.
        state.kept.insert(receipt)
      }
      return (sent, listeners, delayed?.name)
    }
    guard let (sent, listeners, delayed) = told else { return }
    for sent in sent {
      let content = sent.wantsContent ? wanted ?? content(of: receipt) : nil
      sent.end(end(receipt, to: sent.to), content)
    }
    expiries.forget(receipt.name)
    if let delayed { expiries.forget(delayed) }
    for listener in listeners {
      listener.queue?.soon { listener.gate.call { self.tell(listener, receipt) } }
    }
  }

  /// Removes the receipt of a message after a caller has asked for its outcome and received it.
  func heard(_ name: SentName, _ end: Outcome.Status) {
    let receipt = state.withLock { state -> ReceiptName? in
      guard name.since != nil else {
        return state.kept.remove(ReceiptName(name.name, MessageEnd(end)))
      }
      return state.kept.first { name.matches($0.name) }.flatMap { state.kept.remove($0) }
    }
    if let receipt, !isClosed { remove(receipt) }
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

  /// Reports an outcome to a listener on the listener's queue, and waits for the handler.
  ///
  /// The receipt is read only now: many may wait, and some may be large.
  /// An unreadable receipt is read again later, at growing intervals.
  private func tell(
    _ listener: MemberListener<Outcome>, _ receipt: ReceiptName,
    after pause: Duration = .zero
  ) {
    let key = ObjectIdentifier(listener)
    // An outcome being reported is settled here, even if the listener is stopped in the meantime.
    let isDue = state.withLock { $0.pending[key]?.remove(receipt) != nil }
    guard isDue else { return }
    var isHeard = false
    var isUnread = false
    do throws(WormholeError) {
      // The receipt is gone if a program has cleared it.
      isHeard = try outcome(of: receipt).map(listener.handler) ?? true
    } catch {
      if pause == .zero { container.log(.error, error, about: LogSubject(member: home.name)) }
      isUnread = true
    }
    // An outcome declined by this listener goes to a later listener after this listener's end.
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

  /// Records that a listener has finished with a receipt.
  private func settle(_ receipt: ReceiptName, isHeard: Bool) {
    let isOver = state.withLock { state in
      guard var telling = state.telling[receipt] else { return false }
      telling.left -= 1
      telling.isHeard = telling.isHeard || isHeard
      state.telling[receipt] = telling
      guard telling.left <= 0 else { return false }
      if !telling.isHeard {
        state.telling[receipt] = nil  // Waits for another listener.
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
      // The outcome was reported: no listener is notified of a receipt that stays.
      state.withLock { $0.telling[receipt] = ReceiptProgress(left: 0, isHeard: true) }
      home.log(.error, "cannot remove a receipt of", error)
    }
  }

  /// Returns the outcome of a receipt; nil if the receipt is gone.
  private func outcome(of receipt: ReceiptName) throws(WormholeError) -> Outcome? {
    try Outcome(receipt, in: home, container)
  }

  /// Returns the content of a receipt for a message of an earlier incarnation, which has no other
  /// source of its content; throws if a later read may succeed.
  private func wantedContent(of receipt: ReceiptName) throws(WormholeError) -> SentContent? {
    let isWanted = state.withLock { state in
      if state.wantsContent(of: receipt.name) { return true }
      guard let delayed = state.delayed(receipt.name) else { return false }
      return state.wantsContent(of: delayed.name)
    }
    guard isWanted else { return nil }
    return try Outcome.content(of: receipt, in: home, container) ?? nil
  }

  /// Returns whether a receipt that cannot be read is read again before its end is reported.
  private func waitsForContent(of receipt: ReceiptName, _ error: WormholeError) -> Bool {
    let now = container.options.time.now
    let since = state.withLock { state in
      let since = state.unread[receipt]
      state.unread[receipt] = since ?? now
      return since
    }
    // One entry in the log is enough for a minute of attempts.
    if since == nil { container.log(.error, error, about: LogSubject(member: home.name)) }
    return now - (since ?? now) < Self.patience
  }

  /// Whether a receipt that could not be read was removed before the next attempt, and so its
  /// outcome is not to be reported.
  private func isGone(_ receipt: ReceiptName) -> Bool {
    guard state.withLock({ $0.unread[receipt] != nil }) else { return false }
    let isThere = (try? home.status(of: receipt.text, in: .receipts) != nil) ?? true
    if !isThere { state.withLock { $0.unread[receipt] = nil } }
    return !isThere
  }

  private func content(of receipt: ReceiptName) -> SentContent? {
    (try? Outcome.content(of: receipt, in: home, container)) ?? nil
  }

  private func end(_ receipt: ReceiptName, to name: String?) -> Outcome.Status {
    Outcome.Status(receipt, to: name, home.container)
  }
}

extension Outcome {
  /// Reads the outcome from a receipt, whose file is the sent message.
  ///
  /// Returns nil if the receipt is gone. A damaged receipt shows only how the message ended. Throws
  /// if a later read may succeed.
  init?(
    _ receipt: ReceiptName, in home: MemberDirectory, _ container: SharedContainer
  ) throws(WormholeError) {
    guard let content = try Self.content(of: receipt, in: home, container) else { return nil }
    let end = Status(receipt, to: content?.to, home.container)
    self.init(receipt.name, end, content)
  }

  /// Returns nil if the receipt is gone; the inner value is nil if the receipt is unreadable.
  fileprivate static func content(
    of receipt: ReceiptName, in home: MemberDirectory, _ container: SharedContainer
  ) throws(WormholeError) -> SentContent?? {
    do throws(WormholeError) {
      switch try home.read(receipt.text, in: .receipts, "read receipt") {
      case .missing: return nil
      case .damaged: return .some(nil)
      case .sound(let bytes, _): return .some(try? SentContent(bytes, container.options.limits))
      }
    } catch {
      if error.mayPass { throw error }
      return .some(nil)
    }
  }
}

extension Participant {
  var outbox: Outbox { services.get { Outbox(container, home, joined: joined) } }
}
