internal import Dispatch
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// What a member has sent and wants to know the end of: reads the receipts as they come.
///
/// A receipt stays until it was told: to the ``Wormhole/Sent`` that waits for it, and to all who
/// ask for outcomes. One of an earlier incarnation waits until somebody asks, and so does each that
/// comes once somebody has asked, and does no more.
final class Outbox: Sendable {
  let hole: Wormhole
  let home: MemberDirectory
  /// What was sent before this was sent by an earlier incarnation.
  private let joined: MessageStamp
  private let state = Monitor(State())
  private let watch = Monitor<NamedWatch?>(nil)

  private struct State {
    /// There may be several of one name: who asks what is outstanding gets others.
    var waiting: [MessageName: [WeakSent]] = [:]
    var listeners: [ObjectIdentifier: OutcomeListener] = [:]
    var telling: [ReceiptName: Telling] = [:]
    /// Whether anybody has ever listened: then what comes while nobody does waits for the next.
    var isListenedTo = false
  }

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
  private let looking = Monitor(false)

  init(_ hole: Wormhole, _ home: MemberDirectory, joinedAt: Int64) {
    self.hole = hole
    self.home = home
    joined = MessageStamp(epoch: home.container.epoch, nanoseconds: joinedAt)
  }

  // MARK: Those who want to know

  /// Expects a receipt, from before the message can be seen.
  func expect(_ sent: Wormhole.Sent) throws(WormholeError) {
    try begin()
    let entry = WeakSent(identifier: ObjectIdentifier(sent), sent: sent)
    state.withLock { $0.waiting[sent.name, default: []].append(entry) }
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

  func add(_ listener: OutcomeListener) throws(WormholeError) {
    try begin()
    state.withLock { state in
      state.listeners[ObjectIdentifier(listener)] = listener
      state.isListenedTo = true
    }
    look()
  }

  func remove(_ listener: OutcomeListener) {
    state.withLock { $0.listeners[ObjectIdentifier(listener)] = nil }
    for receipt in listener.abandon() { settle(receipt, isHeard: false) }
  }

  private func begin() throws(WormholeError) {
    try watch.withLock { watch throws(WormholeError) in
      guard watch == nil else { return }
      do throws(Errno) {
        watch = try home.watch(.receipts) { [weak self] signal in
          // To look would make it again, and it may go with the member's directory.
          guard let self, signal != .removed else { return }
          if Watcher.shared.afterwards({ self.look() }) { return }
          Wormhole.finding.async { self.look() }
        }
      } catch {
        throw WormholeError(error, "watch receipts of", home.name)
      }
    }
  }

  /// Leaves what comes from now on to the next life: somebody else may be it already.
  func close() {
    looking.withLock { $0 = true }
    watch.withLock { $0.take() }?.stop()
  }

  // MARK: Receipts

  /// Reads what has come.
  func look() { looking.withLock { isClosed in if !isClosed { lookAround() } } }

  private func lookAround() {
    var found: [ReceiptName] = []
    do throws(Errno) {
      try home.list(.receipts) { name in
        if let receipt = ReceiptName(String(cString: name)) { found.append(receipt) }
      }
    } catch {
      return hole.log(.error, "cannot list the receipts of '\(home.name)': \(error)")
    }
    for receipt in found.sorted(by: { $0.name < $1.name }) { take(receipt) }
  }

  private func take(_ receipt: ReceiptName) {
    let told = state.withLock { state -> ([Wormhole.Sent], [OutcomeListener])? in
      guard state.telling[receipt] == nil else { return nil }
      let sent = state.waiting.removeValue(forKey: receipt.name)?.compactMap(\.sent) ?? []
      let listeners = Array(state.listeners.values)
      // Nobody to tell, and somebody may come who wants to know.
      let mayWait = receipt.name.stamp < joined || state.isListenedTo
      if sent.isEmpty, listeners.isEmpty, mayWait { return nil }
      state.telling[receipt] = Telling(left: listeners.count)
      return (sent, listeners)
    }
    guard let (sent, listeners) = told else { return }
    if !sent.isEmpty || !listeners.isEmpty {
      guard let outcome = outcome(of: receipt) else {
        // It was listed before whoever was told last had done with it.
        return state.withLock { $0.telling[receipt] = nil }
      }
      for sent in sent { sent.end(outcome.end) }
      for listener in listeners { tell(listener, receipt, outcome) }
    }
    if listeners.isEmpty { remove(receipt) }
  }

  private func tell(
    _ listener: OutcomeListener, _ receipt: ReceiptName, _ outcome: Wormhole.Outcome
  ) {
    listener.tell(receipt, outcome)
    // It may have been stopped after it was found among the listeners.
    guard state.withLock({ $0.listeners[ObjectIdentifier(listener)] == nil }) else { return }
    for receipt in listener.abandon() { settle(receipt, isHeard: false) }
  }

  /// A listener is done with it.
  func done(_ receipt: ReceiptName) { settle(receipt, isHeard: true) }

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
      hole.log(.error, "cannot remove a receipt of '\(home.name)': \(error)")
    }
  }

  /// What a receipt says; its file is the message that was sent.
  ///
  /// Nil if it is there no more.
  private func outcome(of receipt: ReceiptName) -> Wormhole.Outcome? {
    let found = try? home.read(receipt.text, in: .receipts, "read receipt")
    if case .missing? = found { return nil }
    var header: MessageFile.Header?
    if case .sound(let bytes, _)? = found {
      header = try? BinaryDecoder(limits: hole.options.limits)
        .decode(MessageFile.Header.self, from: bytes)
    }
    return Wormhole.Outcome(
      id: receipt.name.id, to: header?.to ?? "", kind: header?.kind ?? "",
      end: end(receipt, to: header?.to))
  }

  private func end(_ receipt: ReceiptName, to name: String?) -> Wormhole.Outcome.End {
    switch receipt.end {
    case .ok: return .delivered
    case .cancelled: return .cancelled
    case .expired: return .expired
    case .dead:
      let peer = name.flatMap { try? home.container.existingMember($0) }
      let why = peer.flatMap { DeathReason.read(receipt.name, in: $0) }
      let several = receipt.name.count > 1 ? "some of its messages were given up" : nil
      return .givenUp(why?.reason ?? several ?? "the reason is no longer kept")
    }
  }
}
