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
      guard let home = try container.storage.existingMember(name, in: folder) else { return [] }
      DueMessages.deliver(to: home, container)
      let isElsewhere = try isElsewhere(home)
      // Nil for an expired message.
      var found: [MessageName: QueuedMessage?] = [:]
      var holders: [MessageName: MemberDirectory] = [:]
      // Files moved before they were read are looked up again; at first, all files are.
      var wanted: Set<MessageName>?
      for _ in 0..<3 where wanted?.isEmpty != true {
        var places: [MessageName: MemberDirectory.MessagePlace] = [:]
        do throws(Errno) {
          try home.forEachMessage { if wanted?.contains($0.name) ?? true { places[$0.name] = $0 } }
        } catch {
          throw WormholeError(error, "list messages to", name, at: home)
        }
        found.merge(glance(at: places.values, of: home, mayExpire: !isElsewhere)) { $1 }
        for place in places.values {
          if case .inHand(let claimed, let holder) = place { holders[claimed.name] = holder }
        }
        wanted = Set(places.keys.filter { !found.keys.contains($0) })
      }
      // Asked after the messages were read: a receiver that has ended since claims no more.
      var isPresent: [String: Bool] = [:]
      for (name, holder) in holders where found[name]??.state == .claimed {
        let isHeld = isPresent[holder.path] ?? (try? holder.isPresent()) ?? true
        isPresent[holder.path] = isHeld
        if isElsewhere {
          found[name]??.state = .inTransit
        } else if !isHeld {
          found[name]??.state = .interrupted
        }
      }
      // A message may have become due after it was found.
      let others = Set(found.compactMap { $1?.state == .delayed ? nil : $0.unique })
      return found.compactMapValues { $0 }.filter { name, message in
        message.state != .delayed || !others.contains(name.unique)
      }.sorted { one, other in
        let (rank, otherRank) = (one.value.rank, other.value.rank)
        return rank == otherRank ? one.key < other.key : rank < otherRank
      }.map(\.value)
    }
  }

  /// Whether ``queue`` has a message, another one than the given one; however many wait, only the
  /// first is read.
  package func hasQueuedMessage(except id: String?) throws(WormholeError) -> Bool {
    guard let home = try container.storage.existingMember(name, in: folder) else { return false }
    do throws(Errno) {
      return try home.hasMessage { place in
        guard place.name.id != id else { return false }
        return glance(at: CollectionOfOne(place), of: home).contains { $0.value != nil }
      }
    } catch {
      throw WormholeError(error, "list messages to", name, at: home)
    }
  }

  private func isElsewhere(_ home: MemberDirectory) throws(WormholeError) -> Bool {
    do throws(Errno) {
      return try home.elsewhere != nil
    } catch {
      throw WormholeError(error, "list messages to", name, at: home)
    }
  }

  /// Reads messages, and settles expired ones, which are nil in the result.
  ///
  /// Messages moved before they were read are missing in the result.
  private func glance(
    at places: some Sequence<MemberDirectory.MessagePlace>, of home: MemberDirectory,
    mayExpire: Bool = true
  ) -> [MessageName: QueuedMessage?] {
    let glance = QueuedMessageReader(home, container.options.limits)
    // Of a member whose home is another machine, its home decides.
    let now =
      mayExpire
      ? Date(sinceEpoch: container.options.environment.sinceEpoch()) : Date.distantPast
    let senders = SenderHomes(container.storage)
    let mayEnd = !container.storage.options.isForReading
    var found: [MessageName: QueuedMessage?] = [:]
    for place in places {
      switch place {
      case .inHand(let claimed, let holder):
        let message = QueuedMessageReader(holder, container.options.limits)
          .message(claimed.name, claimed.text, .claimed, claimed.attempt)
        if let message { found[claimed.name] = message }
      case .delayed(let delayed):
        var message = glance.message(delayed.name, delayed.text, .later, 0)
        message?.notBefore = Date(sinceEpoch: delayed.due)
        if let message { found[delayed.name] = message }
      case .waiting(let name):
        switch glance.waiting(name, at: now) {
        case nil: break
        case .message(let message)?: found[name] = message
        case .expired?:
          // A message claimed just before is looked up again, as a claimed one.
          if mayEnd, (try? Expiry.end(SentName(name), at: home, senders, container)) == false {
            continue
          }
          found.updateValue(nil, forKey: name)
        }
      }
    }
    return found
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
    for file in try files(id, in: .inbox, of: home) {
      let taken = try MessageCancellation.end(
        file, at: home, .cancelled, senderHome(of: file, senders, home), container)
      isDone = isDone || taken
    }
    guard !isDone, try MessageCancellation.request({ $0.id == id }, at: home) else {
      return Cancellation(isDone)
    }
    return .requested
  }

  private func senderHome(
    of name: MessageName, _ senders: SenderHomes, _ home: MemberDirectory
  ) throws(WormholeError) -> MemberDirectory? {
    do throws(Errno) {
      return try senders.home(of: name)
    } catch {
      throw WormholeError(error, "cancel message", name.id, at: home)
    }
  }

  /// Returns the files of a part with an id, in order.
  func files(
    _ id: String, in part: MemberDirectory.Part, of home: MemberDirectory
  ) throws(WormholeError) -> [MessageName] {
    var found: [MessageName] = []
    do throws(Errno) {
      try home.list(part) { if let name = MessageName($0), name.id == id { found.append(name) } }
    } catch {
      throw WormholeError(error, "find message", id, at: home)
    }
    return found.sorted()
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
  func expiry(of name: MessageName, in part: MemberDirectory.Part = .inbox) -> Int64? {
    guard let expires = try? header(name.text, part)?.expiry(of: name) else { return nil }
    // A made-up message may contain any number, or none.
    return Int64(exactly: (expires.timeIntervalSince1970 * 1e9).rounded(.up))
  }

  /// A waiting message, or an expired one.
  enum WaitingContent {
    case message(QueuedMessage)
    /// The message's time to live has passed.
    case expired
  }

  /// Returns a waiting message; nil if the message is gone.
  func waiting(_ name: MessageName, at now: Date) -> WaitingContent? {
    var hasExpired = false
    let message = message(name, name.text, .inbox, 0) { header in
      hasExpired = header.hasExpired(name, by: now)
    }
    return message.map { hasExpired ? .expired : .message($0) }
  }

  /// Returns the message in a file; nil if the file is gone.
  ///
  /// - Parameter look: receives the file's header, if readable.
  func message(
    _ name: MessageName, _ file: String, _ part: MemberDirectory.Part, _ attempt: Int,
    _ look: (MessageFile.Header) -> Void = { _ in }
  ) -> QueuedMessage? {
    guard let status = try? home.status(of: file, in: part) else { return nil }
    let header: MessageFile.Header?
    let damage: String?
    do throws(WormholeError) {
      guard let found = try self.header(file, part) else { return nil }
      look(found)
      (header, damage) = (found, nil)
    } catch {
      (header, damage) = (nil, error.reason)
    }
    return QueuedMessage(
      id: name.id, from: name.senderName, kind: header?.kind, sentAt: header?.sent,
      orderingKey: header?.orderingKey, headers: header?.headers?.fields ?? [:], count: name.count,
      size: status.size,
      isUrgent: name.isUrgent, attempt: attempt,
      damage: damage, state: part == .later ? .delayed : part == .inbox ? .waiting : .claimed)
  }

  /// Returns the header of a file; nil if the file is gone.
  func header(
    _ file: String, _ part: MemberDirectory.Part
  ) throws(WormholeError) -> MessageFile.Header? {
    let operation = "read message"
    switch try home.read(file, in: part, operation) {
    case .missing: return nil
    case .damaged(let reason, _):
      throw WormholeError(.damaged, operation, file, because: reason)
    case .sound(let bytes, _):
      let limits = limits
      return try WormholeError.reading(operation, file) {
        try MessageFile.Header(bytes, BinaryDecoder(limits: limits))
      }
    }
  }
}

extension MessageName {
  /// The member that sent the message; nil for a guest, or without a sender.
  var senderName: String? {
    if case .member(let name) = sender { name } else { nil }
  }
}
