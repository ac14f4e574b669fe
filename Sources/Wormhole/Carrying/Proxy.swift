package import FoundationEssentials
package import WormholeContainerStorage
package import WormholePropertyLists
internal import WormholeSyscalls

/// The directory of a member or a guest whose home is another machine, for the process that carries
/// its messages and outcomes.
///
/// Only one process may carry for a proxy at a time: a bridge holds a lock of its own for that.
package final class Proxy: Sendable {
  package let resident: Carrier.Resident
  /// The machine; nil if `elsewhere.plist` cannot be read.
  package let machine: String?
  let carrier: Carrier
  let home: MemberDirectory
  private let settlement: Settlement
  private let shown = Monitor(Shown())
  /// The incarnation after whose arrival the files were swept.
  private let swept = Monitor<Incarnation?>(nil)

  private struct Shown {
    var presence: Presence?
    var profile: MemberProfile?
    /// Requests to and from the member's process.
    var exchange: LiveMailbox?
  }

  var shownExchange: LiveMailbox? { shown.withLock { $0.exchange } }

  init(
    _ carrier: Carrier, _ home: MemberDirectory, _ resident: Carrier.Resident, _ machine: String?
  ) {
    self.carrier = carrier
    self.home = home
    self.resident = resident
    self.machine = machine
    settlement = Settlement(
      container: carrier.container, home: home, claims: home, senders: carrier.senders,
      supersession: "another process has settled the message")
  }

  package var name: String { resident.name }

  private var isQueue: Bool { if case .queue = resident { true } else { false } }

  // MARK: Messages to the member

  /// The first waiting messages, in the order in which the member has to receive them.
  package func waiting(atMost count: Int = 4096) throws(WormholeError) -> [MessageName] {
    // A listing shows every file that existed when it began: no older message can follow. A later
    // one may be shown without its predecessor.
    let start = try carrier.now
    var listing = InboxListing(window: count)
    try naming("list messages to", name, at: home) { () throws(Errno) in
      try home.list(.inbox) { listing.add($0) }
    }
    // A stamp of the far future is from a wrong clock: its message would wait for ever.
    let future = try carrier.now.advanced(by: 1_000_000_000)
    return listing.finish().filter { name in
      name.stamp < start || name.stamp >= future || Mutants.has(.trustListing)
    }
  }

  /// The messages in transit, in the same order.
  package func claimed() throws(WormholeError) -> [MessageName] {
    try claims { ClaimedName($0)?.name }
  }

  /// The messages in transit that their senders want to cancel.
  package func cancellations() throws(WormholeError) -> [MessageName] {
    try claims { file in
      file.ends(with: MessageName.cancellationMark)
        ? MessageName(String(file.dropLast(MessageName.cancellationMark.utf8.count))) : nil
    }
  }

  private func claims(
    _ name: (String) -> MessageName?
  ) throws(WormholeError) -> [MessageName] {
    let found = try naming("list messages to", self.name, at: home) { () throws(Errno) in
      try home.names(in: .claimed) { name(String(cString: $0)) }
    }
    return found.sorted()
  }

  /// Claims a waiting message; false if its sender has cancelled it, or if it was claimed before.
  package func claim(_ name: MessageName) throws(WormholeError) -> Bool {
    return try naming("claim message", name.id, at: home, home.claim(ClaimedName(name, attempt: 1)))
  }

  /// Reads a claimed message; nil if it was settled.
  ///
  /// A file that cannot be read is an error, and the message can only be dead-lettered.
  package func read(_ name: MessageName) throws(WormholeError) -> CarriedMessage? {
    let operation = "read message"
    switch try home.read(ClaimedName(name, attempt: 1).text, in: .claimed, operation) {
    case .missing: return nil
    case .sound(let bytes, _):
      return try CarriedMessage(name, bytes, carrier.container.options.limits)
    case .damaged(let reason, _):
      throw WormholeError(
        .damaged, operation, name.id, because: "the message is damaged: \(reason)")
    }
  }

  /// Settles a claimed message, and notifies its sender on request; false if it was settled before.
  ///
  /// A dead letter stays where its receiver is: only the reason is stored here, for the sender.
  package func settle(
    _ name: MessageName, _ status: Outcome.Status
  ) throws(WormholeError) -> Bool {
    let claimed = ClaimedName(name, attempt: 1)
    var isOurs = true
    do throws(WormholeError) {
      if case .deadLettered(let reason) = status, name.wantsReceipt {
        try settlement.storeReason(name, attempts: 1, reason)
        try forgetReasons()
      }
      try settlement.end(claimed, MessageEnd(status))
      home.dropFile(of: name)
    } catch {
      guard error.code == .superseded else { throw error }
      isOurs = false
    }
    _ = try naming(
      "settle message", name.id, at: home, home.remove(name.cancellationFile, from: .claimed))
    return isOurs
  }

  /// Dead-letters a claimed message that cannot be carried, and notifies its sender on request.
  ///
  /// The letter lies here, among the dead letters of the proxy: it can be retried and discarded.
  package func giveUp(_ name: MessageName, _ reason: String) throws(WormholeError) {
    do throws(WormholeError) {
      try settlement.giveUp(ClaimedName(name, attempt: 1), attempts: 1, reason)
    } catch {
      if error.code != .superseded { throw error }
    }
    // A request that stayed would cancel the message after a retry.
    _ = try naming(
      "dead-letter message", name.id, at: home, home.remove(name.cancellationFile, from: .claimed))
  }

  /// Puts a claimed message back, marked as possibly received before: it may be in transit under
  /// an identity that this machine no longer has.
  ///
  /// A message that its sender wants to cancel is cancelled, as one that waits again would be. A
  /// message that no later call can read becomes a dead letter, and holds up no other.
  package func putBack(_ name: MessageName) throws(WormholeError) {
    guard try !isCancelled(name) else { return try cancel(name) }
    let bytes: [UInt8]
    do throws(WormholeError) {
      guard let message = try read(name) else { return }
      bytes = try message.repeated()
    } catch {
      guard error.meansUnreadable || error.code == .invalidValue else { throw error }
      return try giveUp(name, error.reason)
    }
    try naming("put back message", name.id, at: home) { () throws(Errno) in
      // The waiting file comes first: a process that is killed in between does both again. The file
      // is new, and after a power cut it is all that is left of a message sent with `.power`.
      try home.place(bytes, as: name.text, in: .inbox, durability: .power, replacing: true)
      try home.makeDurable(.inbox)
      _ = try home.remove(ClaimedName(name, attempt: 1).text, from: .claimed)
    }
    // A sender that has found the claim after its request counts on the request.
    if try isCancelled(name) { try cancel(name) }
  }

  /// Cancels a message that is put back: it waits, is claimed, or both after a kill.
  func cancel(_ name: MessageName) throws(WormholeError) {
    let operation = "cancel message"
    let sender = try naming(operation, name.id, at: home, carrier.senders.home(of: name))
    guard try MessageCancellation.end(name, at: home, .cancelled, sender, carrier.container) else {
      _ = try settle(name, .cancelled)
      return
    }
    try naming(operation, name.id, at: home) { () throws(Errno) in
      _ = try home.remove(ClaimedName(name, attempt: 1).text, from: .claimed)
      _ = try home.remove(name.cancellationFile, from: .claimed)
    }
  }

  /// Whether the sender of a claimed message wants to cancel the message.
  func isCancelled(_ name: MessageName) throws(WormholeError) -> Bool {
    try naming(
      "read message", name.id, at: home, home.status(of: name.cancellationFile, in: .claimed))
      != nil
  }

  /// Makes durable what was claimed and settled until now.
  package func makeDurable() throws(WormholeError) {
    try naming("sync", name, at: home) { () throws(Errno) in
      for part in [MemberDirectory.Part.claimed, .inbox] { try home.makeDurable(part) }
      if !isQueue { try home.makeDurable(.receipts) }
    }
  }

  /// How many reasons are kept for senders that have not asked yet.
  private static let mostReasons = 1024

  /// Removes the oldest reasons without a letter, which nobody else removes.
  private func forgetReasons() throws(WormholeError) {
    try naming("dead-letter a message to", name, at: home) { () throws(Errno) in
      let files = Set(try home.names(in: .dead) { String(cString: $0) })
      let reasons = files.filter { file in
        file.ends(with: MessageName.reasonMark)
          && !files.contains(String(file.dropLast(MessageName.reasonMark.utf8.count)))
      }
      let surplus = reasons.count - Self.mostReasons
      guard surplus > 0 else { return }
      // After the priority, names begin with the stamp.
      for file in reasons.sorted(by: { $0.dropFirst() < $1.dropFirst() }).prefix(surplus) {
        _ = try home.remove(file, from: .dead)
      }
    }
  }

  /// Removes the files whose senders have died before they placed the messages.
  ///
  /// No member joins under the name of a proxy, so its carrier does what a joining member does for
  /// its own directory. A file stays as long as its message waits, is in transit or is a dead
  /// letter, and as long as its sender or a carrier holds the lock of the file. Only the thread
  /// that claims the messages of the proxy may call this.
  package func sweepFiles() {
    // Workers of this machine claim messages of a queue, and sweep its files when they begin.
    guard !isQueue, !Mutants.has(.keepOrphans) else { return }
    carrier.container.sweepFiles(of: home)
  }

  // MARK: Outcomes for the member

  /// The outcome of a message that the member has sent to a member of this machine.
  package struct CarriedOutcome: Sendable {
    /// The message's name on this machine.
    package let name: MessageName
    package let status: Outcome.Status
    /// What the carrier has written into the message; nil also if the file cannot be read.
    package let origin: PropertyListValue?
  }

  /// The first outcomes that wait for the member, in the order in which the messages arrived here.
  package func outcomes(atMost count: Int = 4096) throws(WormholeError) -> [CarriedOutcome] {
    // A queue sends nothing.
    guard !isQueue else { return [] }
    let receipts = try naming("list outcomes of", name, at: home) { () throws(Errno) in
      try Receipts.list(home).sorted { $0.name < $1.name }
    }
    var found: [CarriedOutcome] = []
    for receipt in receipts.prefix(count) {
      let header: MessageFile.Header?
      switch try home.read(receipt.text, in: .receipts, "read outcome of") {
      case .missing: continue
      case .damaged: header = nil
      case .sound(let bytes, _):
        let decoder = BinaryDecoder(limits: carrier.container.options.limits)
        header = (try? MessageFile.Document(bytes, decoder))?.header
      }
      found.append(
        CarriedOutcome(
          name: receipt.name,
          status: Outcome.Status(receipt, to: header?.to, carrier.container.storage),
          origin: header?.origin))
    }
    return found
  }

  /// Removes an outcome, after the member's machine has stored it.
  package func forget(
    _ name: MessageName, _ status: Outcome.Status
  ) throws(WormholeError) {
    try naming("settle outcome of message", name.id, at: home) { () throws(Errno) in
      let receipt = ReceiptName(name, MessageEnd(status))
      _ = try home.remove(receipt.text, from: .receipts)
    }
  }

  // MARK: Presence

  /// Shows the member as running, with the given profile; changes the profile if it is shown
  /// already.
  ///
  /// The member stops running here with ``disappear()``, or at once with the end of this process.
  package func appear(
    as incarnation: Incarnation, program: String, since: Date, info: [String: String] = [:]
  ) throws(WormholeError) {
    let profile = MemberProfile(
      of: name, incarnation, program: program, since: since, info: info)
    try shown.withLock { shown throws(WormholeError) in
      guard shown.profile != profile else { return }
      let folder: OpenDirectory
      do throws(Errno) {
        if shown.presence == nil {
          guard let presence = try home.takePresence() else { throw .busy }
          shown.presence = presence
        }
        // A reader of the profile must find the folder.
        folder = try home.makeLive(incarnation)
      } catch {
        guard error == .busy else {
          throw WormholeError(error, Carrier.standing, name, at: home)
        }
        throw WormholeError(
          .nameTaken, Carrier.standing, name, because: "another process has the name",
          hint: "end the other process", errno: error)
      }
      if shown.exchange?.incarnation != incarnation {
        shown.exchange?.close()
        shown.exchange = try exchange(in: folder, as: incarnation)
      }
      try home.write(profile)
      shown.profile = profile
    }
    let isNew = swept.withLock { swept in
      defer { swept = incarnation }
      return swept != incarnation
    }
    if isNew { sweepFiles() }
  }

  /// Shows the member as not running: it has ended, or its machine cannot be reached.
  package func disappear() {
    let held = shown.withLock { shown in
      defer { shown = Shown() }
      return shown
    }
    held.exchange?.close()
    guard let presence = held.presence, presence.isHeld else { return }
    if let profile = held.profile { try? home.removeLive(profile.incarnation) }
    presence.release()
  }
}
