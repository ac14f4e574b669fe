public import Dispatch
public import FoundationEssentials
internal import PropertyLists
public import SharedContainer
internal import Syscalls

extension Wormhole {
  /// The state that one member has told another: of what was told, only the latest counts.
  public struct Context: Sendable {
    /// The member who told it.
    public let from: String
    /// When, by its clock.
    public let sent: Date
    /// What it was called: by default the name of the value's type.
    public let kind: String
    /// Whether it has been received, as far as can be seen.
    public internal(set) var isReceived: Bool
    private let bytes: [UInt8]
    private let limits: PropertyListLimits

    /// What was told.
    ///
    /// Throws ``WormholeError/Code-swift.struct/typeMismatch`` if it does not decode as that type.
    public func value<Value: Decodable>(as type: Value.Type = Value.self) throws(WormholeError)
      -> Value
    {
      let (bytes, limits) = (bytes, limits)
      return try WormholeError.reading("read context of", from, of: .context) {
        try BinaryDecoder(limits: limits).decode(MessageFile.Opened<Value>.self, from: bytes).value
      }
    }

    /// The same, as its receiver has it.
    var received: Context {
      var received = self
      received.isReceived = true
      return received
    }

    /// One that a test has made.
    init(_ from: String, _ header: MessageFile.Header, _ bytes: [UInt8]) {
      self.from = from
      sent = header.sent
      kind = header.kind
      isReceived = true
      self.bytes = bytes
      limits = PropertyListLimits()
    }

    /// Nil if there is none of that name, or it is damaged, which the log is told.
    ///
    /// Throws what says nothing of it, and may be otherwise in a moment.
    init?(
      _ file: String, from: String, in home: MemberDirectory, _ hole: Wormhole
    ) throws(WormholeError) {
      limits = hole.options.limits
      do throws(WormholeError) {
        switch try home.read(file, in: .context, "read context") {
        case .missing: return nil
        case .damaged(let reason, _):
          throw WormholeError(.damaged, "read context", file, because: reason)
        case .sound(let bytes, _):
          let limits = limits
          let header = try WormholeError.reading("read context of", from, of: .context) {
            try BinaryDecoder(limits: limits).decode(MessageFile.Header.self, from: bytes)
          }
          self.bytes = bytes
          self.from = EscapedName.unescape(from) ?? from
          sent = header.sent
          kind = header.kind
          isReceived = file == from
        }
      } catch {
        if error.mayPass { throw error }
        hole.log(.error, error, about: LogSubject(member: home.name))
        return nil
      }
    }

    /// The latest that somebody has told a member, received or not.
    init?(
      latestFrom from: String, in home: MemberDirectory, _ hole: Wormhole
    ) throws(WormholeError) {
      // In the direction in which it moves, so that it is not missed on its way.
      for file in [ContextName.next(from), ContextName.taking(from), from] {
        if let found = try Context(file, from: from, in: home, hole) {
          self = found
          return
        }
      }
      return nil
    }
  }
}

extension Wormhole.Peer {
  /// Tells the peer a state: it takes the place of what was told before and not received yet, and
  /// is kept until it is received.
  ///
  /// - Parameters:
  ///   - value: what the peer is told.
  ///   - kind: what it is called; by default the name of the value's type.
  ///   - evenIfSame: whether a value that equals the last one is told again.
  ///   - durability: what it survives once this has returned; by default what the options say.
  /// - Returns: whether it was told; false if the last one was the same.
  @discardableResult
  public func setContext<Value: Encodable>(
    _ value: Value, kind: String? = nil, evenIfSame: Bool = false, durability: Durability? = nil
  ) throws(WormholeError) -> Bool {
    let operation = "set context of"
    guard let from = escapedSender, !from.isEmpty else {
      throw WormholeError(
        .invalidName, operation, name, because: "it would be nobody's: the sender has no name",
        hint: "join, or send under a name")
    }
    try checkSender(operation)
    let home = try hole.receivers.home(of: name, in: hole.container)
    let header = MessageFile.Header(
      kind: kind ?? MessageKind.name(of: Value.self),
      sent: Date(sinceEpoch: hole.options.environment.sinceEpoch()), to: name, expires: nil)
    let limits = hole.options.limits
    let bytes = try WormholeError.writing(operation, name) {
      try BinaryEncoder(limits: limits).seal(header, value)
    }
    guard bytes.count <= hole.options.largestValue else {
      throw WormholeError(
        .tooLarge, operation, name,
        because: "it takes \(bytes.count) bytes, and the limit is \(hole.options.largestValue)")
    }
    if !evenIfSame, isSame(bytes, header, from, home) { return false }
    let durability = durability ?? hole.options.durability
    do throws(Errno) {
      try home.place(
        bytes, as: ContextName.next(from), in: .context, durability: durability, replacing: true)
    } catch {
      throw WormholeError(error, operation, name)
    }
    guard durability == .power else { return true }
    do throws(Errno) {
      try home.makeDurable(.context)
    } catch {
      throw WormholeError(
        .notDurable, operation, name,
        because: "it is done, but the directory could not be synced: \(error)", errno: error)
    }
    return true
  }

