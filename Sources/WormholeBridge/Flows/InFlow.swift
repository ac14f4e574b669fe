internal import FoundationEssentials
package import Wormhole
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The flow of entries from another machine to this machine.
///
/// The life of a message, after it has arrived:
///
///     in/<machine>/<number>   staged: complete and synced, and nobody's yet
///     in/<machine>/cursor.plist   received: this machine answers for it from here on
///     members/<receiver>/inbox/<name>   delivered, by a rename that is repeated if need be
///
/// What has a known number is a duplicate, and is dropped. What leaves a gap is dropped, too: the
/// sender learns the position, and sends again.
package final class InFlow {
  package let machine: String
  private let folder: BridgeFolder
  private let residents: Residents
  /// The refusals travel in the other direction.
  private let refusals: Refusals
  private var cursor: FlowCursor?

  static let cursorName = "cursor.plist"

  /// Opens what was received until now; repeats what a killed process may have left undone.
  package init(
    from machine: String, _ residents: Residents, _ refusals: Refusals
  ) throws(WormholeError) {
    (self.machine, self.residents, self.refusals) = (machine, residents, refusals)
    folder = try BridgeFolder(["in", machine], of: residents.container.storage)
    if !Mutants.has(.forgetCursor), let list = try folder.read(Self.cursorName) {
      guard let found = FlowCursor(list) else { throw folder.damaged(Self.cursorName) }
      cursor = found
      try run(found.steps)
    }
    // Whatever else is staged is sent again.
    for file in try folder.names() where Int(fileName: file) != nil { try folder.remove(file) }
    try buryKept()
  }

  /// The position; nil if nothing was ever received.
  package var position: FlowPosition? { cursor?.position }

  /// Whether the flow is the one that is received.
  ///
  /// The sending machine has to acknowledge a new flow. Otherwise any machine with the right to
  /// publish could replace the flow.
  package func knows(_ flow: String) -> Bool { cursor?.flow == flow }

  /// The machine has acknowledged the flow as its own; what is received of an older one stays.
  package func begin(_ flow: String) throws(WormholeError) {
    guard !knows(flow) else { return }
    let fresh = FlowCursor(flow: flow)
    try folder.replace(Self.cursorName, by: fresh.propertyList)
    cursor = fresh
  }

  package enum Finding: Hashable, Sendable {
    case received(Int)
    /// Nothing new.
    case known
    /// An earlier number is missing.
    case gap
    /// Another machine, or a copy of this one, has sent the entries.
    case otherChain
    /// The bridge of an earlier start has sent the entries.
    case earlierGeneration
  }

  /// Stores what the bundles contain, and delivers it.
  ///
  /// - Parameters:
  ///   - bundles: bundles of the known flow, in the order of their arrival.
  ///   - delay: how long a bundle was under way, in nanoseconds, if that is known.
  /// - Returns: what each bundle was.
  package func receive(
    _ bundles: [(bundle: FlowBundle, delay: Int64)]
  ) throws(WormholeError) -> [Finding] {
    guard var next = cursor else { return bundles.map { _ in .gap } }
    next.steps = []
    var findings: [Finding] = []
    var staging = Staging()
    for (bundle, delay) in bundles {
      let finding = judge(bundle, next)
      findings.append(finding)
      guard case .received = finding else { continue }
      next.generation = bundle.generation
      for (offset, entry) in bundle.entries.enumerated() {
        let number = bundle.first + offset
        let isNew = number > next.number
        guard isNew || Mutants.has(.acceptKnown) else { continue }
        try take(
          entry, number, bundle.bodies[offset],
          until: { $0.map { bundle.local($0, delay, self.now) } },
          &staging)
        guard isNew else { continue }
        next.number = number
        next.chain = next.chain.followed(by: entry)
      }
    }
    if next.number == cursor?.number, !Mutants.has(.acceptKnown) { return findings }
    if Mutants.has(.confirmUnstored) { cursor = next }
    if !staging.steps.isEmpty || staging.hasKept { try folder.makeDurable() }
    if staging.hasRefusals { try refusals.makeDurable() }
    for proxy in staging.settled.values { try proxy.makeDurable() }
    next.steps = staging.steps
    try folder.replace(Self.cursorName, by: next.propertyList)
    cursor = next
    try run(next.steps)
    return findings
  }

  private var now: Int64 { residents.container.storage.options.environment.sinceEpoch() }

  /// What has to be durable, and to be done, with the next cursor.
  private struct Staging {
    var steps: [FlowCursor.Step] = []
    var settled: [Carrier.Resident: Proxy] = [:]
    var hasRefusals = false
    var hasKept = false
  }

  private func judge(_ bundle: FlowBundle, _ cursor: FlowCursor) -> Finding {
    guard bundle.flow == cursor.flow else { return .otherChain }
    guard bundle.generation >= cursor.generation else { return .earlierGeneration }
    guard bundle.last > cursor.number || Mutants.has(.acceptKnown) else { return .known }
    guard bundle.first <= cursor.number + 1 else { return .gap }
    let overlap = bundle.entries.prefix(cursor.number + 1 - bundle.first)
    let chain = overlap.reduce(bundle.before) { $0.followed(by: $1) }
    let isContinued = chain == cursor.chain || Mutants.has(.ignoreChain)
    return isContinued ? .received(bundle.last) : .otherChain
  }

  // MARK: Entries

  private func take(
    _ entry: FlowEntry, _ number: Int, _ body: [UInt8]?, until expiry: (Date?) -> Date?,
    _ staging: inout Staging
  ) throws(WormholeError) {
    switch entry.kind {
    case .message:
      // The message was cancelled before it was published.
      guard let body else { return }
      let bytes: [UInt8]
      do throws(WormholeError) {
        bytes = try prepared(entry, body, until: expiry)
      } catch {
        guard error.isRefusal else { throw error }
        try refuse(entry, number, body, error, &staging)
        return
      }
      let name = try residents.carrier.arrivalName(of: entry.name)
      try folder.write(number.fileName, bytes)
      staging.steps.append(.deliver(number: number, to: entry.receiver, as: name))
    case .outcome(let status):
      // Only the machine to which the message went may say how it ended.
      guard let proxy = residents[.member(entry.receiver)], proxy.machine == machine else { return }
      _ = try proxy.settle(entry.name, status)
      staging.settled[proxy.resident] = proxy
    case .cancellation:
      staging.steps.append(.cancel(to: entry.receiver, entry.name))
    }
  }

  /// Returns the file for the receiver's inbox; throws if the message cannot be delivered.
  ///
  /// What is checked here alone may refuse a message: an error of the bridge's own files passes.
  private func prepared(
    _ entry: FlowEntry, _ body: [UInt8], until expiry: (Date?) -> Date?
  ) throws(WormholeError) -> [UInt8] {
    let message = try residents.carrier.message(entry.name, body)
    guard message.receiver == entry.receiver else {
      throw WormholeError(
        .damaged, "deliver message", entry.name.id,
        because: "it names another receiver than its envelope")
    }
    if let sender = entry.name.sender {
      let sender = try Carrier.Resident(sender)
      try residents.check(sender, isOf: machine)
      // Nobody asks for the proxy of a sender that wants no outcome.
      if entry.name.wantsReceipt { _ = try residents.proxy(of: sender, on: machine) }
    }
    try residents.carrier.checkInbox(of: entry.receiver)
    let origin = MessageOrigin(machine: machine, receiver: entry.receiver, name: entry.name)
    return try message.delivered(from: origin.propertyList, expires: expiry(message.expires))
  }

  /// Stores a message that cannot be delivered, for its sender or for its receiver.
  private func refuse(
    _ entry: FlowEntry, _ number: Int, _ body: [UInt8], _ error: WormholeError,
    _ staging: inout Staging
  ) throws(WormholeError) {
    if entry.name.wantsReceipt {
      try refusals.add(number, entry, error.reason)
      staging.hasRefusals = true
    } else if !Mutants.has(.dropRefused) {
      // The sender removes its file as soon as the message is confirmed.
      let kept = KeptMessages.Message(entry, body, error.reason)
      if try !bury(kept) {
        try KeptMessages.add(kept, number, folder)
        staging.hasKept = true
      }
    }
    residents.container.note(refused: entry, from: machine, error)
  }

  /// Makes a message a dead letter of its receiver; false if the receiver can have none.
  private func bury(_ kept: KeptMessages.Message) throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      try residents.carrier.bury(kept.body, as: kept.name, to: kept.receiver, kept.reason)
      return true
    } catch {
      let hasManyLetters = error.code == .full && error.errno == nil
      guard error.isRefusal || hasManyLetters else { throw error }
      return false
    }
  }

  // MARK: Delivery

  /// Delivers what is staged.
  ///
  /// Each step may have been done before. A member whose directory was closed since the message was
  /// staged holds up no other.
  private func run(_ steps: [FlowCursor.Step]) throws(WormholeError) {
    var receivers: Set<String> = []
    for step in steps {
      switch step {
      case .deliver(let number, let receiver, let name):
        if try deliver(number, name, to: receiver) { receivers.insert(receiver) }
      case .cancel(let receiver, let name):
        do throws(WormholeError) {
          _ = try residents.carrier.cancel(name, to: receiver)
        } catch {
          guard error.isClosed else { throw error }
          residents.container.storage.log(
            .warning, "message '\(name.id)' of machine \(machine) is not cancelled: \(error)")
        }
      }
    }
    // The next cursor does not name these messages any more.
    for receiver in receivers {
      do throws(WormholeError) {
        try residents.carrier.makeDurable(receiver)
      } catch {
        // The messages are delivered; only a power cut could undo that.
        guard error.isClosed else { throw error }
        residents.container.storage.log(.warning, "\(error)")
      }
    }
  }

  /// Delivers a message, or refuses it; false for a refused one.
  private func deliver(
    _ number: Int, _ name: MessageName, to receiver: String
  ) throws(WormholeError) -> Bool {
    // A bridge that was killed may have refused the message before it removed the file.
    let isRefused = try refusals.contains(number)
    let isKept = try KeptMessages.contains(number, folder)
    if isRefused || isKept {
      try forget(number)
      return false
    }
    do throws(WormholeError) {
      _ = try residents.carrier.deliver(
        number.fileName, in: folder.directory, as: name, to: receiver)
      return true
    } catch {
      guard error.isClosed else { throw error }
      try refuseStaged(number, receiver, error)
      return false
    }
  }

  private func refuseStaged(
    _ number: Int, _ receiver: String, _ error: WormholeError
  ) throws(WormholeError) {
    // Without the file the message was delivered, or refused before.
    guard let bytes = try folder.bytes(of: number.fileName),
      let list = try? BinaryPropertyList.decode(bytes),
      let origin = MessageOrigin(list[MessageOrigin.key])
    else { return }
    var staging = Staging()
    let entry = FlowEntry(.message, to: receiver, origin.name)
    try refuse(entry, number, bytes, error, &staging)
    if staging.hasRefusals { try refusals.makeDurable() }
    if staging.hasKept { try folder.makeDurable() }
    try forget(number)
  }

  /// Removes a refused message durably: if it appeared again, it might be delivered all the same.
  private func forget(_ number: Int) throws(WormholeError) {
    try folder.remove(number.fileName)
    try folder.makeDurable()
  }

  /// Makes dead letters of the kept messages whose receivers can have them now.
  private func buryKept() throws(WormholeError) {
    for (file, kept) in try KeptMessages.all(in: folder) where try bury(kept) {
      try folder.remove(file)
    }
  }
}

