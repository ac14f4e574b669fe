import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let receive = Verb(
    "receive", "join under a name and receive its messages", [],
    [.joinAs, .kind, .count, .timeout, .exec, .attempts, .raw, .files],
    [
      "Joins as NAME, which nobody else can have meanwhile, and writes each message on a line, as "
        + "'watch' writes values; with --raw, the value's own bytes and nothing between two of "
        + "them; with --json, one object a line: id, from, kind, when it was sent, which attempt "
        + "this is, whether it may have been handled before, and the value. A message is "
        + "acknowledged when its line was written. A pipe may hold lines that its reader never "
        + "reads; where each message has to be handled, use --exec or --count.",
      "With --exec, runs CMD in a shell for each message in place of writing a line: with the "
        + "value on standard input, as 'get' prints it, or as it is with --raw, and "
        + "WORMHOLE_MESSAGE_ID, WORMHOLE_MESSAGE_FROM, WORMHOLE_MESSAGE_KIND and "
        + "WORMHOLE_MESSAGE_ATTEMPT. The message is acknowledged if CMD succeeds. Otherwise it "
        + "comes again a little later, and after five attempts, or as many as --attempts says, it "
        + "goes to the dead letters: see 'queue'.",
      "With --files, a file that comes with a message is moved into DIR under its own name, or "
        + "with '.1', '.2' and so on behind it if that is taken, and its path is written in place "
        + "of the value. Without it, a message with a file is not handled, unless --exec is given: "
        + "CMD finds the file at WORMHOLE_MESSAGE_FILE, called WORMHOLE_MESSAGE_FILE_NAME by its "
        + "sender, and it is removed when CMD has succeeded.",
      "What is in hand and not acknowledged when this ends, however it ends, comes again to "
        + "whoever joins as NAME next, marked as another attempt.",
      "Exits with 1 if time was up before as many messages had come as --count says, or any.",
    ],
    [
      Example("wormhole receive --as watch", "a line for each message"),
      Example("wormhole receive --as watch --count 1 --timeout 5", "the next message"),
      Example("wormhole receive --as printer --exec 'lpr'", "do something with each"),
      Example("wormhole receive --as watch --kind Order --json", "messages of one kind"),
      Example("wormhole receive --as watch --files incoming", "files, each into a directory"),
    ]
  ) { invocation in
    let name = invocation.value(.joinAs) ?? ""
    if invocation.has(.exec), invocation.has(.files) {
      throw Failure.usage("cannot receive: --exec and --files exclude each other")
    }
    if invocation.output.isJSON, invocation.has(.raw) {
      throw Failure.usage("cannot receive: --json and --raw exclude each other")
    }
    let count = try invocation.number(.count, least: 1)
    let deadline = try invocation.deadline(.timeout)
    let attempts = try invocation.number(.attempts, least: 1)
    if invocation.has(.exec) { try Interruption.prepare() }
    let hole = try invocation.open(create: true) { options in
      if let attempts { options.mail.attempts = attempts }
    }
    let member = try hole.join(as: name)
    let telling = Telling("receive as", name, count: count, finishes: true)
    let receiving = try member.receive(
      kinds: invocation.value(.kind).map { [$0] }, acknowledging: .explicit
    ) { message in
      telling.tell { try invocation.handle(message) }
      telling.restIfOver()
    }
    // Kept for good: what is in hand stays there until the process has ended.
    _ = (Unmanaged.passRetained(member), Unmanaged.passRetained(receiving))
    invocation.output.explain("receiving as '\(name)'")
    return try telling.wait(until: deadline)
  }
}

extension Invocation {
  /// Answers 0 if the message was handled, and nothing if it is to come again.
  fileprivate func handle(_ message: Wormhole.Message) throws -> Int32? {
    let value: PropertyListValue
    if let file = message.file, !has(.exec) {
      guard let directory = self.value(.files) else {
        return refuse(message, "a file comes with it; give a directory with --files")
      }
      return try take(file, of: message, into: directory)
    }
    do throws(WormholeError) {
      if let file = message.file {
        value = try file.metadata() ?? .dictionary([:])
      } else {
        value = try message.value()
      }
    } catch {
      return refuse(message, error.reason)
    }
    if let line = self.value(.exec) {
      if let reason = try run(line, on: value, of: message) { return refuse(message, reason) }
      try message.acknowledge()
      Interruption.endIfAsked()
    } else {
      try output.write(value, of: message, raw: has(.raw))
      try message.acknowledge()
    }
    return 0
  }

  /// Answers why the message was not handled; nil if it was.
  private func run(
    _ line: String, on value: PropertyListValue, of message: Wormhole.Message
  ) throws -> String? {
    var settings = [
      "WORMHOLE_MESSAGE_ID=\(message.id)", "WORMHOLE_MESSAGE_FROM=\(message.from ?? "")",
      "WORMHOLE_MESSAGE_KIND=\(message.kind)", "WORMHOLE_MESSAGE_ATTEMPT=\(message.attempt)",
    ]
    if let file = message.file {
      settings += [
        "WORMHOLE_MESSAGE_FILE=\(file.path)", "WORMHOLE_MESSAGE_FILE_NAME=\(file.name)",
      ]
    }
    let status: ExitStatus
    do {
      let input = try value.printed(raw: has(.raw))
      status = try Programs.shell(line, input: input, settings)
    } catch {
      throw Failure(neverRan: error)
    }
    if status == .exited(0) { return nil }
    // Whoever was to end has not refused the message: it stays in hand for the next.
    Interruption.endIfAsked()
    return switch status {
    case .exited(let code): "the command ended with status \(code)"
    case .signalled(let signal): "the command was ended by signal \(signal)"
    }
  }

  func refuse(_ message: Wormhole.Message, _ reason: String) -> Int32? {
    output.tell("message '\(message.id)' is not handled (attempt \(message.attempt)): \(reason)")
    do throws(WormholeError) {
      try message.fail(reason)
    } catch {
      output.tell("\(error)")
    }
    return nil
  }
}

extension Output {
  fileprivate func write(
    _ value: PropertyListValue, of message: Wormhole.Message, raw: Bool
  ) throws {
    if raw { return try write(try value.printed(raw: true)) }
    guard isJSON else { return try write(line: try value.inOneLine()) }
    var object: [String: PropertyListValue] = [
      "id": .string(message.id), "kind": .string(message.kind),
      "attempt": .integer(Int64(message.attempt)), "redelivered": .boolean(message.isRedelivered),
      "value": value,
    ]
    object["from"] = message.from.map { .string($0) }
    object["sent"] = DateText.format(message.sent).map { .string($0) }
    try write(object)
  }
}

extension Option {
  static let attempts = Option("attempts", .any("N"), "give a message up after N attempts")
  static let joinAs = Option("as", .member("NAME"), "the name to join under", isRequired: true)
}
