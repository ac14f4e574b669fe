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
/// The pieces of a large message, or of its file, are collected in a file beside the staged
/// messages; see ``PieceStore``. Before its message is delivered, the file gets a second name among
/// the receiver's files, so the receiver finds what a sender of its own machine would have sent.
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
  private var pieces: PieceStore

  private static let cursorName = "cursor.plist"

  /// Opens what was received until now; repeats what a killed process may have left undone.
  package init(
    from machine: String, _ residents: Residents, _ refusals: Refusals
  ) throws(WormholeError) {
    (self.machine, self.residents, self.refusals) = (machine, residents, refusals)
    folder = try BridgeFolder(["in", machine], of: residents.container.storage)
    pieces = try PieceStore(folder)
    if !Mutants.has(.forgetCursor), let list = try folder.read(Self.cursorName) {
      guard let found = FlowCursor(list) else { throw folder.damaged(Self.cursorName) }
      cursor = found
      try run(found.steps)
    }
    // Whatever else is staged is sent again.
    for file in try folder.names() where Int(fileName: file) != nil { try folder.remove(file) }
    pieces = try PieceStore(folder)
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
    try pieces.removeAll()
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
    let hasPieces = try pieces.sync()
    if hasPieces || !staging.steps.isEmpty { try folder.makeDurable() }
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
      if let body {
        do throws(WormholeError) {
          try stage(entry, number, body, until: expiry, &staging)
        } catch {
          guard Self.isForEver(error) else { throw error }
          if entry.name.wantsReceipt {
            try refusals.add(number, entry, error.reason)
            staging.hasRefusals = true
          }
          residents.container.note(refused: entry, from: machine, error)
        }
      }
      staging.steps += pieces.end(entry.name).map { .remove(file: $0) }
    case .piece(let piece):
      try take(piece, entry, number, body, &staging)
    case .outcome(let status):
      // Only the machine to which the message went may say how it ended.
      guard let proxy = residents[.member(entry.receiver)], proxy.machine == machine else { return }
      if case .deadLettered(let reason) = status, try proxy.claim(entry.name) {
        // It was refused by its first piece, and is still here.
        try proxy.giveUp(entry.name, reason)
      } else {
        _ = try proxy.settle(entry.name, status)
      }
      staging.settled[proxy.resident] = proxy
    case .cancellation:
      staging.steps.append(.cancel(to: entry.receiver, entry.name))
    }
  }

  /// Keeps a piece, or refuses its message while most of it is still at its sender.
  private func take(
    _ piece: FlowPiece, _ entry: FlowEntry, _ number: Int, _ bytes: [UInt8]?,
    _ staging: inout Staging
  ) throws(WormholeError) {
    guard let bytes else { return }
    let largest = residents.container.storage.options.largestFile
    guard piece.part == .file || piece.size <= largest else {
      guard piece.index == 0 else { return }
      let error = WormholeError(
        .tooLarge, "deliver message", entry.name.id,
        because: "it has \(piece.size) bytes, and the container takes \(largest) at most")
      try refusals.add(number, entry, error.reason)
      staging.hasRefusals = true
      return residents.container.note(refused: entry, from: machine, error)
    }
    try pieces.add(piece, of: entry.name, bytes)
  }

  private func stage(
    _ entry: FlowEntry, _ number: Int, _ body: [UInt8], until expiry: (Date?) -> Date?,
    _ staging: inout Staging
  ) throws(WormholeError) {
    guard let body = body.isEmpty ? try pieces.message(entry.name) : body else {
      throw WormholeError(
        .damaged, "deliver message", entry.name.id, because: "it has not arrived completely")
    }
    let message = try residents.carrier.message(entry.name, body)
    guard message.receiver == entry.receiver else {
      throw WormholeError(
        .damaged, "deliver message", entry.name.id,
        because: "it names another receiver than its envelope")
    }
    if entry.name.wantsReceipt, let sender = entry.name.sender {
      _ = try residents.proxy(of: Carrier.Resident(sender), on: machine)
    }
    let origin = MessageOrigin(machine: machine, receiver: entry.receiver, name: entry.name)
    let bytes = try message.delivered(
      from: origin.propertyList, expires: expiry(message.expires))
    let name = try residents.carrier.arrivalName(of: entry.name)
    try folder.write(number.fileName, bytes)
    if message.fileSize == 0 { try pieces.addEmptyFile(of: entry.name) }
    if message.fileSize != nil, let file = pieces.attachment(of: entry.name) {
      staging.steps.append(.attach(file: file, number: number, to: entry.receiver, as: name))
    }
    staging.steps.append(.deliver(number: number, to: entry.receiver, as: name))
  }

  /// Whether the message can never be delivered; every other error may pass.
  private static func isForEver(_ error: WormholeError) -> Bool {
    [.damaged, .tooLarge, .nameTaken, .conflict, .invalidName, .invalidValue, .typeMismatch]
      .contains(error.code)
  }

  /// Delivers what is staged.
  ///
  /// Each step may have been done before.
  private func run(_ steps: [FlowCursor.Step]) throws(WormholeError) {
    var receivers: Set<String> = []
    var (attached, unneeded): (AttachedFile?, [String]) = (nil, [])
    for step in steps {
      switch step {
      case .attach(let file, let number, let receiver, let name):
        // The receiver of a delivered message may have taken the file.
        guard try folder.contains(number.fileName) else { continue }
        attached = try residents.carrier.attach(
          file, in: folder.directory, to: name, of: receiver)
      case .remove(let file): unneeded.append(file)
      case .deliver(let number, let receiver, let name):
        _ = try residents.carrier.deliver(
          number.fileName, in: folder.directory, as: name, to: receiver)
        receivers.insert(receiver)
        attached = nil
      case .cancel(let receiver, let name):
        _ = try residents.carrier.cancel(name, to: receiver)
      }
    }
    // The next cursor does not name these messages any more.
    for receiver in receivers { try residents.carrier.makeDurable(receiver) }
    for file in unneeded { try folder.remove(file) }
    withExtendedLifetime(attached) {}
  }
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
