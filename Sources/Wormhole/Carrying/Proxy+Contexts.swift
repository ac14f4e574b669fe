package import FoundationEssentials
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Contexts for a member of another machine.
///
/// The life of a context on the machine of its sender, each step one rename:
///
///     context/<from>,next     set; a newer one takes its place
///     context/<from>,taking   in transit: at most one of each sender
///     context/<from>          stored by the other machine
///
/// A newer context waits until the other machine has stored the earlier context. So the latest
/// context always travels, and contexts in between never do. A claimed file has no name of its own,
/// so the name under which a carrier sends a context has a hash of its bytes.
extension Proxy {
  /// The senders of waiting contexts and of contexts in transit.
  package func contextSenders() throws(WormholeError) -> Set<String> {
    let senders = try naming("list contexts of", name, at: home) { () throws(Errno) in
      try home.names(in: .context) { ContextName.waiting(String(cString: $0)) }
    }
    return Set(senders.compactMap { EscapedName.unescape($0) })
  }

  /// Claims the latest context of a sender, durably.
  ///
  /// A claimed context that was never sent is replaced by a newer one.
  ///
  /// - Returns: a unique name for the context, and its size; nil without a sound context.
  package func claimContext(
    from sender: String
  ) throws(WormholeError) -> (name: MessageName, size: Int)? {
    let from = try Container.escape(sender)
    try naming("claim context for", name, at: home) { () throws(Errno) in
      let taking = ContextName.taking(from)
      if try home.move(ContextName.next(from), from: .context, .context, as: taking) {
        try home.makeDurable(.context)
      }
    }
    guard let bytes = try claimedContext(from: sender) else { return nil }
    let name = MessageName(
      isUrgent: false, try carrier.now, wantsReceipt: false, count: 1, id: Self.hash(bytes),
      from: from)
    return (name, bytes.count)
  }

  private static func hash(_ bytes: [UInt8]) -> String { FowlerHash.hash(bytes).digits }

  /// Reads the context in transit; nil if the name belongs to an earlier, stored context.
  package func claimedContext(_ name: MessageName) throws(WormholeError) -> [UInt8]? {
    guard case .member(let sender)? = name.sender, let bytes = try claimedContext(from: sender),
      Self.hash(bytes) == name.id || Mutants.has(.anyContext)
    else { return nil }
    return bytes
  }

  private func claimedContext(from sender: String) throws(WormholeError) -> [UInt8]? {
    let operation = "carry context of"
    let file = ContextName.taking(try Container.escape(sender))
    switch try home.read(file, in: .context, operation) {
    case .missing: return nil
    case .sound(let bytes, _): return bytes
    case .damaged(let reason, _):
      let error = WormholeError(
        .damaged, operation, sender, because: "the context is damaged: \(reason)")
      carrier.container.log(.error, error, about: LogSubject(member: name))
      return nil
    }
  }

  /// Notes that the other machine has stored the context; may be repeated.
  package func settleContext(_ name: MessageName) throws(WormholeError) {
    guard case .member(let sender)? = name.sender, try claimedContext(name) != nil else { return }
    let from = try Container.escape(sender)
    try naming("settle context for", self.name, at: home) { () throws(Errno) in
      let taking = ContextName.taking(from)
      guard try home.move(taking, from: .context, .context, as: from) else { return }
      // Otherwise it would be sent again after a power cut, when its number is forgotten.
      try home.makeDurable(.context)
    }
  }
}

/// Contexts of members of other machines.
extension Carrier {
  /// Checks a context of another machine; returns its receiver, and the date of its sender.
  package func envelope(
    ofContext bytes: [UInt8]
  ) throws(WormholeError) -> (receiver: String, setAt: Date) {
    let header = try header(ofContext: bytes)
    return (header.to, header.sent)
  }

  private func header(ofContext bytes: [UInt8]) throws(WormholeError) -> MessageFile.Header {
    let limits = container.options.limits
    return try WormholeError.reading("deliver context", container.directory, of: .context) {
      try MessageFile.Header(bytes, BinaryDecoder(limits: limits))
    }
  }

  /// When the last context of a sender that has arrived was set; nil if there is none.
  package func lastContext(
    from sender: String, to receiver: String
  ) throws(WormholeError) -> Date? {
    let from = try Container.escape(sender)
    let home = try container.receivers.home(of: container.peer(receiver), in: container.storage)
    var last: Date?
    // A receiver renames the file in this order, so a reader in the same order finds the file.
    for file in [ContextName.next(from), ContextName.taking(from), from] {
      guard case .sound(let bytes, _) = try home.read(file, in: .context, "read context"),
        let header = try? header(ofContext: bytes)
      else { continue }
      last = max(last ?? header.sent, header.sent)
    }
    return last
  }

  /// Puts a context in place of one that its receiver has not taken, durably.
  ///
  /// If the file is gone, it was put there before, perhaps by a process that ended before the sync.
  ///
  /// - Parameters:
  ///   - file: the context, complete, as its sender has written it.
  ///   - directory: a directory of the carrier.
  package func deliverContext(
    _ file: String, in directory: OpenDirectory, from sender: String, to receiver: String
  ) throws(WormholeError) {
    let next = ContextName.next(try Container.escape(sender))
    let peer = container.peer(receiver)
    try deliver("deliver context to", peer, .context, "directory") { home throws(Errno) in
      _ = try home.move(file, of: directory, to: .context, as: next)
      try home.makeDurable(.context)
    }
  }
}