extension WormholeError {
  /// Whether the message can never be delivered; every other error may pass.
  fileprivate var isRefusal: Bool {
    isClosed
      || [.damaged, .tooLarge, .nameTaken, .conflict, .invalidValue, .typeMismatch].contains(code)
  }

  /// Whether the directory of a member cannot be used, though all others can.
  fileprivate var isClosed: Bool { [.permissionDenied, .refused, .invalidName].contains(code) }
}

extension FlowBundle {
  /// A moment of the sending machine's clock, by the clock of this machine.
  ///
  /// What is left until then counts, less the time under way, whatever the two clocks show.
  fileprivate func local(_ moment: Date, _ delay: Int64, _ now: Int64) -> Date {
    let left = moment.timeIntervalSince1970 - Double(self.now) / 1e9 - Double(delay) / 1e9
    return Date(timeIntervalSince1970: Double(now) / 1e9 + left)
  }
}

extension Carrier.Resident {
  /// The sender of a message.
  package init(_ sender: MessageName.Sender) throws(WormholeError) {
    switch sender {
    case .member(let name): self = .member(name)
    case .guest(let digits):
      guard let digits = Incarnation(rawValue: digits) else {
        throw WormholeError(
          .invalidName, "stand in for", digits, because: "it is not the name of a guest")
      }
      self = .guest(digits)
    }
  }
}

extension SharedContainer {
  fileprivate func note(refused entry: FlowEntry, from machine: String, _ error: WormholeError) {
    storage.log(
      .warning, "message '\(entry.name.id)' of machine \(machine) is refused: \(error)")
  }
}
