internal import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Guaranteed messages.
extension Peer {
  /// Sends a message, which arrives in order, whichever process dies in the meantime.
  ///
  /// The message is received once, unless its receiver dies while handling it.
  ///
  /// When the call returns, the message is in the peer's inbox, even if the peer does not run or
  /// has never joined; by default the message survives a power cut from then on. If the call
  /// throws, the message was not sent, except for ``WormholeError/Code-swift.struct/notDurable``.
  @discardableResult
  public func send<Value: Encodable>(
    _ value: Value, _ options: SendOptions
  ) throws(WormholeError) -> Sent {
    let sending = try sending(Value.self, options)
    return try sending.send { (header) throws(WormholeError) in
      try sending.encode { (encoder) in try encoder.seal(header, value) }
    }
  }

  /// Sends many messages with little more effort than one: up to 64 messages share a file.
  ///
  /// Each message is received by itself, in order. The messages of a file are cancelled together,
  /// and have one outcome. If the call throws after the first file, its result is lost, although
  /// the files before were sent. Small numbers of messages are sent all or not at all.
  @discardableResult
  public func send<Value: Encodable>(
    contentsOf values: [Value], _ options: SendOptions
  ) throws(WormholeError) -> [Sent] {
    guard !values.isEmpty else { return [] }
    var sent: [Sent] = []
    try sending(Value.self, options).send(contentsOf: values[...], &sent)
    return sent
  }

  func sending<Value>(
    _ type: Value.Type, _ options: SendOptions
  ) throws(WormholeError) -> SendOperation {
    try SendOperation(self, options, MessageKind.name(of: type))
  }

  /// The messages from this sender to the peer that are not settled, in order, including those sent
  /// in an earlier incarnation.
  ///
  /// An expired message is listed only if its outcome is still to be reported to the sender.
  public var pendingMessages: [Sent] {
    get throws(WormholeError) {
      let sender = senderMark
      guard let home = try container.storage.existingMember(name, in: folder), !sender.isEmpty
      else { return [] }
      let found = try messages(from: sender, to: home)
      let glance = QueuedMessageReader(home, container.options.limits)
      var sent: [Sent] = []
      // An expiry is planned after the last listing: it might end its message before.
      var expiring: [(Sent, due: Int64)] = []
      defer { for (one, due) in expiring { outbox?.expire(one, at: home, due: due) } }
      let inOrder = found.sorted { one, other in
        let (one, other) = (one.key, other.key)
        let isDelayed = one.since != nil
        return isDelayed == (other.since != nil) ? one.name < other.name : !isDelayed
      }
      for (name, place) in inOrder {
        let outbox = name.name.wantsReceipt ? outbox : nil
        if let one = outbox?.expected(name) {
          sent.append(one)
          continue
        }
        let expires = glance.expiry(at: place)
        // A claimed message was received in time, and expires only if it is returned unhandled.
        if outbox == nil, !place.isInHand, let expires,
          expires < container.options.environment.sinceEpoch()
        {
          continue
        }
        let one = Sent(name, to: home, container, outbox)
        try outbox?.expect(one)
        if let expires { expiring.append((one, expires)) }
        sent.append(one)
      }
      // If a message was settled before its receipt was expected, a wait for the receipt would
      // never end.
      let left = try messages(from: sender, to: home)
      let names = Set(left.keys.map(\.name))
      return sent.filter { one in
        names.contains(one.name)
          || one.identity.since != nil && names.contains { one.identity.matches($0) }
      }
    }
  }

  private func messages(
    from sender: String, to home: MemberDirectory
  ) throws(WormholeError) -> [SentName: MessageLocation] {
    let now = try MessageStamp(container.storage)
    var found: [SentName: MessageLocation] = [:]
    try naming("list messages to", name, at: home) { () throws(Errno) in
      try home.forEachMessage { place in
        guard place.name.escapedSender == sender else { return }
        if case .delayed(let delayed) = place {
          found[SentName(delayed, since: delayed.firstStamp(at: now))] = place
        } else {
          found[SentName(place.name)] = place
        }
      }
    }
    return found
  }

  /// The sender's part of message names.
  var senderMark: String { guest?.mark ?? escapedSender ?? "" }

  /// The outbox that reports outcomes to the sender.
  var outbox: Outbox? { participant?.outbox }
}

/// One call of `send`.
struct SendOperation {
  let peer: Peer
  let options: SendOptions
  let kind: String
  private(set) var home: MemberDirectory
  private let id: String?
  private let headers: SenderHeaders?
  /// Until when the message is delayed, in nanoseconds since 1970; nil for not at all.
  private let due: Int64?
  var container: SharedContainer { peer.container }

