internal import FoundationEssentials
package import Wormhole
package import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The flow of messages, outcomes and requests to cancel from this machine to another machine.
///
/// The life of a message, each step one rename:
///
///     inbox/<name>   waits
///     out/<machine>/<first>, a record   the number is bound to the name, for ever
///     claimed/<name>~1   in transit: published, perhaps many times, until the other machine
///                        confirms that it has the message on its own disk
///     receipts/<name>.ok, or nowhere   settled
///
/// The servers' acknowledgement settles nothing. If they lose what they have acknowledged, the
/// other machine sees a gap and reports its position, and the messages are published again.
package final class OutFlow {
  package let machine: String
  /// 16 hexadecimal digits that name the flow.
  package let flow: String
  let folder: BridgeFolder
  let residents: Residents
  package let refusals: Refusals

  /// What is settled, as in `flow.plist`.
  var settled: FlowState
  /// The records that are not settled, in their order and without gaps.
  var records: [FlowRecord] = []
  /// What the records contain, to find what is bound already.
  private var bound: Set<String> = []
  /// The large messages of which only some pieces have numbers, by receiver.
  var transfers: [Carrier.Resident: FlowTransfer] = [:]
  /// The members and queues to which a large message waits for its next pieces.
  var large: Set<Carrier.Resident> = []
  /// The messages of queues that are lent to the machine, and the ends of messages that the machine
  /// has lent.
  package weak var jobs: (any FlowJobs)? {
    // An error may have followed a record: then the source does not know the numbers yet.
    didSet { for record in records { jobs?.bound(record.entries) } }
  }
  /// The requests to cancel from this process.
  private var cancelled: Set<MessageName> = []
  /// The last number with a confirmation of the other machine.
  package internal(set) var confirmed: Int
  /// The last number that the servers have acknowledged.
  package private(set) var published: Int
  /// The last numbers of the bundles that are published and not confirmed.
  private var underWay: [Int] = []
  /// Messages of other machines that wait here, though their receiver's home has moved.
  ///
  /// Their senders' machines have to send them again: only they learn the outcome.
  package var strangers: [(proxy: Proxy, name: MessageName)] = []
  /// See ``takeFreed()``.
  var freed: Set<Carrier.Resident> = []
  /// The contexts that are too large to be carried, by receiver and sender.
  var tooLarge: Set<[String]> = []
  /// The proxies with changes since the last sync.
  var touched: [Carrier.Resident: Proxy] = [:]

  /// How many bundles may be unconfirmed: half of what a subject of the servers keeps.
  package static let mostBundles = 32
  /// How many entries may be unconfirmed.
  package static let mostEntries = 2048

  static let stateName = "flow.plist"

  /// Opens the flow, or begins a new one; repeats what a killed process may have left undone.
  package init(to machine: String, _ residents: Residents) throws(WormholeError) {
    (self.machine, self.residents) = (machine, residents)
    folder = try BridgeFolder(["out", machine], of: residents.container.storage)
    refusals = try Refusals(folder)
    if let list = try folder.read(Self.stateName) {
      guard let state = FlowState(list) else { throw folder.damaged(Self.stateName) }
      settled = state
    } else {
      let name = residents.container.storage.options.environment.randomName()
      settled = FlowState(flow: name, next: 1, chain: .start)
      try folder.replace(Self.stateName, by: settled.propertyList)
    }
    flow = settled.flow
    (confirmed, published) = (settled.next - 1, settled.next - 1)
    transfers = settled.transfers
    large = Set(transfers.keys)
    try readRecords()
    for record in records { try claim(record) }
  }

  private func readRecords() throws(WormholeError) {
    let files = try folder.names().filter { Int(fileName: $0) != nil }.sorted()
    for file in files {
      guard let record = try folder.read(file).flatMap({ FlowRecord($0) }), record.flow == flow
      else { throw folder.damaged(file) }
      // The process before this one was killed between the state and the removal of the record.
      if record.last < settled.next {
        try folder.remove(file)
        continue
      }
      guard record.first == next, record.before == chain(upTo: next - 1) else {
        throw folder.damaged(file)
      }
      keep(record)
    }
  }

  private func keep(_ record: FlowRecord) {
    records.append(record)
    for entry in record.entries {
      bound.insert(entry.identity)
      Self.note(entry, in: &transfers)
    }
  }

  func isBound(_ entry: FlowEntry) -> Bool { bound.contains(entry.identity) }

  /// The members and queues to which a large message waits for its next pieces.
  package var interrupted: Set<Carrier.Resident> { large }

  // MARK: Numbers

  /// The first number that no record has.
  package var next: Int { records.last.map { $0.last + 1 } ?? settled.next }

  /// The hash up to a number that is not settled, or the last settled one.
  func chain(upTo number: Int) -> EntryChain {
    guard let record = record(with: number) else {
      return records.last.map { $0.chain(upTo: $0.last) } ?? settled.chain
    }
    return record.chain(upTo: number)
  }

  /// The record with the number, or with the one behind it.
  private func record(with number: Int) -> FlowRecord? {
    records.first { $0.first - 1 <= number && number <= $0.last }
  }

  /// Whether everything that is bound to a number is published.
  package var isPublished: Bool { published + 1 >= next }
  /// Whether the other machine has stored everything that is bound to a number.
  package var isConfirmed: Bool { confirmed + 1 >= next }

  /// When the oldest record with unconfirmed entries was written; nil if there is none.
  var oldest: Date? {
    let record = records.first { $0.last > confirmed }
    return record.flatMap { try? folder.date(of: $0.first.fileName) }
  }

  /// Whether everything before the bundle is confirmed.
  func isConfirmed(before bundle: FlowBundle) -> Bool { bundle.first == confirmed + 1 }

  // MARK: Binding

  /// Binds numbers to what waits at proxies, and claims the messages.
  ///
  /// - Parameter full: members whose inboxes are full: messages to them wait here.
  /// - Returns: false if the window is full, and something may be left.
  package func collect(
    from proxies: [Proxy], full: Set<String> = []
  ) throws(WormholeError) -> Bool {
    var room = Self.mostEntries - (next - 1 - confirmed)
    guard room > 0 else { return false }
    strangers = []
    var entries = refusals.waiting.filter { !bound.contains($0.identity) }
    var draft = newDraft()
    entries += droppedTransfers()
    entries += try jobs?.entries(for: machine).filter { !bound.contains($0.identity) } ?? []
    for proxy in proxies {
      entries += try outcomes(for: proxy)
      guard proxy.machine == machine else { continue }
      if case .guest = proxy.resident { continue }
      for sent in try proxy.cancellations() where !cancelled.contains(sent) {
        entries.append(FlowEntry(.cancellation, to: proxy.resident, sent))
      }
      guard residents.carries(proxy) else { continue }
      if case .member(let name) = proxy.resident {
        entries += try contexts(at: proxy, to: name)
        guard !full.contains(name) else { continue }
      }
      try bind(proxy, &draft)
    }
    entries += draft.entries
    let isAll = entries.count <= room
    var rest = entries.prefix(room)
    let sources = Set(rest.compactMap(\.source))
    while !rest.isEmpty {
      let record = FlowRecord(
        flow: flow, first: next, before: chain(upTo: next - 1),
        entries: Array(rest.prefix(FlowRecord.mostEntries)))
      if !Mutants.has(.forgetRecord) {
        try folder.replace(record.first.fileName, by: record.propertyList)
      }
      keep(record)
      jobs?.bound(record.entries)
      try claim(record)
      rest = rest.dropFirst(record.entries.count)
      room -= record.entries.count
    }
    refusals.waiting.removeAll { $0.source.map { sources.contains($0) } ?? false }
    return isAll
  }

  /// The outcomes of messages that came from the machine.
  ///
  /// The home of the sender may have moved since. The message is in transit at the machine from
  /// which it came until that machine has the outcome.
  private func outcomes(for proxy: Proxy) throws(WormholeError) -> [FlowEntry] {
    try proxy.outcomes().compactMap { outcome in
      guard let origin = MessageOrigin(outcome.origin), origin.machine == machine else {
        return nil
      }
      let entry = FlowEntry(
        .outcome(outcome.status), to: origin.resident, origin.name,
        source: .receipt(of: proxy.resident, outcome.name))
      return bound.contains(entry.identity) ? nil : entry
    }
  }

  /// Ends the transfer of a message that the other machine has refused by its first piece.
  ///
  /// A program may retry the dead letter before the next look at the inbox. Without the entry, the
  /// message would go on behind pieces that the other machine has not kept.
  package func endTransfer(of message: FlowEntry) throws(WormholeError) {
    guard transfers[message.resident]?.name == message.name else { return }
    let record = FlowRecord(
      flow: flow, first: next, before: chain(upTo: next - 1),
      entries: [FlowEntry(.dropped, to: message.resident, message.name)])
    try folder.replace(record.first.fileName, by: record.propertyList)
    keep(record)
  }

  private func claim(_ record: FlowRecord) throws(WormholeError) {
    for entry in record.entries {
      switch entry.kind {
      case .message:
        // The name is free for this machine's programs as soon as nothing to it is in transit.
        guard let proxy = try residents.receiver(entry.resident) else { continue }
        // False if it was claimed before, or if its sender has cancelled it.
        _ = try proxy.claim(entry.name)
        touched[proxy.resident] = proxy
      case .cancellation: cancelled.insert(entry.name)
      case .outcome, .returned, .context, .piece, .dropped, .job, .worked: break
      }
    }
  }

  // MARK: Publishing

  /// The next bundle to publish; nil if everything is published, or too much is unconfirmed.
  ///
  /// - Parameter size: about how many bytes a bundle may have; one message of any size that
  ///   `largest` permits is a bundle of its own.
  package func bundle(
    generation: Int, size: Int, largest: Int
  ) throws(WormholeError) -> FlowBundle? {
    let first = published + 1
    guard first < next, underWay.count < Self.mostBundles, let record = record(with: first) else {
      return nil
    }
    var (entries, bodies): ([FlowEntry], [[UInt8]?]) = ([], [])
    var count = 0
    for number in first...record.last {
      let entry = record[number]
      let body = try content(of: entry, largest: largest)
      count += (body?.count ?? 0) + 128 + entry.identity.utf8.count
      if count > size, !entries.isEmpty { break }
      entries.append(entry)
      bodies.append(body)
    }
    let now = residents.container.storage.options.environment.sinceEpoch()
    return FlowBundle(
      flow: flow, generation: generation, first: first, before: chain(upTo: first - 1), now: now,
      entries: entries, bodies: bodies)
  }

  private func content(of entry: FlowEntry, largest: Int) throws(WormholeError) -> [UInt8]? {
    switch entry.kind {
    case .message: return try body(of: entry, largest: largest)
    case .context: return try context(of: entry)
    case .piece(let piece): return try bytes(of: piece, entry)
    case .job: return jobs?.body(of: entry)
    case .outcome, .cancellation, .returned, .dropped, .worked: return nil
    }
  }

  /// The file of a message; nil for one that is settled, or that cannot be carried.
  private func body(of entry: FlowEntry, largest: Int) throws(WormholeError) -> [UInt8]? {
    guard let proxy = try residents.receiver(entry.resident) else { return nil }
    let reason: String
    do throws(WormholeError) {
      // The message itself has arrived in pieces.
      if let size = try proxy.claimedSize(of: entry.name), size > FlowPiece.bytes {
        return []
      }
      guard let message = try proxy.read(entry.name) else { return nil }
      if message.bytes.count > largest {
        reason =
          "the message has \(message.bytes.count) bytes, and the servers carry \(largest) at most"
      } else {
        return message.bytes
      }
    } catch {
      guard error.code == .damaged || error.code == .tooLarge else { throw error }
      reason = error.reason
    }
    try proxy.giveUp(entry.name, reason)
    return nil
  }

  /// The servers have the bundle.
  package func note(published bundle: FlowBundle) {
    guard bundle.first == published + 1 else { return }
    published = bundle.last
    underWay.append(bundle.last)
  }

  /// The servers had everything up to the number before this process began.
  package func note(published number: Int) {
    guard number > published, number < next else { return }
    published = number
  }

  /// The servers may have lost what follows the number: it is published again.
  package func goBack(to number: Int) {
    guard !Mutants.has(.neverGoBack) else { return }
    published = max(confirmed, min(published, number))
    underWay.removeAll { $0 > published }
  }

  func note(confirmed number: Int) {
    confirmed = number
    published = max(published, number)
    underWay.removeAll { $0 <= number }
  }

  func forget(_ record: FlowRecord) {
    for entry in record.entries {
      bound.remove(entry.identity)
      if entry.kind == .cancellation { cancelled.remove(entry.name) }
    }
  }

  func write(_ state: FlowState) throws(WormholeError) {
    try folder.replace(Self.stateName, by: state.propertyList)
    settled = state
  }
}
