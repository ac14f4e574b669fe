public import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// A message, or a batch of messages, sent to a member and not settled.
public struct QueuedMessage: Hashable, Sendable {
  /// The sender's id for the message.
  public let id: String
  /// The member that sent the message; nil if no member is named.
  public let from: String?
  /// The kind given by the sender; nil if the file is unreadable.
  public let kind: String?
  /// When the message was sent, by the sender's clock; nil if the file is unreadable.
  public let sentAt: Date?
  /// Until when the message is delayed; nil for a message that is not delayed, or no longer.
  public internal(set) var notBefore: Date?
  /// The sender's ordering key; nil for none, or if the file is unreadable.
  public let orderingKey: String?
  /// The headers that the sender gave; none if the file is unreadable.
  public let headers: [String: String]
  /// How many messages the file contains.
  public let count: Int
  /// The size of the file in bytes.
  public let size: Int
  /// Whether the message goes before all messages that are not urgent.
  public let isUrgent: Bool
  /// The number of the attempt in progress, or interrupted by the end of its receiver; 0 for a
  /// waiting message, and for one whose interrupted attempt does not count.
  public let attempt: Int
  /// Why the file is unreadable; nil for a readable file.
  public let damage: String?

  /// The state of the message.
  public internal(set) var state: Sent.State
}

extension QueuedMessage {
  /// The place among all messages: the claimed ones come first, and the delayed ones last.
  fileprivate var rank: Int { state == .delayed ? 2 : state == .waiting ? 1 : 0 }

}

extension Peer {
  /// The peer's messages that are not settled: first the claimed ones, then the waiting ones, each
  /// in the order of delivery, and then the delayed ones.
  ///
  /// Reading blocks no process, and changes nothing, except that expired messages are settled and
  /// messages that are due are no longer delayed. An expired message is not listed, even if it
  /// cannot be settled: in a container opened for reading, for example. Each file is read for its
  /// properties; an unreadable file is listed too, with the cause.
  public var queue: [QueuedMessage] {
    get throws(WormholeError) {
      var found: [(name: MessageName, message: QueuedMessage)] = []
      try forEachUnsettled {
        found.append(($0, $1))
        return true
      }
      // A message that moved during the listing was found last.
      return found.sorted { one, other in
        let (rank, otherRank) = (one.message.rank, other.message.rank)
        return rank == otherRank ? one.name < other.name : rank < otherRank
      }.map(\.message)
    }
  }

  /// Passes the messages of ``queue`` to the body until the body returns false, and keeps only the
  /// names of the other messages in memory.
  ///
  /// The order is the same, except that messages that move during the listing come after the
  /// waiting ones, or after the delayed ones.
  package func forEachQueued(_ body: (QueuedMessage) -> Bool) throws(WormholeError) {
    try forEachUnsettled { body($1) }
  }

  private func forEachUnsettled(
    _ body: (MessageName, QueuedMessage) -> Bool
  ) throws(WormholeError) {
    guard let home = try container.storage.existingMember(name, in: folder) else { return }
    DueMessages.deliver(to: home, container)
    try naming("list messages to", name, at: home) { () throws(Errno) in
      var listing = QueueListing(home, container, isElsewhere: try home.elsewhere != nil)
      try listing.run(body)
    }
  }

  /// Whether ``queue`` has a message, another one than the given one; however many wait, only the
  /// first is read.
  package func hasQueuedMessage(except id: String?) throws(WormholeError) -> Bool {
    guard let home = try container.storage.existingMember(name, in: folder) else { return false }
    return try naming("list messages to", name, at: home) { () throws(Errno) in
      try home.hasMessage { place in
        guard place.name.id != id else { return false }
        return QueueListing(home, container, isElsewhere: false).message(at: place) != nil
      }
    }
  }

