public import Dispatch
public import FoundationEssentials
public import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The state that a member has set for another member: only the latest context counts.
public struct Context: Sendable {
  /// The sender's name.
  public let from: String
  /// The time of sending, by the sender's clock.
  public let sentAt: Date
  /// The kind of the context: by default the name of the value's type.
  public let kind: String
  /// Whether the context has been received, as far as can be determined.
  public internal(set) var isReceived: Bool
  private let bytes: [UInt8]
  private let limits: PropertyListLimits

  /// Decodes the value.
  ///
  /// Throws ``WormholeError/Code-swift.struct/typeMismatch`` if the value does not decode as the
  /// type.
  public func value<Value: Decodable>(as type: Value.Type = Value.self) throws(WormholeError)
    -> Value
  {
    let (bytes, limits) = (bytes, limits)
    return try WormholeError.reading("read context of", from, of: .context, as: Value.self) {
      let decoder = BinaryDecoder(limits: limits)
      return try decoder.value(as: type, in: decoder.open(bytes))
    }
  }

  /// The same context, marked as received.
  var received: Context {
    var received = self
    received.isReceived = true
    return received
  }

  /// Creates a context for a test.
  init(_ from: String, _ header: MessageFile.Header, _ bytes: [UInt8]) {
    self.from = from
    sentAt = header.sent
    kind = header.kind
    isReceived = true
    self.bytes = bytes
    limits = PropertyListLimits()
  }

  /// Reads a context; nil if the file does not exist, or is damaged, which is logged.
  ///
  /// Throws an error that does not concern the file itself and may pass in a moment.
  init?(
    _ file: String, from: String, in home: MemberDirectory, _ container: SharedContainer
  ) throws(WormholeError) {
    limits = container.options.limits
    do throws(WormholeError) {
      switch try home.read(file, in: .context, "read context") {
      case .missing: return nil
      case .damaged(let reason, _):
        throw WormholeError(
          .damaged, "read context", file, because: "the file is damaged: \(reason)")
      case .sound(let bytes, _):
        let limits = limits
        let header = try WormholeError.reading("read context of", from, of: .context) {
          try MessageFile.Header(bytes, BinaryDecoder(limits: limits))
        }
        self.bytes = bytes
        self.from = EscapedName.unescape(from) ?? from
        sentAt = header.sent
        kind = header.kind
        isReceived = file == from
      }
    } catch {
      if error.mayPass { throw error }
      container.log(.error, error, about: LogSubject(member: home.name))
      return nil
    }
  }

  /// Reads the latest context from a sender to a member, received or not.
  init?(
    latestFrom from: String, in home: MemberDirectory, _ container: SharedContainer
  ) throws(WormholeError) {
    // Read the names in the direction of a context's moves, so that no moving context is missed.
    for file in [ContextName.next(from), ContextName.taking(from), from] {
      if let found = try Context(file, from: from, in: home, container) {
        self = found
        return
      }
    }
    return nil
  }
}

extension Peer {
  /// Sets a context for the peer: the new context replaces a previous context that the peer has not
  /// received yet, and is stored until the peer receives it.
  ///
  /// - Parameters:
  ///   - value: the context.
  ///   - kind: the kind of the context; by default the name of the value's type.
  ///   - evenIfSame: whether to send a value that equals the previous value.
  ///   - durability: the failures that the context survives once the call has returned; by default
  ///     as in the options.
  /// - Returns: whether the context was set; false if it equals the previous value, which then
  ///   survives the same failures.
  @discardableResult
  public func setContext<Value: Encodable>(
    _ value: Value, kind: String? = nil, evenIfSame: Bool = false, durability: Durability? = nil
  ) throws(WormholeError) -> Bool {
    let operation = "set context for"
    guard let from = escapedSender, !from.isEmpty else {
      throw WormholeError(
        .invalidName, operation, name, because: "the sender has no name",
        hint: "join, and set the context through the member")
    }
    let kind = try MessageKind.checked(kind, of: Value.self, operation, name)
    try checkSender(operation)
    var home = try container.receivers.home(of: self, in: container.storage)
    let header = MessageFile.Header(
      kind: kind,
      sent: Date(sinceEpoch: container.options.environment.sinceEpoch()), to: name, expires: nil)
    let limits = container.options.limits
    let bytes = try WormholeError.writing(operation, name) {
      try BinaryEncoder(limits: limits).seal(header, value)
    }
    let durability = durability ?? container.options.durability
    let isSet = evenIfSame || !isSame(bytes, header, from, home)
    var tries = 0
    while isSet {
      do throws(Errno) {
        try home.place(
          bytes, as: ContextName.next(from), in: .context, durability: durability, replacing: true)
        break
      } catch {
        // The member was removed, or is being removed: its directory is made again.
        guard error == .noSuchFile, tries < 100 else {
          throw WormholeError(error, operation, name, at: home)
        }
        tries += 1
        container.receivers.forget(home)
        home = try container.receivers.home(of: self, in: container.storage)
      }
    }
    guard durability == .power else { return isSet }
    do throws(Errno) {
      // The call that has set an equal context need not have synced it.
      if !isSet { try syncContexts(from, home) }
      try home.makeDurable(.context)
    } catch {
      throw WormholeError(
        .notDurable, operation, name,
        because: "the change was made, but the directory could not be synced: \(error)",
        errno: error)
    }
    return isSet
  }

