import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let send = Verb(
    "send", "send a message to a member or a queue", [Operand("VALUE", .optional)],
    [
      .to, .toQueue, .from, .type, .raw, .kind, .header, .id, .orderingKey, .delay, .ttl, .urgent,
      .process,
      .lines,
      .waitForEnd, .timeout, .context, .file, .meta, .move, .immediate, .wake,
    ],
    [
      "Sends VALUE, or standard input, which is read as in 'put', to the member PEER. PEER need "
        + "not run, and need never have joined. The message waits in the inbox of PEER until it "
        + "is handled. When this command ends, the message has been synced to the disk, unless "
        + "--no-sync is given. The kind of the message, by which receivers can select messages, "
        + "is String, Data or PropertyListValue, or the kind in --kind. With --header, which may "
        + "be repeated, text travels beside the value, and 'receive' passes it to its program.",
      "With --queue instead of --to, sends to a queue of several workers, one of which handles "
        + "the message: see 'work'. A queue takes no contexts or immediate messages. "
        + "Messages with the same --ordering-key are handled strictly one after another, in order, "
        + "by however many workers.",
      "With --wait, waits until the message was handled, and exits with 1 if the message was "
        + "cancelled, has expired, was dead-lettered, or is not settled within --timeout. With "
        + "--from, this command joins as NAME for the time of the wait, so no other process can "
        + "have joined as NAME.",
      "With --delay, the message waits aside for D, at most 30 days, and joins the queue "
        + "then. 'queue' lists it, and can cancel it. Its time to live begins after the delay.",
      "With --lines, each line of standard input is a message. Lines that arrive during a send "
        + "are sent together next. While the queue of PEER is full, this command waits.",
      "With --context, sets a context for PEER instead of sending a message: only the latest "
        + "context from NAME is stored until PEER receives it, and a context equal to the "
        + "previous context is not delivered again.",
      "With --file, sends the current content of a file instead of VALUE, with the metadata in "
        + "--meta, which may be repeated. The kind is 'file', or the kind in --kind. With "
        + "--move, the file no longer exists afterwards.",
      "With --immediate, delivers the message to the process that runs as PEER now, or to no "
        + "process: exits with 69 if PEER is not running, and with 1 if no receiver in PEER "
        + "listens for the message, or none has confirmed it within --timeout, ten seconds by "
        + "default. No later process receives the message. With --wake, starts PEER if it is not "
        + "running.",
      "With --json, writes the sent message: ID, sender, receiver, kind, and, with --wait, the "
        + "outcome.",
    ],
    [
      Example("wormhole send --to watch 'Tickets please'", "send a string"),
      Example("wormhole send --to watch --from till --type json '[1, 2]'", "with a sender's name"),
      Example("wormhole send --to watch --wait --timeout 10 go", "until the message was handled"),
      Example("wormhole send --to watch --lines <orders.txt", "each line as a message"),
      Example("wormhole send --to watch --delay 10m 'Doors close'", "in ten minutes"),
      Example("wormhole send --to watch --from till --context open", "a context"),
      Example("wormhole send --to watch --file seats.pdf --meta film=M", "a file"),
      Example("wormhole send --to watch --immediate look", "now or not at all"),
      Example("wormhole send --queue jobs --lines <jobs.txt", "each line as a job for a worker"),
      Example(
        "wormhole send --queue jobs --ordering-key seat-9 free", "after the others of the same seat"
      ),
    ]
  ) { invocation in
    guard let peer = invocation.value(.to) ?? invocation.value(.toQueue) else {
      throw Failure.usage("cannot send: --to is missing, or --queue for a queue of workers")
    }
    let options = try invocation.sendOptions()
    if invocation.has(.file) { return try invocation.sendFile(to: peer, options) }
    if invocation.has(.lines) { return try invocation.sendLines(to: peer, options) }
    let value = try invocation.givenValue(at: 0, for: peer)
    if invocation.has(.immediate) { return try invocation.sendNow(value, to: peer) }
    if invocation.has(.context) { return try invocation.tell(value, to: peer) }
    return try invocation.send(value, to: peer, options)
  }
}