  private func isSame(
    _ bytes: [UInt8], _ header: MessageFile.Header, _ from: String, _ home: MemberDirectory
  ) -> Bool {
    // Of one that cannot be read now nobody knows; to tell the same twice does no harm.
    guard let last = try? Wormhole.Context(latestFrom: from, in: home, hole),
      last.kind == header.kind
    else { return false }
    let limits = hole.options.limits
    let value = try? BinaryDecoder(limits: limits)
      .decode(MessageFile.Opened<PropertyListValue>.self, from: bytes).value
    return value != nil && value == (try? last.value(as: PropertyListValue.self))
  }

  /// What this sender has told the peer last, received or not; nil if nothing.
  public var sentContext: Wormhole.Context? {
    get throws(WormholeError) {
      guard let from = escapedSender, let home = try hole.container.existingMember(name) else {
        return nil
      }
      return try Wormhole.Context(latestFrom: from, in: home, hole)
    }
  }

  /// What this member has received from the peer last, also inside the closure that is being told;
  /// nil if nothing, or for one that has not joined.
  public var receivedContext: Wormhole.Context? {
    get throws(WormholeError) {
      guard let home = member?.home else { return nil }
      let from = try Container.escape(name)
      if let told = member?.contexts.beingTold(by: from) { return told }
      return try Wormhole.Context(from, from: from, in: home, hole)
    }
  }

  /// What the peer was told and has not received yet: the latest of each who has told it something,
  /// in the order of their names.
  ///
  /// To look changes nothing. With ``queue`` it says what is still to come for the peer.
  public var pendingContexts: [Wormhole.Context] {
    get throws(WormholeError) { try toldContexts.filter { !$0.isReceived } }
  }

  /// What the peer was told, received or not: the latest of each who has told it something, in the
  /// order of their names.
  package var toldContexts: [Wormhole.Context] {
    get throws(WormholeError) {
      guard let home = try hole.container.existingMember(name) else { return [] }
      var senders: Set<String> = []
      do throws(Errno) {
        try home.list(.context) { file in
          if let from = ContextName.sender(String(cString: file)) { senders.insert(from) }
        }
      } catch {
        throw WormholeError(error, "list contexts of", name)
      }
      var found: [Wormhole.Context] = []
      for from in senders.sorted() {
        if let context = try Wormhole.Context(latestFrom: from, in: home, hole) {
          found.append(context)
        }
      }
      return found
    }
  }
}

extension Wormhole.Member {
  /// Calls a closure with each state that a peer tells this member, once: also with those that came
  /// before.
  ///
  /// It goes on until it is stopped or the member leaves, whoever keeps what this returns.
  /// All who listen hear each of them. Nothing counts as received while nobody listens. If the
  /// process dies while the closure runs, the next one hears it again. Once the member has left
  /// nothing more is heard, and to ask for it throws ``WormholeError/Code-swift.struct/notJoined``.
  @discardableResult
  public func watchContexts(
    on queue: DispatchQueue? = nil, _ handler: @escaping @Sendable (Wormhole.Context) -> Void
  ) throws(WormholeError) -> Wormhole.Subscription {
    try watchContexts(on: queue) { context in
      handler(context)
      return true
    }
  }

  /// The states that peers tell this member, each once; it ends when the member leaves.
  public var receivedContexts: Wormhole.Arrivals<Wormhole.Context> {
    let contexts = contexts
    return Wormhole.Arrivals { (handover) throws(WormholeError) in
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
