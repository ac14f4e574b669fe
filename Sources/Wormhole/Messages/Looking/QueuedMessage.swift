public import FoundationEssentials
internal import PropertyLists
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// A message, or a batch of them, that a member was sent and that has not ended.
  public struct QueuedMessage: Hashable, Sendable {
    /// The sender's name for it.
    public let id: String
    /// The member who sent it; nil if nobody is named.
    public let from: String?
    /// What the sender called it; nil if it cannot be read.
    public let kind: String?
    /// When it was sent, by the sender's clock; nil if it cannot be read.
    public let sent: Date?
    /// How many messages it holds.
    public let count: Int
    /// How many bytes its file has.
    public let size: Int
    /// Whether it goes before all that were not sent so.
    public let isUrgent: Bool
    /// Which attempt to handle it is under way, or was when its receiver ended; 0 for one that
    /// waits.
    public let attempt: Int
    /// Why it cannot be read; nil if it can.
    public let damage: String?

    /// Where it is.
    public var place: Sent.Place { attempt == 0 ? .waiting : .inHand }
  }
}

extension Wormhole.Peer {
  /// What the peer was sent and has not handled yet: what is in hand, and then what waits, each in
  /// the order in which it comes.
  ///
  /// To look holds up nobody, and changes nothing, but that what has expired ends so, and is not in
  /// the list. Each file is read for what it is; those that cannot be are in the list too, and say
  /// why.
  public var queue: [Wormhole.QueuedMessage] {
    get throws(WormholeError) {
      guard let home = try hole.container.existingMember(name) else { return [] }
      var found: [MessageName: Wormhole.QueuedMessage] = [:]
      // What was moved before it was read is looked for again; at first, all.
      var wanted: Set<MessageName>?
      for _ in 0..<3 where wanted?.isEmpty != true {
        var places: [MessageName: MemberDirectory.MessagePlace] = [:]
        do throws(Errno) {
          try home.forEachMessage { if wanted?.contains($0.name) ?? true { places[$0.name] = $0 } }
        } catch {
          throw WormholeError(error, "list messages to", name)
        }
        found.merge(glance(at: places.values, of: home)) { $1 }
        wanted = Set(places.keys.filter { found[$0] == nil })
      }
      return found.sorted { one, other in
        let (isOneInHand, isOtherInHand) = (one.value.attempt > 0, other.value.attempt > 0)
        return isOneInHand == isOtherInHand ? one.key < other.key : isOneInHand
      }.map(\.value)
    }
  }

  private func glance(
    at places: some Sequence<MemberDirectory.MessagePlace>, of home: MemberDirectory
  ) -> [MessageName: Wormhole.QueuedMessage] {
    let glance = QueuedMessageReader(home, hole.options.limits)
    let (now, senders) = (hole.options.environment.sinceEpoch(), SenderHomes(hole.container))
    let mayEnd = !hole.container.options.isForReading
    var found: [MessageName: Wormhole.QueuedMessage] = [:]
    for place in places {
      switch place {
      case .inHand(let claimed):
        found[claimed.name] = glance.message(
          claimed.name, claimed.text, .claimed, claimed.attempt)
      case .waiting(let name):
        found[name] = glance.message(name, name.text, .inbox, 0) { header in
          guard mayEnd, header.hasExpired(by: Date(sinceEpoch: now)) else { return false }
          return (try? Expiry.end(name, at: home, senders, hole)) != nil
        }
      }
    }
    return found
  }

  /// Takes a message back that waits in the peer's inbox, whoever has sent it; the sender is told
  /// if it asked.
  ///
  /// If it answers true, no receiver ever sees the message. If several senders have given the same
  /// id, it is done to the messages of all of them.
  ///
  /// - Returns: whether there was one; what is in hand already is not taken back.
  public func cancel(id: String) throws(WormholeError) -> Bool {
    guard let home = try hole.container.existingMember(name) else { return false }
    var isDone = false
    let senders = SenderHomes(hole.container)
    for file in try files(id, in: .inbox, of: home) {
      let sender: MemberDirectory?
      do throws(Errno) {
        sender = try senders.home(of: file)
      } catch {
        throw WormholeError(error, "cancel message", id)
      }
      let taken = try Cancelling.end(file, at: home, .cancelled, sender, hole)
      isDone = isDone || taken
    }
    return isDone
  }

  /// The files of a part that have an id, in order.
  func files(
    _ id: String, in part: MemberDirectory.Part, of home: MemberDirectory
  ) throws(WormholeError) -> [MessageName] {
    var found: [MessageName] = []
    do throws(Errno) {
      try home.list(part) { if let name = MessageName($0), name.id == id { found.append(name) } }
    } catch {
      throw WormholeError(error, "look for message", id)
    }
    return found.sorted()
  }
}

/// A look at the files of messages from outside.
struct QueuedMessageReader {
  private let home: MemberDirectory
  private let limits: PropertyListLimits

  init(_ home: MemberDirectory, _ limits: PropertyListLimits) {
    self.home = home
    self.limits = limits
  }

  /// When a message that waits expires, in nanoseconds since 1970; nil for never, or if nobody can
  /// tell.
  func expiry(of name: MessageName) -> Int64? {
    guard let expires = try? header(name.text, .inbox)?.expires else { return nil }
    // Whoever made it up may have written any number, or none.
    return Int64(exactly: (expires.timeIntervalSince1970 * 1e9).rounded(.up))
  }

  /// What a file is; nil if it is no longer there.
  ///
  /// - Parameter hasEnded: whether what says so of itself has come to its end.
  func message(
    _ name: MessageName, _ file: String, _ part: MemberDirectory.Part, _ attempt: Int,
    unless hasEnded: (MessageFile.Header) -> Bool = { _ in false }
  ) -> Wormhole.QueuedMessage? {
    guard let status = try? home.status(of: file, in: part) else { return nil }
    let header: MessageFile.Header?
    let damage: String?
    do throws(WormholeError) {
      guard let found = try self.header(file, part), !hasEnded(found) else { return nil }
      (header, damage) = (found, nil)
    } catch {
      (header, damage) = (nil, error.reason)
    }
    return Wormhole.QueuedMessage(
      id: name.id, from: name.senderName, kind: header?.kind, sent: header?.sent,
      count: name.count, size: status.size, isUrgent: name.isUrgent, attempt: attempt,
      damage: damage)
  }

  /// What a file says of itself; nil if it is no longer there.
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
        try BinaryDecoder(limits: limits).decode(MessageFile.Header.self, from: bytes)
      }
    }
  }
}

extension MessageName {
  /// The member who sent it; nil for a guest, or nobody.
  var senderName: String? {
    if case .member(let name) = sender { name } else { nil }
  }
}
