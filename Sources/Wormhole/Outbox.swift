internal import Dispatch
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// What a member has sent and wants to know the end of: reads the receipts as they come.
///
/// A receipt stays until it was told: to the ``Wormhole/Sent`` that waits for it, and to all who
/// ask for outcomes. One of an earlier incarnation waits until somebody asks.
final class Outbox: Sendable {
  let hole: Wormhole
  let home: MemberDirectory
  /// What was sent before this was sent by an earlier incarnation.
  private let joined: MessageStamp
  private let state = Monitor(State())
  private let watch = Monitor<Watch?>(nil)

  private struct State {
    var waiting: [MessageName: WeakSent] = [:]
    var listeners: [ObjectIdentifier: OutcomeListener] = [:]
    /// How many listeners have yet to be done with a receipt.
    var untold: [ReceiptName: Int] = [:]
  }

  private struct WeakSent {
    weak var sent: Wormhole.Sent?
  }

  init(_ hole: Wormhole, _ home: MemberDirectory, joinedAt: Int64) {
    self.hole = hole
    self.home = home
    joined = MessageStamp(epoch: home.container.epoch, nanoseconds: joinedAt)
  }

  // MARK: Those who want to know

  /// Expects a receipt, from before the message can be seen.
  func expect(_ sent: Wormhole.Sent) throws(WormholeError) {
    try begin()
    state.withLock { $0.waiting[sent.name] = WeakSent(sent: sent) }
  }

  /// The one that waits for this message's receipt, if somebody keeps it.
  func expected(_ name: MessageName) -> Wormhole.Sent? {
    state.withLock { $0.waiting[name]?.sent }
  }

  func forget(_ name: MessageName) { state.withLock { $0.waiting[name] = nil } }

  func add(_ listener: OutcomeListener) throws(WormholeError) {
    try begin()
    state.withLock { $0.listeners[ObjectIdentifier(listener)] = listener }
    look()
  }

  func remove(_ listener: OutcomeListener) {
    state.withLock { $0.listeners[ObjectIdentifier(listener)] = nil }
    // What it has not heard waits for somebody else.
    let unheard = listener.abandon()
    state.withLock { state in
      for receipt in unheard {
        guard let left = state.untold[receipt] else { continue }
        state.untold[receipt] = left > 1 ? left - 1 : nil
      }
    }
  }

  private func begin() throws(WormholeError) {
    try watch.withLock { watch throws(WormholeError) in
      guard watch == nil else { return }
      do throws(Errno) {
        watch = try home.watch(.receipts) { [weak self] _ in
          guard let self else { return }
          Wormhole.finding.async { self.look() }
        }
      } catch {
        throw WormholeError(error, "watch receipts of", home.name)
      }
    }
  }

  func close() { watch.withLock { $0.take() }?.stop() }

  // MARK: Receipts

  /// Reads what has come.
  func look() {
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
    let (sent, listeners) = state.withLock { state -> (Wormhole.Sent?, [OutcomeListener]) in
      guard state.untold[receipt] == nil else { return (nil, []) }
      let sent = state.waiting.removeValue(forKey: receipt.name)?.sent
      let listeners = Array(state.listeners.values)
      let isEarlier = receipt.name.stamp < joined
      // Nobody to tell, and somebody may come who wants to know.
      if sent == nil, listeners.isEmpty, isEarlier { return (nil, []) }
      state.untold[receipt] = listeners.count
      return (sent, listeners)
    }
    guard state.withLock({ $0.untold[receipt] != nil }) else { return }
    if sent != nil || !listeners.isEmpty {
      let outcome = outcome(of: receipt)
      sent?.end(outcome.end)
      for listener in listeners { listener.tell(receipt, outcome) }
    }
    if listeners.isEmpty { remove(receipt) }
  }

  /// A listener is done with it.
  func done(_ receipt: ReceiptName) {
    let isLast = state.withLock { state in
      guard let left = state.untold[receipt] else { return false }
      state.untold[receipt] = left - 1
      return left <= 1
    }
    if isLast { remove(receipt) }
  }

  private func remove(_ receipt: ReceiptName) {
    do throws(Errno) {
      _ = try home.remove(receipt.text, from: .receipts)
      state.withLock { $0.untold[receipt] = nil }
    } catch {
      hole.log(.error, "cannot remove a receipt of '\(home.name)': \(error)")
    }
  }

  /// What a receipt says; its file is the message that was sent.
  private func outcome(of receipt: ReceiptName) -> Wormhole.Outcome {
    let found = try? home.read(receipt.text, in: .receipts, "read receipt")
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