  init(
    _ peer: Peer, _ options: SendOptions, _ kind: String
  ) throws(WormholeError) {
    self.peer = peer
    self.options = options
    self.kind = options.kind ?? kind
    try MessageKind.check(self.kind, "send message to", peer.name)
    id = try options.id.map { (id) throws(WormholeError) in try MessageName.escape(id: id) }
    headers = try SenderHeaders(options.headers, "send message to", peer.name)
    if let key = options.orderingKey { try OrderingKey.check(key, "send message to", peer.name) }
    due = try Self.due(options, peer)
    if let sender = peer.sender { _ = try Container.escape(sender) }
    try peer.checkSender("send message to")
    if options.wantsOutcome == true, peer.outbox == nil {
      throw WormholeError(
        .notFound, "send message to", peer.name,
        because: "an outcome is requested, but the sender is neither a member nor a guest",
        hint: "send through a member or a guest")
    }
    // The last step, because it makes a missing directory.
    home = try peer.container.receivers.home(of: peer, in: peer.container.storage)
  }

  private static func due(
    _ options: SendOptions, _ peer: Peer
  ) throws(WormholeError) -> Int64? {
    guard options.delay != nil || options.notBefore != nil else { return nil }
    let now = peer.container.options.environment.sinceEpoch()
    let delay = options.delay?.inNanosecondsClamped ?? 0
    let moment = options.notBefore.map { ($0.timeIntervalSince1970 * 1e9).rounded(.up) } ?? 0
    let limit = now.addingClamped(longestDelay)
    guard delay <= longestDelay && moment <= Double(limit) || Mutants.has(.anyDelay) else {
      throw WormholeError(
        .tooLarge, "send message to", peer.name,
        because: "a message is delayed by at most 30 days",
        hint: "store the message elsewhere, and send it later")
    }
    let due = max(now.addingClamped(delay), Int64(exactly: moment) ?? 0)
    return due > now ? due : nil
  }

  /// Thirty days.
  private static let longestDelay: Int64 = 30 * 86_400 * 1_000_000_000

  /// Throws if the message is to be delayed.
  func checkUndelayed() throws(WormholeError) {
    guard due != nil else { return }
    throw WormholeError(
      .refused, operation, peer.name, because: "a message with a file cannot be delayed",
      hint: "send the file without a delay, or a message that names the file")
  }

  var operation: String { "send message to" }

  func encode(_ body: (BinaryEncoder) throws -> [UInt8]) throws(WormholeError) -> [UInt8] {
    try WormholeError.writing(operation, peer.name) {
      try body(BinaryEncoder(limits: container.options.limits))
    }
  }

  /// - Parameter attaching: puts the message's file in place, before the message itself.
  func send(
    count: Int = 1, file: SentFile? = nil,
    attaching: ((MessageName, MemberDirectory) throws(Errno) -> Void)? = nil,
    _ encode: (MessageFile.Header) throws(WormholeError) -> [UInt8]
  ) throws(WormholeError) -> Sent {
    let bytes = try encode(header)
    let sent = try enqueue(bytes, count: count, file, attaching)
    try makeDurable(sent.receiver ?? home)
    return sent
  }

  /// - Parameter sent: receives the sent messages, also if this call throws.
  func send<Value: Encodable>(
    contentsOf values: ArraySlice<Value>, _ sent: inout [Sent]
  ) throws(WormholeError) {
    var files: [(bytes: [UInt8], count: Int)] = []
    try encode(values, into: &files)
    guard files.count == 1 || id == nil else {
      throw WormholeError(
        .tooLarge, operation, peer.name,
        because: "the messages need \(files.count) files, but an ID is for a single file",
        hint: "send fewer messages at a time, or no ID")
    }
    var places: [MemberDirectory] = []
    for file in files {
      let one = try enqueue(file.bytes, count: file.count)
      sent.append(one)
      if let place = one.receiver, places.last !== place { places.append(place) }
    }
    // One sync of a directory covers all its new files.
    for place in places { try makeDurable(place) }
  }

  /// Encodes the values into as few files as possible: 64 messages a file, and no very large file.
  ///
  /// In a queue each message is a file of its own: messages of a shared file are acknowledged in
  /// place, and no rename would decide between two workers.
  private func encode<Value: Encodable>(
    _ values: ArraySlice<Value>, into files: inout [(bytes: [UInt8], count: Int)]
  ) throws(WormholeError) {
    var start = values.startIndex
    let most = home.folder == .queues ? 1 : BatchProgress.slotCount
    var size = most
    while start < values.endIndex {
      let end = min(start + size, values.endIndex)
      guard let bytes = try file(of: values[start..<end]) else {
        size = (end - start) / 2
        continue
      }
      files.append((bytes, end - start))
      start = end
      // A large value shortens its own file, and not the files of later values.
      size = min(2 * size, most)
    }
  }

  /// Encodes the values of one file; returns nil for several values that are too large for it.
  private func file<Value: Encodable>(
    of values: ArraySlice<Value>
  ) throws(WormholeError) -> [UInt8]? {
    let header = header
    if values.count == 1 {
      return try encode { try $0.seal(header, values[values.startIndex]) }
    }
    // The limits are those of each message. A value that cannot be encoded fails by itself.
    let bytes = try? encode { try $0.seal(header, batch: values) }
    return bytes.flatMap { $0.count > Self.largestBatch ? nil : $0 }
  }

  /// The size above which a batch is split.
  static let largestBatch = 1 << 20