  /// Cancels a waiting message in the peer's inbox, whichever process has sent it; the sender is
  /// notified on request.
  ///
  /// If several senders have given the same id, the messages of all of them are cancelled.
  ///
  /// - Returns: `cancelled` if at least one message was cancelled; claimed messages are not. For a
  ///   message on its way to another machine, `requested`.
  public func cancel(id: String) throws(WormholeError) -> Cancellation {
    guard let home = try container.storage.existingMember(name, in: folder) else { return .tooLate }
    var isDone = false
    let senders = SenderHomes(container.storage)
    for delayed in try files(id, in: .later, of: home).compactMap({ DelayedName($0.text) }) {
      let taken = try MessageCancellation.end(
        delayed, at: home, .cancelled, senderHome(of: delayed.name, senders, home), container)
      isDone = isDone || taken
    }
    let waiting = try files(id, in: .inbox, of: home)
    let unclaimed = try naming("find message", id, at: home, home.unclaimed(where: { $0.id == id }))
    for name in waiting + unclaimed.map(\.name) {
      let taken = try MessageCancellation.end(
        name, at: home, .cancelled, senderHome(of: name, senders, home), container)
      isDone = isDone || taken
    }
    // Of several senders, another one's message may be on its way to another machine.
    let isRequested = try MessageCancellation.request({ $0.id == id }, at: home)
    return isRequested && !isDone ? .requested : Cancellation(isDone)
  }

  private func senderHome(
    of name: MessageName, _ senders: SenderHomes, _ home: MemberDirectory
  ) throws(WormholeError) -> MemberDirectory? {
    try naming("cancel message", name.id, at: home, senders.home(of: name))
  }

  /// Returns the files of a part with an id, in order.
  func files(
    _ id: String, in part: MemberDirectory.Part, of home: MemberDirectory
  ) throws(WormholeError) -> [MessageName] {
    let found = try naming("find message", id, at: home) { () throws(Errno) in
      try home.names(in: part) { MessageName($0).flatMap { $0.id == id ? $0 : nil } }
    }
    return found.sorted()
  }
}

/// A listing of the unsettled messages of a member or a queue.
///
/// Messages are read shortly before their turn comes: of the others, only the names are in memory.
private struct QueueListing {
  /// How many messages are read at a time.
  private static let step = 64

  private let home: MemberDirectory
  private let container: SharedContainer
  private let isElsewhere: Bool
  private let reader: QueuedMessageReader
  private let senders: SenderHomes
  private let now: Date
  /// The messages that were found claimed, or returned to the queue.
  private var claimed: Set<MessageName> = []
  /// The messages that were moved before they were read.
  private var moved = FileNameList()

  private typealias Claims = [MessageName: (name: ClaimedName, holder: MemberDirectory)]

  init(_ home: MemberDirectory, _ container: SharedContainer, isElsewhere: Bool) {
    self.home = home
    self.container = container
    self.isElsewhere = isElsewhere
    reader = QueuedMessageReader(home, container.options.limits)
    senders = SenderHomes(container.storage)
    // Of a member whose home is another machine, its home decides what has expired.
    now =
      isElsewhere
      ? Date.distantPast : Date(sinceEpoch: container.options.environment.sinceEpoch())
  }

  /// - Parameter body: returns whether the listing continues.
  mutating func run(_ body: (MessageName, QueuedMessage) -> Bool) throws(Errno) {
    var (delayed, waiting) = (FileNameList(), FileNameList())
    var claims: Claims = [:]
    try home.forEachMessageFile {
      delayed.add($0)
    } waiting: {
      waiting.add($0)
    } claimed: {
      claims[$0.name] = ($0, $1)
    }
    delayed.sort()
    waiting.sort()
    guard pass(claims, body), pass(waiting, body), try passMoved(body) else { return }
    var due: Set<String> = []
    let goesOn = delayed.forEach { file in
      guard let name = DelayedName(file) else { return true }
      guard let message = message(at: .delayed(name)) else {
        due.insert(name.name.unique)
        return true
      }
      return body(name.name, message)
    }
    guard goesOn, !due.isEmpty else { return }
    // A delayed message that was moved before it was read has become due; its name is another one.
    var arrived = FileNameList()
    func note(_ name: MessageName) {
      // The other ones were passed already, or have been settled.
      if due.contains(name.unique), !waiting.contains(name.text) { arrived.add(name.text) }
    }
    try home.list(.inbox) { if let name = MessageName($0) { note(name) } }
    try home.forEachInHand { claimed, _ in note(claimed.name) }
    moved = arrived
    _ = try passMoved(body)
  }

