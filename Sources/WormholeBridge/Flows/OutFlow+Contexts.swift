internal import Wormhole
internal import WormholeContainerStorage

/// Contexts in the flow.
///
/// Between two members at most one context has an unconfirmed number. The context is claimed before
/// it has a number: its file has no name of its own, so a record that is read after a kill could
/// otherwise claim a later context.
extension OutFlow {
  /// The largest carried context, in bytes: its bundle passes every server that a bridge accepts.
  package static let largestContext = 384 << 10

  /// The contexts in transit, by receiver and sender.
  package var boundContexts: Set<[String]> {
    var bound: Set<[String]> = []
    for record in records where record.last > confirmed {
      for number in max(record.first, confirmed + 1)...record.last {
        let entry = record[number]
        guard entry.kind == .context, let sender = entry.contextSender else { continue }
        bound.insert([entry.receiver, sender])
      }
    }
    return bound
  }

  /// Claims the contexts at a proxy that may travel now.
  func contexts(at proxy: Proxy, to receiver: String) throws(WormholeError) -> [FlowEntry] {
    let senders = try proxy.contextSenders()
    guard !senders.isEmpty else { return [] }
    let bound = boundContexts
    var entries: [FlowEntry] = []
    for sender in senders.sorted() where !bound.contains([receiver, sender]) {
      guard let claimed = try proxy.claimContext(from: sender) else { continue }
      guard claimed.size <= Self.largestContext else {
        note(tooLarge: claimed.size, sender, receiver)
        continue
      }
      tooLarge.remove([receiver, sender])
      entries.append(FlowEntry(.context, to: receiver, claimed.name))
    }
    return entries
  }

  private func note(tooLarge size: Int, _ sender: String, _ receiver: String) {
    guard tooLarge.insert([receiver, sender]).inserted else { return }
    residents.container.storage.log(
      .warning,
      "the context of '\(sender)' for '\(receiver)' is not carried: it has \(size) bytes, and "
        + "\(Self.largestContext) are carried at most")
  }

  /// The file of a context; nil if the file is damaged, stored by the other machine, or due to the
  /// receiver's new home.
  func context(of entry: FlowEntry) throws(WormholeError) -> [UInt8]? {
    try receiver(ofContext: entry)?.claimedContext(entry.name)
  }

  /// Notes the confirmation of a context.
  func settleContext(_ entry: FlowEntry) throws(WormholeError) {
    guard let proxy = try receiver(ofContext: entry) else { return }
    try proxy.settleContext(entry.name)
    freed.insert(proxy.resident)
  }

  private func receiver(ofContext entry: FlowEntry) throws(WormholeError) -> Proxy? {
    guard let proxy = try residents.receiver(entry.resident), proxy.machine == machine,
      residents.carries(proxy)
    else { return nil }
    return proxy
  }

  /// The proxies whose contexts the other machine has stored since the last call, so that newer
  /// contexts can follow.
  func takeFreed() -> Set<Carrier.Resident> {
    defer { freed = [] }
    return freed
  }
}

extension FlowEntry {
  /// The sender of the context.
  var contextSender: String? {
    if case .member(let sender)? = name.sender { sender } else { nil }
  }
}