extension Invocation {
  fileprivate func sendOptions() throws -> SendOptions {
    try exclude(.toQueue, [.to, .context, .immediate])
    if has(.orderingKey), !has(.toQueue) {
      throw Failure.usage(
        "cannot send: --ordering-key requires --queue; messages to a member are in order anyway")
    }
    try exclude(.lines, [.id, .waitForEnd, .context, .raw])
    try exclude(.file, [.lines, .context, .type, .raw, .immediate, .delay])
    try require(.file, for: [.meta, .move])
    try exclude(.context, [.header, .id, .delay, .ttl, .urgent, .process, .waitForEnd])
    try exclude(.immediate, [.lines, .id, .delay, .ttl, .urgent, .process, .waitForEnd, .context])
    if has(.timeout), !has(.waitForEnd), !has(.immediate) {
      throw Failure.usage("cannot send: --timeout requires --wait or --immediate")
    }
    if has(.wake), !has(.immediate) {
      throw Failure.usage(
        "cannot send: --wake requires --immediate; a guaranteed message waits in the queue")
    }
    _ = try seconds(.timeout)
    if has(.context), !has(.from) {
      throw Failure.usage("cannot send: --context requires --from, the name of its sender")
    }
    if has(.lines), let value = operands.first, value != "-" {
      throw Failure.usage("cannot send: --lines reads standard input, and does not send '\(value)'")
    }
    var options = SendOptions()
    options.id = value(.id)
    options.timeToLive = try seconds(.ttl)
    // The limit of the library, whose error would be about a value.
    options.delay = try seconds(.delay, " of at most 30d") { $0 <= .seconds(30 * 86_400) }
    options.isUrgent = has(.urgent)
    options.durability = has(.process) ? .process : .power
    options.kind = value(.kind)
    options.orderingKey = value(.orderingKey)
    options.headers = try fields(.header)
    return options
  }

  /// Returns the kind of a value without `--kind`, by the name that Swift programs use for its
  /// type.
  func kind(of value: PropertyListValue) -> String {
    if let kind = self.value(.kind) { return kind }
    return switch (self.value(.type).flatMap(ValueType.init), value) {
    case (.json, _), (.plist, _): "PropertyListValue"
    case (_, .data): "Data"
    case (_, .string): "String"
    default: "PropertyListValue"
    }
  }

  fileprivate func send(
    _ value: PropertyListValue, to name: String, _ options: SendOptions
  ) throws -> Int32 {
    var options = options
    options.kind = kind(of: value)
    let sending = options
    return try send(to: name) { try $0.send(value, sending) }
  }

  /// Sends a message, and waits for its outcome if requested.
  func send(
    to name: String, _ body: (Peer) throws -> Sent
  ) throws -> Int32 {
    if has(.waitForEnd) { return try sendAndWait(to: name, body) }
    let from = self.value(.from)
    let peer = addressee(try open(create: true).peer(name, from: from))
    try output.ofDone.write(try body(peer), from: from)
    return 0
  }

  private func sendAndWait(
    to name: String, _ body: (Peer) throws -> Sent
  ) throws -> Int32 {
    try Interruption.prepare()
    let deadline = try deadline(.timeout)
    let container = try open(create: true)
    let (peer, leave) = try sender(in: container, to: name)
    try Interruption.prepare(cleanUp: leave)
    defer { leave() }
    let sent = try body(peer)
    output.explain("message '\(sent.id)' waits for '\(name)'")
    switch sent.waitForEnd(until: deadline) {
    case .delivered: break
    case .cancelled: throw Failure(undelivered: sent, .cancelled, "the message was cancelled")
    case .expired:
      throw Failure(
        undelivered: sent, .timedOut, "the message expired before a process received it")
    case .deadLettered(let reason): throw Failure(undelivered: sent, .deadLettered, reason)
    case nil:
      throw Failure(
        undelivered: sent, .timedOut, "the message was not handled before the deadline",
        hint: "the message is still pending: list the queue with 'wormhole queue \(name.shellWord)'"
      )
    }
    try output.ofDone.write(sent, from: self.value(.from), end: "delivered")
    return 0
  }

  fileprivate func sendNow(_ value: PropertyListValue, to name: String) throws -> Int32 {
    try Interruption.prepare()
    let timeout = try seconds(.timeout) ?? .seconds(10)
    let headers = try fields(.header)
    let (peer, leave) = try sender(in: open(create: true), to: name)
    try Interruption.prepare(cleanUp: leave)
    defer { leave() }
    try peer.sendAndWait(
      value, kind: kind(of: value), headers: headers, within: timeout, waking: has(.wake))
    guard output.isJSON else {
      output.explain("'\(name)' has received the message")
      return 0
    }
    try output.ofDone.write(
      .sent,
      [
        "delivery": "immediate", "from": self.value(.from).map { .string($0) },
        "to": .string(name), "kind": .string(kind(of: value)),
        "headers": output.value(of: headers), "count": 1, "status": "delivered",
      ])
    return 0
  }