  /// Passes the messages that were moved before they were read.
  private mutating func passMoved(
    _ body: (MessageName, QueuedMessage) -> Bool
  ) throws(Errno) -> Bool {
    // Such a message was claimed, or also requeued, or starts its next attempt.
    for _ in 0..<2 where !moved.isEmpty {
      var again = moved
      moved = FileNameList()
      again.sort()
      var claims: Claims = [:]
      try home.forEachInHand { if again.contains($0.name.text) { claims[$0.name] = ($0, $1) } }
      guard pass(claims, body), pass(again, body) else { return false }
    }
    return true
  }

  /// Passes the messages that are claimed and were not passed before.
  private mutating func pass(
    _ claims: Claims, _ body: (MessageName, QueuedMessage) -> Bool
  ) -> Bool {
    var found: [(message: QueuedMessage, claim: Claims.Value)] = []
    for claim in claims.values where !claimed.contains(claim.name.name) {
      if let message = message(at: MessageLocation(claim.name, claim.holder)) {
        found.append((message, claim))
      } else {
        moved.add(claim.name.name.text)
      }
    }
    // Asked after the messages were read: a receiver that has ended since claims no more.
    var isPresent: [String: Bool] = [:]
    for (message, (name, holder)) in found.sorted(by: { $0.claim.name.name < $1.claim.name.name }) {
      let isHeld = isPresent[holder.path] ?? (try? holder.isPresent()) ?? true
      isPresent[holder.path] = isHeld
      var message = message
      // Otherwise the message was claimed in vain, and waits again.
      if message.state == .claimed {
        message.state = isElsewhere ? .inTransit : isHeld ? .claimed : .interrupted
      }
      claimed.insert(name.name)
      guard body(name.name, message) else { return false }
    }
    return true
  }

  /// Passes messages that wait.
  private mutating func pass(
    _ waiting: FileNameList, _ body: (MessageName, QueuedMessage) -> Bool
  ) -> Bool {
    let (reader, claimed, now) = (reader, claimed, now)
    let ahead = ReadAhead(waiting.count, step: Self.step) { range in
      var found: [(file: WaitingFile, content: QueuedMessageReader.WaitingContent?)] = []
      found.reserveCapacity(range.count)
      var inbox: OpenDirectory?
      waiting.forEach(in: range) { file in
        guard let file = WaitingFile(listed: file), !claimed.contains(file.name) else {
          return true
        }
        if inbox == nil, file.part == .inbox { inbox = reader.openInbox() }
        found.append((file, reader.waiting(file, at: now, inbox: inbox)))
        return true
      }
      return found
    }
    defer { ahead.stop() }
    while let found = ahead.next() {
      for (file, content) in found {
        switch content {
        case nil: moved.add(file.name.text)
        case .message(let message)?:
          if file.part == .claimed { self.claimed.insert(file.name) }
          if !body(file.name, message) { return false }
        case .expired?: if !end(file.name) { moved.add(file.name.text) }
        }
      }
    }
    return true
  }

  /// Settles an expired message; false if it was claimed just before.
  private func end(_ name: MessageName) -> Bool {
    guard !container.storage.options.isForReading else { return true }
    return (try? Expiry.end(SentName(name), at: home, senders, container)) ?? true
  }

  /// Returns the message at a place; nil if the message is gone, or has expired.
  func message(at place: MessageLocation) -> QueuedMessage? {
    switch place {
    case .inHand(let claimed, let holder):
      return QueuedMessageReader(holder, container.options.limits)
        .message(claimed.name, claimed.text, .claimed, claimed.attempt)
    case .delayed(let delayed):
      var message = reader.message(delayed.name, delayed.text, .later, 0)
      message?.notBefore = Date(sinceEpoch: delayed.due)
      return message
    case .waiting(let file):
      switch reader.waiting(file, at: now) {
      case nil: return nil
      case .message(let message)?: return message
      case .expired?:
        _ = end(file.name)
        return nil
      }
    }
  }
}

/// A reader of message files for processes other than the receiver.
struct QueuedMessageReader {
  private let home: MemberDirectory
  private let limits: PropertyListLimits

  init(_ home: MemberDirectory, _ limits: PropertyListLimits) {
    self.home = home
    self.limits = limits
  }

  /// Returns when a waiting message expires, in nanoseconds since 1970; nil if never, or if
  /// unknown.
  func expiry(of file: WaitingFile) -> Int64? { expiry(of: file.name, file.text, in: file.part) }