  /// Only the workers of a queue need to find the key without reading the message.
  private var key: OrderingKey? {
    home.folder == .queues ? options.orderingKey.map { OrderingKey(of: $0) } : nil
  }

  private var header: MessageFile.Header {
    let now = Date(sinceEpoch: container.options.environment.sinceEpoch())
    let begin = due.map { Date(sinceEpoch: $0) } ?? now
    var header = MessageFile.Header(
      kind: kind, sent: now, to: peer.name,
      expires: options.timeToLive.map { begin + TimeInterval($0 / .seconds(1)) }
        ?? options.expires,
      orderingKey: options.orderingKey, headers: headers)
    header.isRedelivered = options.isRedelivered
    return header
  }

  // MARK: Placement

  private func enqueue(
    _ bytes: [UInt8], count: Int, _ file: SentFile? = nil,
    _ attaching: ((MessageName, MemberDirectory) throws(Errno) -> Void)? = nil, tries: Int = 0
  ) throws(WormholeError) -> Sent {
    // Only at the first try: an inbox made again is empty, and a further check would leave time to
    // remove it again.
    if tries == 0 {
      try container.quotas.admit(bytes.count, to: home, options.whenFull) { [home, container] in
        Expiry.sweep(home, container) > 0
      }
    }
    let wantsReceipt = options.wantsOutcome ?? (peer.outbox != nil)
    // The stamp is taken after all steps that may wait, to be as recent as possible.
    let stamp = try MessageStamp(home.container)
    let id = self.id ?? container.options.environment.randomName()
    func name(_ stamp: MessageStamp) -> MessageName {
      MessageName(
        isUrgent: options.isUrgent, stamp, wantsReceipt: wantsReceipt, count: count, id: id,
        key: key, from: peer.senderMark)
    }
    let sentName =
      due.map { SentName(DelayedName($0, epoch: stamp.epoch, name), since: stamp) }
      ?? SentName(name(stamp))
    let name = sentName.name
    guard name.text.utf8.count <= MessageName.longest else {
      throw WormholeError(
        .invalidName, operation, peer.name,
        because: "the name of the file has no space for the ordering key beside the ID "
          + "'\(name.id)' and the name of the sender",
        hint: "send with a shorter ID, or as a member with a shorter name")
    }
    let outbox = wantsReceipt ? peer.outbox : nil
    let sent = Sent(
      sentName, to: home, container, outbox, .init(kind: kind, file: file, headers: options.headers)
    )
    try outbox?.expect(sent)
    let isPlaced: Bool
    do throws(Errno) {
      try attaching?(name, home)
      try writeReason(of: name)
      isPlaced = try placeUnlessTaken(bytes, as: name)
    } catch {
      if error == .noSuchFile {
        // The member was removed, or is being removed: its directory is made again.
        container.receivers.forget(home)
        guard tries < 100 else {
          throw WormholeError(
            .conflict, operation, peer.name,
            because: "another process removes the inbox of the receiver repeatedly",
            hint: "find the program that removes the inbox", errno: error)
        }
        var again = self
        again.home = try container.receivers.home(of: peer, in: container.storage)
        return try again.enqueue(bytes, count: count, file, attaching, tries: tries + 1)
      }
      throw WormholeError(error, operation, home, part)
    }
    guard isPlaced else {
      throw WormholeError(
        .conflict, operation, peer.name,
        because: "a message with the ID '\(name.id)' is pending already",
        hint: "wait for the outcome of the first message, or cancel the first message")
    }
    if let life = options.timeToLive, let outbox {
      let begin = due ?? container.options.environment.sinceEpoch()
      outbox.expire(sent, at: home, due: begin.addingClamped(life.inNanosecondsClamped))
    }
    return sent
  }

  /// Where the message waits.
  private var part: MemberDirectory.Part {
    options.death != nil ? .dead : due == nil ? .inbox : .later
  }

  /// The reason first: without its letter it belongs to none, and is harmless.
  private func writeReason(of name: MessageName) throws(Errno) {
    guard let death = options.death else { return }
    let reason = DeathReason(reason: death.reason, attempts: death.attempts, when: death.when)
    try reason.write(beside: name, in: home)
  }

  private func makeDurable(_ home: MemberDirectory) throws(WormholeError) {
    guard options.durability == .power else { return }
    do throws(Errno) {
      try home.makeDurable(part)
    } catch {
      throw WormholeError(
        .notDurable, operation, peer.name,
        because: "the message was sent, but the inbox could not be synced: \(error)",
        hint: "wait for the outcome; until then, a power cut may undo the send", errno: error)
    }
  }

  /// Returns false if the caller has chosen the id, and another message has the same id.
  private func placeUnlessTaken(_ bytes: [UInt8], as name: MessageName) throws(Errno) -> Bool {
    guard id != nil, !options.isIdentifierFresh, options.death == nil else {
      try home.place(bytes, as: name.text, in: part, durability: options.durability)
      return true
    }
    let unique = name.unique
    return try home.place(
      bytes, as: name.text, in: part, durability: options.durability, unique: unique
    ) { () throws(Errno) in
      try home.isOver(unique)
    }
  }
}
