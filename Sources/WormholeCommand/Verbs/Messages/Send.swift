import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let send = Verb(
    "send", "send a message to a member", [Operand("VALUE", .optional)],
    [
      .to, .from, .type, .raw, .kind, .id, .ttl, .urgent, .process, .lines, .waitForEnd, .timeout,
      .context, .file, .meta, .move, .immediate, .wake,
    ],
    [
      "Sends VALUE, or what comes on standard input, as 'put' takes it, to the member of the name "
        + "PEER, who need not run and need never have joined. The message waits in its inbox until "
        + "it is handled, and has been synced to the disk when this ends, unless --no-sync "
        + "is given. What a message is called by, for receivers that want certain kinds, is "
        + "String, "
        + "Data or PropertyListValue, or what --kind says.",
      "With --wait, waits until the message was handled, and exits with 1 if it ends otherwise: "
        + "cancelled, expired, given up, or not ended when --timeout is over. With --from it joins "
        + "under NAME for that time, so nobody else must have the name.",
      "With --lines, each line of standard input is a message. What has come while others were "
        + "being sent is sent together. While PEER's queue is full it waits.",
      "With --context, tells PEER a state in place of a message: only the latest that NAME has "
        + "told is kept until PEER receives it, and what equals the one before is not told again.",
      "With --file, sends a file as it is at that moment in place of VALUE, and with it what "
        + "--meta says, which may be given several times. It is called by the kind 'file' if "
        + "--kind says nothing else. With --move the file is gone afterwards.",
      "With --immediate, sends it to the process that runs as PEER now, or to nobody: exits with "
        + "69 if none does, and with 1 if nobody there listens for it, or none has heard it within "
        + "--timeout, ten seconds by default. No later process sees it. --wake starts PEER if it "
        + "does not run.",
      "With --json, writes what was sent: id, sender, receiver, kind, and how it ended if that was "
        + "waited for.",
    ],
    [
      Example("wormhole send --to watch 'Tickets please'", "a string"),
      Example("wormhole send --to watch --from till --type json '[1, 2]'", "with a sender's name"),
      Example("wormhole send --to watch --wait --timeout 10 go", "until it was handled"),
      Example("wormhole send --to watch --lines <orders.txt", "each line"),
      Example("wormhole send --to watch --from till --context open", "a state"),
      Example("wormhole send --to watch --file seats.pdf --meta film=M", "a file"),
      Example("wormhole send --to watch --immediate look", "now or not at all"),
    ]
  ) { invocation in
    let peer = invocation.value(.to) ?? ""
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
  fileprivate func sendOptions() throws -> Wormhole.SendOptions {
    try exclude(.lines, [.id, .waitForEnd, .context, .raw])
    try exclude(.file, [.lines, .context, .type, .raw, .immediate])
    if let other = [Option.meta, .move].first(where: has), !has(.file) {
      throw Failure.usage("cannot send: --\(other.name) goes with --file")
    }
    try exclude(.context, [.id, .ttl, .urgent, .process, .waitForEnd])
    try exclude(.immediate, [.lines, .id, .ttl, .urgent, .process, .waitForEnd, .context])
    if has(.timeout), !has(.waitForEnd), !has(.immediate) {
      throw Failure.usage("cannot send: --timeout goes with --wait or --immediate")
    }
    if has(.wake), !has(.immediate) {
      throw Failure.usage("cannot send: --wake goes with --immediate; another message waits")
    }
    _ = try seconds(.timeout)
    if has(.context), !has(.from) {
      throw Failure.usage("cannot send: --context goes with --from: it is somebody's")
    }
    if has(.lines), let value = operands.first, value != "-" {
      throw Failure.usage("cannot send: --lines takes them from standard input, and not '\(value)'")
    }
    var options = Wormhole.SendOptions()
    options.id = value(.id)
    options.timeToLive = try seconds(.ttl)
    options.isUrgent = has(.urgent)
    options.durability = has(.process) ? .process : .power
    options.kind = value(.kind)
    return options
  }

  private func exclude(_ option: Option, _ others: [Option]) throws(Failure) {
    guard has(option), let other = others.first(where: has) else { return }
    throw .usage("cannot send: --\(option.name) and --\(other.name) exclude each other")
  }

  /// What a value is called where nobody says, as a Swift program calls its own.
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
    _ value: PropertyListValue, to name: String, _ options: Wormhole.SendOptions
  ) throws -> Int32 {
    var options = options
    options.kind = kind(of: value)
    let sending = options
    return try send(to: name) { try $0.send(value, sending) }
  }

  /// Sends something, and waits for its end if asked.
  func send(
    to name: String, _ body: (Wormhole.Peer) throws -> Wormhole.Sent
  ) throws -> Int32 {
    if has(.waitForEnd) { return try sendAndWait(to: name, body) }
    let from = self.value(.from)
    try output.ofDone.write(try body(open(create: true).peer(name, from: from)), from: from)
    return 0
  }

  private func sendAndWait(
    to name: String, _ body: (Wormhole.Peer) throws -> Wormhole.Sent
  ) throws -> Int32 {
    try Interruption.prepare()
    let deadline = try deadline(.timeout)
    let hole = try open(create: true)
    let (peer, leave) = try sender(in: hole, to: name)
    try Interruption.prepare(cleanUp: leave)
    defer { leave() }
    let sent = try body(peer)
    output.explain("message '\(sent.id)' waits for '\(name)'")
    switch sent.waitForEnd(until: deadline) {
    case .delivered: break
    case .cancelled: throw Failure(undelivered: sent, .cancelled, "it was cancelled")
    case .expired: throw Failure(undelivered: sent, .timedOut, "it was not received in time")
    case .givenUp(let reason): throw Failure(undelivered: sent, .undelivered, reason)
    case nil:
      throw Failure(
        undelivered: sent, .timedOut, "it was not handled in time",
        hint: "it is still on its way; see 'wormhole queue'")
    }
    try output.ofDone.write(sent, from: self.value(.from), end: "delivered")
    return 0
  }

  fileprivate func sendNow(_ value: PropertyListValue, to name: String) throws -> Int32 {
    try Interruption.prepare()
    let timeout = try seconds(.timeout) ?? .seconds(10)
    let (peer, leave) = try sender(in: open(create: true), to: name)
    try Interruption.prepare(cleanUp: leave)
    defer { leave() }
    try peer.sendAndWait(
      value, .immediate, kind: kind(of: value), within: timeout, waking: has(.wake))
    guard output.isJSON else {
      output.explain("'\(name)' has heard it")
      return 0
    }
    try output.ofDone.write(
      .sent,
      [
        "delivery": "immediate", "from": self.value(.from).map { .string($0) },
        "to": .string(name), "kind": .string(kind(of: value)), "count": 1, "end": "delivered",
      ])
    return 0
  }

  /// Who is told how it ended: a member of the name, or a guest.
  func sender(
    in hole: Wormhole, to name: String
  ) throws -> (Wormhole.Peer, @Sendable () -> Void) {
    guard let from = self.value(.from) else {
      let guest = try hole.guest()
      return (guest.peer(name), { guest.leave() })
    }
    let member = try hole.join(as: from)
    return (member.peer(name), { member.leave() })
  }

  fileprivate func tell(_ value: PropertyListValue, to name: String) throws -> Int32 {
    let peer = try open(create: true).peer(name, from: self.value(.from))
    let isNew = try peer.setContext(value, kind: kind(of: value))
    if output.isJSON, let told = try peer.sentContext { try output.ofDone.write(told, to: name) }
    output.explain(isNew ? "'\(name)' is told" : "'\(name)' has been told that already")
    return 0
  }
}