  /// Returns the same for a message at any place.
  ///
  /// A claimed message may be returned as if never claimed, and expires then.
  func expiry(at place: MessageLocation) -> Int64? {
    switch place {
    case .delayed(let delayed): expiry(of: delayed.name, delayed.text, in: .later)
    case .waiting(let file): expiry(of: file)
    case .inHand(let claimed, let holder):
      claimed.isRepeated
        ? nil
        : QueuedMessageReader(holder, limits).expiry(of: claimed.name, claimed.text, in: .claimed)
    }
  }

  private func expiry(
    of name: MessageName, _ file: String, in part: MemberDirectory.Part
  ) -> Int64? {
    guard let expires = try? header(file, part)?.expiry(of: name) else { return nil }
    // A made-up message may contain any number, or none.
    return Int64(exactly: (expires.timeIntervalSince1970 * 1e9).rounded(.up))
  }

  /// A waiting message, or an expired one.
  enum WaitingContent: Sendable {
    case message(QueuedMessage)
    /// The message's time to live has passed.
    case expired
  }

  /// Returns the open inbox, for the reading of many messages; nil if it cannot be opened.
  func openInbox() -> OpenDirectory? { try? home.part(.inbox) }

  /// Returns a waiting message; nil if the message is gone.
  ///
  /// - Parameter inbox: the open inbox, if the caller has it.
  func waiting(
    _ file: WaitingFile, at now: Date, inbox: OpenDirectory? = nil
  ) -> WaitingContent? {
    var hasExpired = false
    let directory = file.part == .inbox ? inbox : nil
    var message = message(file.name, file.text, file.part, 0, of: directory) { header in
      hasExpired = header.hasExpired(file.name, by: now)
    }
    message?.state = .waiting
    return message.map { hasExpired ? .expired : .message($0) }
  }

  /// Returns the message in a file; nil if the file is gone.
  ///
  /// - Parameters:
  ///   - directory: the open part, if the caller has it.
  ///   - look: receives the file's header, if readable.
  func message(
    _ name: MessageName, _ file: String, _ part: MemberDirectory.Part, _ attempt: Int,
    of directory: OpenDirectory? = nil, _ look: (MessageFile.Header) -> Void = { _ in }
  ) -> QueuedMessage? {
    var header: MessageFile.Header?
    var damage: String?
    let size: Int
    do throws(WormholeError) {
      switch try content(file, part, of: directory) {
      case .missing: return nil
      case .damaged(let reason, let status): (damage, size) = (reason, status.size)
      case .sound(let bytes, let status):
        size = status.size
        do throws(WormholeError) { header = try self.header(bytes, file) } catch {
          damage = error.reason
        }
      }
    } catch {
      // Not read at all: a link, or another user's file.
      guard let status = try? home.status(of: file, in: part) else { return nil }
      (damage, size) = (error.reason, status.size)
    }
    if let header { look(header) }
    return QueuedMessage(
      id: name.id, from: name.senderName, kind: header?.kind, sentAt: header?.sent,
      orderingKey: header?.orderingKey, headers: header?.headers?.fields ?? [:], count: name.count,
      size: size, isUrgent: name.isUrgent, attempt: attempt, damage: damage,
      state: part == .later ? .delayed : part == .inbox ? .waiting : .claimed)
  }

  /// Returns the header of a file; nil if the file is gone.
  func header(
    _ file: String, _ part: MemberDirectory.Part
  ) throws(WormholeError) -> MessageFile.Header? {
    switch try content(file, part) {
    case .missing: return nil
    case .damaged(let reason, _):
      throw WormholeError(.damaged, Self.operation, file, because: reason)
    case .sound(let bytes, _): return try header(bytes, file)
    }
  }

  private static let operation = "read message"

  private func content(
    _ file: String, _ part: MemberDirectory.Part, of directory: OpenDirectory? = nil
  ) throws(WormholeError) -> FoundFile {
    try home.read(file, in: part, Self.operation, of: directory)
  }

  private func header(
    _ bytes: [UInt8], _ file: String
  ) throws(WormholeError) -> MessageFile.Header {
    let limits = limits
    return try WormholeError.reading(Self.operation, file) {
      try MessageFile.Document(bytes, BinaryDecoder(limits: limits)).header
    }
  }
}

extension MessageName {
  /// The member that sent the message; nil for a guest, or without a sender.
  var senderName: String? {
    if case .member(let name) = sender { name } else { nil }
  }
}
