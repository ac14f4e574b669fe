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
  let folder: BridgeFolder
  let residents: Residents
  /// The refusals travel in the other direction.
  let refusals: Refusals
  private var cursor: FlowCursor?
  private var pieces: PieceStore
  /// Whether no record of the flow in the other direction binds a message any more.
  package var isFree: (FlowEntry) throws -> Bool = { _ in true }
  /// Ends the transfer of a message in the other direction, durably.
  package var endTransfer: (FlowEntry) throws(WormholeError) -> Void = { _ in }
  /// Whether the machine has read records up to a position that this machine has not reached.
  package var isBehind: (Int) -> Bool = { _ in false }
  /// Gets the ends of lent messages.
  package weak var jobs: (any FlowJobs)?
  /// The position up to which the machine had read the records when it published the bundle.
  private var records = 0

  static let cursorName = "cursor.plist"

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
    try buryKept()
  }

  /// The position; nil if nothing was ever received.
  package var position: FlowPosition? { cursor?.position }

  /// The flow of the numbers that are received now.
  var flow: String { cursor?.flow ?? "" }

  /// Whether the machine receives this flow.
  ///
  /// The sending machine has to acknowledge a new flow. Otherwise any machine with the right to
  /// publish could replace the flow.
  package func knows(_ flow: String) -> Bool { cursor?.flow == flow }

  /// Receives a flow that the machine has acknowledged as its own.
  ///
  /// Messages that were received of an earlier flow stay.
  package func begin(_ flow: String) throws(WormholeError) {
    guard !knows(flow) else { return }
    let fresh = FlowCursor(flow: flow)
    try pieces.removeAll()
    try folder.replace(Self.cursorName, by: fresh.propertyList)
    cursor = fresh
  }

  /// The machine was given up: what was received of it is delivered, and its pieces are of no use.
  func end() throws(WormholeError) { try pieces.removeAll() }

  /// What a bundle contained, and whether its entries were received.
  package enum BundleStatus: Hashable, Sendable {
    /// New entries, up to the one with this number.
    case received(Int)
    /// Only entries that were received before.
    case known
    /// An earlier number is missing.
    case gap
    /// Another machine, or a copy of this one, has sent the entries.
    case otherChain
    /// The bridge of an earlier start has sent the entries.
    case earlierGeneration

    var isReceived: Bool { if case .received = self { true } else { false } }
  }

  /// Stores the content of the bundles, and delivers the messages.
  ///
  /// - Parameters:
  ///   - bundles: bundles of the known flow, in the order of their arrival.
  ///   - delay: how long a bundle was under way, in nanoseconds, if that is known.
  /// - Returns: what each bundle was.
  package func receive(
    _ bundles: [(bundle: FlowBundle, delay: Int64)]
  ) throws(WormholeError) -> [BundleStatus] {
    guard var next = cursor else { return bundles.map { _ in .gap } }
    next.steps = []
    var statuses: [BundleStatus] = []
    var intake = Intake()
    for (bundle, delay) in bundles {
      let status = judge(bundle, next)
      statuses.append(status)
      guard case .received = status else { continue }
      next.generation = bundle.generation
      records = bundle.records
      for (offset, entry) in bundle.entries.enumerated() {
        let number = bundle.first + offset
        let isNew = number > next.number
        guard isNew || Mutants.has(.acceptKnown) else { continue }
        try take(
          entry, number, bundle.bodies[offset],
          age: delay, until: { $0.map { bundle.local($0, delay, self.now) } },
          &intake)
        guard isNew else { continue }
        next.number = number
        next.chain = next.chain.followed(by: entry)
      }
    }
    if next.number == cursor?.number, !Mutants.has(.acceptKnown) { return statuses }
    if Mutants.has(.confirmUnstored) { cursor = next }
    let hasPieces = try pieces.sync()
    if hasPieces || !intake.steps.isEmpty || intake.hasKept { try folder.makeDurable() }
    if intake.hasRefusals { try refusals.makeDurable() }
    for proxy in intake.settled.values { try proxy.makeDurable() }
    next.steps = intake.steps
    try folder.replace(Self.cursorName, by: next.propertyList)
    cursor = next
    try run(next.steps)
    return statuses
  }

  var now: Int64 { residents.container.storage.options.environment.sinceEpoch() }

  /// What has to be durable, and to be done, with the next cursor.
  struct Intake {
    var steps: [FlowCursor.Step] = []
    var settled: [Carrier.Resident: Proxy] = [:]
    var hasRefusals = false
    var hasKept = false
  }

  private func judge(_ bundle: FlowBundle, _ cursor: FlowCursor) -> BundleStatus {
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
    _ entry: FlowEntry, _ number: Int, _ body: [UInt8]?, age: Int64,
    until expiry: (Date?) -> Date?, _ intake: inout Intake
  ) throws(WormholeError) {
    switch entry.kind {
    case .message:
      // Without a body, the message was cancelled before it was published.
      if let body { try stage(entry, number, body, until: expiry, &intake) }
      intake.steps += pieces.end(entry.name).map { .remove(file: $0) }
    case .piece(let piece):
      try take(piece, entry, number, body, &intake)
    case .dropped: if !Mutants.has(.keepDropped) { try pieces.remove(entry.name) }
    case .outcome(let status):
      // Only the machine to which the message went may say how it ended.
      guard let proxy = try receiver(of: entry) else { return }
      if proxy.machine != machine {
        // A past home with pieces alone does not decide: the present home gets the message. A past
        // home with the whole message refuses the message once more.
        guard !entry.isEarly || Mutants.has(.trustEarly),
          try proxy.claimedSize(of: entry.name) != nil
        else { return }
      }
      if case .deadLettered(let reason) = status, try proxy.claim(entry.name) {
        // It was refused by its first piece, and is still here.
        try endTransfer(entry)
        try proxy.giveUp(entry.name, reason)
      } else {
        _ = try proxy.settle(entry.name, status)
      }
      intake.settled[proxy.resident] = proxy
    case .returned:
      guard let proxy = try receiver(of: entry) else { return }
      // The next start of the bridge would claim the message again for its old number.
      guard (try? isFree(entry)) == true else {
        throw WormholeError(
          .unreachable, "put back message", entry.name.id,
          because: "its number is not confirmed yet")
      }
      try proxy.takeBack(entry.name)
      intake.settled[proxy.resident] = proxy
    case .cancellation:
      intake.steps.append(.cancel(to: entry.resident, entry.name))
    case .context:
      if let body { try take(context: body, entry, number, &intake) }
    case .job(let job):
      if let body { try take(job, entry, number, body, age: age, until: expiry, &intake) }
    case .worked: try jobs?.end(entry, by: machine)
    }
  }

  /// Keeps a piece, or refuses its message while most of it is still at its sender.
  private func take(
    _ piece: FlowPiece, _ entry: FlowEntry, _ number: Int, _ bytes: [UInt8]?,
    _ intake: inout Intake
  ) throws(WormholeError) {
    guard let bytes else { return }
    let largest = residents.container.storage.options.largestFile
    guard piece.part == .file || piece.size <= largest else {
      guard piece.index == 0, !goesBack(entry) else { return }
      let error = WormholeError(
        .tooLarge, "deliver message", entry.name.id,
        because: "it has \(piece.size) bytes, and the container takes \(largest) at most")
      try refusals.add(number, of: flow, entry, error.reason, isEarly: true)
      intake.hasRefusals = true
      return residents.container.note(refused: entry, from: machine, error)
    }
    try pieces.add(piece, of: entry.name, bytes)
  }

  private func stage(
    _ entry: FlowEntry, _ number: Int, _ body: [UInt8], until expiry: (Date?) -> Date?,
    _ intake: inout Intake
  ) throws(WormholeError) {
    if goesBack(entry) {
      try refusals.add(number, of: flow, entry, nil)
      intake.hasRefusals = true
      return
    }
    let body = body.isEmpty ? try pieces.message(entry.name) ?? [] : body
    let (bytes, fileSize): ([UInt8], Int?)
    do throws(WormholeError) {
      (bytes, fileSize) = try prepared(entry, body, until: expiry)
    } catch {
      guard error.isRefusal else { throw error }
      return try refuse(entry, number, body, error, &intake)
    }
    let name = try residents.carrier.arrivalName(of: entry.name)
    try folder.write(number.fileName, bytes)
    if fileSize == 0 { try pieces.addEmptyFile(of: entry.name) }
    if fileSize != nil, let file = pieces.attachment(of: entry.name) {
      intake.steps.append(.attach(file: file, number: number, to: entry.resident, as: name))
    }
    intake.steps.append(.deliver(number: number, to: entry.resident, as: name))
  }

  /// Whether the receiver's home has moved, so that the sender's machine sends the message on.
  ///
  /// The present home decides about the delivery.
  private func goesBack(_ entry: FlowEntry) -> Bool {
    entry.name.wantsReceipt && residents.proxy(elsewhere: entry.resident) != nil
  }

  /// The proxy of a receiver to which this machine has sent, if the other machine is its home, or
  /// was.
  ///
  /// The entry waits if the owner has closed a directory of the proxy.
  private func receiver(of entry: FlowEntry) throws(WormholeError) -> Proxy? {
    guard let proxy = try residents.receiver(entry.resident),
      residents.isHome(machine, of: proxy)
    else { return nil }
    return proxy
  }

  /// Returns the file for the receiver's inbox, and the size of the file that was sent with it;
  /// throws if the message cannot be delivered.
  ///
  /// What is checked here alone may refuse a message: an error of the bridge's own files passes.
  private func prepared(
    _ entry: FlowEntry, _ body: [UInt8], until expiry: (Date?) -> Date?
  ) throws(WormholeError) -> (bytes: [UInt8], fileSize: Int?) {
    guard !body.isEmpty else {
      throw WormholeError(
        .damaged, "deliver message", entry.name.id, because: "it has not arrived completely")
    }
    let message = try residents.carrier.message(entry.name, body)
    guard message.receiver == entry.receiver else {
      throw WormholeError(
        .damaged, "deliver message", entry.name.id,
        because: "it names another receiver than its envelope")
    }
    if let sender = entry.name.sender {
      let sender = try Carrier.Resident(sender)
      try check(sender, of: entry)
      // Nobody asks for the proxy of a sender that wants no outcome.
      if entry.name.wantsReceipt { _ = try residents.proxy(of: sender, on: machine) }
    }
    try residents.carrier.checkInbox(of: entry.resident)
    let origin = MessageOrigin(
      machine: machine, receiver: entry.receiver, name: entry.name, isQueue: entry.isQueue)
    let bytes = try message.delivered(
      from: origin.propertyList, expires: expiry(message.expires))
    return (bytes, message.fileSize)
  }

  /// Refuses a sender that is not one of the machine, unless the machine hands on messages to a
  /// member whose home it was.
  ///
  /// The machine may have a name by a record that this machine has not read: then the bundle is
  /// received later.
  func check(
    _ sender: Carrier.Resident, of entry: FlowEntry
  ) throws(WormholeError) {
    do throws(WormholeError) {
      try residents.check(sender, isOf: machine)
    } catch {
      let mayHandOn = !entry.name.wantsReceipt
      if mayHandOn, residents.wasHome(machine, of: entry.resident) { return }
      if error.code == .conflict, !Mutants.has(.trustOldRecords), isBehind(records) {
        throw unready(entry, "has read later records than this machine")
      }
      // The machine knows more than this one, or is confused: the record may follow.
      guard mayHandOn, residents.proxy(elsewhere: entry.resident)?.machine == machine else {
        throw error
      }
      throw unready(
        entry,
        "hands it on, and is the home of '\(entry.receiver)' as far as this machine knows")
    }
  }

  private func unready(_ entry: FlowEntry, _ reason: String) -> WormholeError {
    WormholeError(
      .unreachable, "receive message", entry.name.id, because: "machine \(machine) \(reason)")
  }

  /// Stores a message that cannot be delivered, for its sender or for its receiver.
  func refuse(
    _ entry: FlowEntry, _ number: Int, _ body: [UInt8], _ error: WormholeError,
    _ intake: inout Intake
  ) throws(WormholeError) {
    if entry.name.wantsReceipt {
      try refusals.add(number, of: flow, entry, error.reason)
      intake.hasRefusals = true
    } else if !Mutants.has(.dropRefused) {
      // The sender removes its file as soon as the message is confirmed.
      let kept = KeptMessage(entry, body, error.reason)
      if try !bury(kept) {
        try KeptMessages.add(kept, number, of: flow, folder)
        intake.hasKept = true
      }
    }
    residents.container.note(refused: entry, from: machine, error)
  }

  /// Makes a message a dead letter of its receiver; false if the receiver can have none.
  func bury(_ kept: KeptMessage) throws(WormholeError) -> Bool {
    do throws(WormholeError) {
      try residents.carrier.bury(
        kept.body, as: kept.name, to: kept.isQueue ? .queue(kept.receiver) : .member(kept.receiver),
        kept.reason)
      return true
    } catch {
      let hasManyLetters = error.code == .full && error.errno == nil
      guard error.isRefusal || hasManyLetters else { throw error }
      return false
    }
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
  func note(refused entry: FlowEntry, from machine: String, _ error: WormholeError) {
    storage.log(
      .warning, "message '\(entry.name.id)' of machine \(machine) is refused: \(error)")
  }
}