  /// Returns the peer from the view of the sender that receives the outcome: the named member, or a
  /// guest.
  func sender(
    in container: SharedContainer, to name: String
  ) throws -> (Peer, @Sendable () -> Void) {
    guard let from = self.value(.from) else {
      let guest = try container.guest()
      return (addressee(guest.peer(name)), { guest.leave() })
    }
    let member = try container.join(as: from)
    return (addressee(member.peer(name)), { member.leave() })
  }

  /// Returns the member, or the queue of this name if the command line names a queue.
  func addressee(_ peer: Peer) -> Peer { has(.toQueue) ? peer.ofQueue : peer }

  fileprivate func tell(_ value: PropertyListValue, to name: String) throws -> Int32 {
    let peer = try open(create: true).peer(name, from: self.value(.from))
    let isNew = try peer.setContext(value, kind: kind(of: value))
    if output.isJSON, let told = try peer.sentContext { try output.ofDone.write(told, to: name) }
    output.explain(isNew ? "a context for '\(name)' is set" : "'\(name)' has this context already")
    return 0
  }
}

extension Failure {
  /// Every outcome except delivery has the exit status for 'no'.
  fileprivate init(
    undelivered sent: Sent, _ code: WormholeError.Code, _ reason: String,
    hint: String? = nil
  ) {
    self.init(WormholeError(code, "deliver message", sent.id, because: reason, hint: hint))
    status = ExitCode.no.rawValue
  }
}

extension Output {
  /// Writes a sent message, and its outcome if the command has waited for the outcome.
  func write(_ sent: Sent, from: String?, end: String? = nil) throws {
    guard isJSON else {
      let what = end.map { "was \($0)" } ?? "was sent to '\(sent.to)'"
      return explain("message '\(sent.id)' \(what)")
    }
    try write(
      .sent,
      [
        "delivery": "guaranteed", "id": .string(sent.id), "from": from.map { .string($0) },
        "to": .string(sent.to), "kind": .string(sent.kind), "headers": value(of: sent.headers),
        "count": .integer(Int64(sent.count)), "file": (sent.file?.name).map { .string($0) },
        "status": end.map { .string($0) },
      ])
  }

  /// Adds a context to a list.
  func write(_ context: Context, to name: String, _ listing: inout Listing) throws {
    guard !isJSON else { return try write(context, to: name) }
    let value = try context.value(as: PropertyListValue.self).inOneLine()
    let state = context.isReceived ? "received" : "waiting"
    try listing.add(
      columns: [
        context.from, state, context.kind, value, DateText.format(context.sentAt),
      ])
  }

  /// Writes a context.
  func write(_ context: Context, to name: String) throws {
    let value = try context.value(as: PropertyListValue.self)
    let sent = DateText.format(context.sentAt)
    guard isJSON else {
      var listing = Listing(self, [])
      try write(context, to: name, &listing)
      return try listing.finish()
    }
    try write(
      .context,
      [
        "from": .string(context.from), "to": .string(name), "kind": .string(context.kind),
        "sent": sent.map { .string($0) }, "value": value,
        "received": .boolean(context.isReceived),
      ])
  }
}

extension Option {
  static let to = Option("to", .member("PEER"), "member that receives the message")
  static let toQueue = Option(
    "queue", .found("QUEUE", Names.queues.found), "queue whose workers receive the message")
  static let id = Option("id", .any("ID"), "ID of the message; refused if a pending message has it")
  static let orderingKey = Option(
    "ordering-key", .any("K"), "key of a queue's messages that are handled in order")
  static let delay = Option(
    "delay", .any("D"), "time before the message can be received")
  static let ttl = Option(
    "ttl", .any("D"), "time to live, after which the message expires")
  static let urgent = Option("urgent", nil, "deliver before all messages that are not urgent")
  static let process = Option(
    "no-sync", nil, "do not sync: faster, but a power cut may lose the message")
  static let lines = Option("lines", nil, "send each line of standard input as a message")
  static let waitForEnd = Option("wait", nil, "wait until the message was handled")
  static let immediate = Option(
    "immediate", nil, "deliver to the process that runs now, or to none")
  static let context = Option(
    "context", nil, "set a context, of which only the latest is delivered")
}