extension Failure {
  /// However it ended, it is a 'no'.
  fileprivate init(
    undelivered sent: Wormhole.Sent, _ code: WormholeError.Code, _ reason: String,
    hint: String? = nil
  ) {
    self.init(WormholeError(code, "deliver message", sent.id, because: reason, hint: hint))
    status = ExitCode.no.rawValue
  }
}

extension Output {
  /// That a message was sent, and how it ended if that was waited for.
  func write(_ sent: Wormhole.Sent, from: String?, end: String? = nil) throws {
    guard isJSON else {
      let what = end.map { "was \($0)" } ?? "was sent to '\(sent.to)'"
      return explain("message '\(sent.id)' \(what)")
    }
    try write(
      .sent,
      [
        "delivery": "guaranteed", "id": .string(sent.id), "from": from.map { .string($0) },
        "to": .string(sent.to), "kind": .string(sent.kind),
        "count": .integer(Int64(sent.count)), "file": (sent.file?.name).map { .string($0) },
        "end": end.map { .string($0) },
      ])
  }

  /// A state that somebody was told.
  func write(_ context: Wormhole.Context, to name: String) throws {
    let value = try context.value(as: PropertyListValue.self)
    let sent = DateText.format(context.sent)
    guard isJSON else {
      let state = context.isReceived ? "received" : "waiting"
      return try write(
        columns: [context.from, state, context.kind, value.inOneLine(), sent])
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
  static let to = Option("to", .member("PEER"), "the member it is for", isRequired: true)
  static let from = Option("from", .member("NAME"), "send it under that name")
  static let kind = Option("kind", .any("KIND"), "what the message is called by")
  static let id = Option("id", .any("ID"), "give it that id; refused if one is on its way with it")
  static let ttl = Option("ttl", .any("S"), "nobody is to receive it after that many seconds")
  static let urgent = Option("urgent", nil, "let it go before all that are not urgent")
  static let process = Option("no-sync", nil, "be faster; a power cut may lose it")
  static let lines = Option("lines", nil, "send each line of standard input")
  static let waitForEnd = Option("wait", nil, "wait until it was handled")
  static let immediate = Option("immediate", nil, "to whoever runs now, or to nobody")
  static let context = Option("context", nil, "tell a state, of which the latest counts")
}