  /// Syncs the contents of the contexts from a sender, in the direction of their moves.
  private func syncContexts(_ from: String, _ home: MemberDirectory) throws(Errno) {
    let directory = try home.part(.context)
    for file in [ContextName.next(from), ContextName.taking(from), from] {
      try ignoring(.noSuchFile) { () throws(Errno) in
        try directory.descriptor.open(file, .readOnlyNonBlocking).sync()
      }
    }
  }

  private func isSame(
    _ bytes: [UInt8], _ header: MessageFile.Header, _ from: String, _ home: MemberDirectory
  ) -> Bool {
    // If the last context cannot be read now, send again: sending the same value twice does no
    // harm.
    guard let last = try? Context(latestFrom: from, in: home, container),
      last.kind == header.kind
    else { return false }
    let decoder = BinaryDecoder(limits: container.options.limits)
    let value = try? decoder.value(as: PropertyListValue.self, in: decoder.open(bytes))
    return value != nil && value == (try? last.value(as: PropertyListValue.self))
  }

  /// The latest context from this sender to the peer, received or not; nil without any.
  public var sentContext: Context? {
    get throws(WormholeError) {
      guard let from = escapedSender, let home = try container.storage.existingMember(name) else {
        return nil
      }
      return try Context(latestFrom: from, in: home, container)
    }
  }

  /// The context that this member has received last from the peer, including the context of a
  /// closure in progress; nil without any, and for a process that has not joined.
  public var receivedContext: Context? {
    get throws(WormholeError) {
      guard let home = member?.home else { return nil }
      let from = try Container.escape(name)
      if let told = member?.contexts.beingTold(by: from) { return told }
      return try Context(from, from: from, in: home, container)
    }
  }

  /// The contexts that the peer has not received yet: the latest of each sender, in the order of
  /// the senders' names.
  ///
  /// Reading this property changes nothing. Together with ``queue``, it shows all pending
  /// deliveries to the peer.
  public var pendingContexts: [Context] {
    get throws(WormholeError) { try toldContexts.filter { !$0.isReceived } }
  }

  /// The contexts for the peer, received or not: the latest of each sender, in the order of the
  /// senders' names.
  package var toldContexts: [Context] {
    get throws(WormholeError) {
      guard let home = try container.storage.existingMember(name) else { return [] }
      let senders = try naming("list contexts of", name, at: home) { () throws(Errno) in
        Set(try home.names(in: .context) { ContextName.sender(String(cString: $0)) })
      }
      var found: [Context] = []
      for from in senders.sorted() {
        if let context = try Context(latestFrom: from, in: home, container) {
          found.append(context)
        }
      }
      return found
    }
  }
}

extension Member {
  /// Calls a closure once with each context that a peer sets for this member, including earlier
  /// contexts that wait.
  ///
  /// The watch continues until it is stopped or the member leaves, even if the program retains the
  /// returned object no longer. Every listener receives each context. No context counts as received
  /// while there is no listener. The next incarnation receives the context again if the process
  /// dies while the closure runs, or if the file system refuses, until the member leaves, to rename
  /// the file as received. After the member has left, no context is received, and a new watch
  /// throws ``WormholeError/Code-swift.struct/notJoined``.
  @discardableResult
  public func watchContexts(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Context) -> Void
  ) throws(WormholeError) -> Subscription {
    if queue != nil { try TaskPool.start("watch contexts of", name) }
    return try watchContexts(on: queue) { context in
      handler(context)
      return true
    }
  }

  /// The contexts from peers to this member, each once; the sequence ends when the member leaves.
  public var receivedContexts: Arrivals<Context> {
    let contexts = contexts
    return Arrivals { (handover) throws(WormholeError) in
      let listener = contexts.listener(on: nil) { [weak handover] in
        handover?.offer($0) ?? false
      } left: { [weak handover] in
        handover?.end()
      }
      try contexts.add(listener)
      return listener
    }
  }
}
