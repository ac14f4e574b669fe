import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let receive = Verb(
    "receive", "join under a name and receive its messages", [],
    [
      .joinAs, .kind, .count, .timeout, .exec, .attempts, .raw, .files, .hearImmediate,
      .hearContexts,
    ],
    [
      "Joins as NAME, which nobody else can have meanwhile, and writes each message on a line, as "
        + "'watch' writes values; with --raw, the value's own bytes and nothing between two of "
        + "them; with --json, one object a line: how it came, id, place, from, to, kind, when it "
        + "was sent, which attempt this is, whether it may have been handled before, and the "
        + "value. "
        + "Messages that were sent together share an id, and their place tells them apart. A "
        + "message is "
        + "acknowledged when its line was written. A pipe may hold lines that its reader never "
        + "reads; where each message has to be handled, use --exec or --count.",
      "With --exec, runs CMD in a shell for each message in place of writing a line: with the "
        + "value on standard input, as 'get' prints it, or as it is with --raw, and "
        + "WORMHOLE_MESSAGE_ID, WORMHOLE_MESSAGE_PLACE, WORMHOLE_MESSAGE_FROM, "
        + "WORMHOLE_MESSAGE_KIND and WORMHOLE_MESSAGE_ATTEMPT. The message is acknowledged if CMD "
        + "succeeds. Otherwise it comes again a little later, and after five attempts, or as many "
        + "as --attempts says, it goes to the dead letters: see 'queue'. Where CMD ends with "
        + "126 or 127, as a shell does that "
        + "cannot run a program or finds none, this ends too, with that status, and the message is "
        + "left for whoever joins next.",
      "With --files, a file that comes with a message is moved into DIR under its own name, or "
        + "with '.1', '.2' and so on behind it if that is taken, and its path is written in place "
        + "of the value. Without it, messages that a file comes with are left where they are, and "
        + "this says so, unless --exec is given: CMD finds the file at "
        + "WORMHOLE_MESSAGE_FILE, called WORMHOLE_MESSAGE_FILE_NAME by its sender, and it "
        + "is removed when CMD has succeeded.",
      "What is in hand and not acknowledged when this ends, however it ends, comes again to "
        + "whoever joins as NAME next, marked as another attempt.",
      "With --immediate, immediate messages are received too, and with --contexts the states that "
        + "NAME was told; see 'send'. Both come once, whatever becomes of them here; one that came "
        + "while CMD ran for another waits. CMD gets immediate or context in "
        + "WORMHOLE_MESSAGE_DELIVERY, and guaranteed for all other messages. Without "
        + "--immediate, whoever sends an immediate message to NAME is told that nobody listens.",
      "Exits with 1 if time was up before as many messages had come as --count says, or any.",
    ],
    [
      Example("wormhole receive --as watch", "a line for each message"),
      Example("wormhole receive --as watch --count 1 --timeout 5", "the next message"),
      Example("wormhole receive --as printer --exec 'lpr'", "do something with each"),
      Example("wormhole receive --as watch --kind Order --json", "messages of one kind"),
      Example("wormhole receive --as watch --files incoming", "files, each into a directory"),
      Example("wormhole receive --as watch --immediate --contexts", "whatever is sent"),
    ]
  ) { invocation in
    let name = invocation.value(.joinAs) ?? ""
    if invocation.has(.exec), invocation.has(.files) {
      throw Failure.usage("cannot receive: --exec and --files exclude each other")
    }
    if invocation.has(.kind), invocation.has(.hearContexts) {
      throw Failure.usage("cannot receive: --kind and --contexts exclude each other")
    }
    if invocation.output.isJSON, invocation.has(.raw) {
      throw Failure.usage("cannot receive: --json and --raw exclude each other")
    }
    let count = try invocation.number(.count, least: 1)
    let deadline = try invocation.deadline(.timeout)
    let attempts = try invocation.number(.attempts, least: 1)
    if invocation.has(.exec) { try Interruption.prepare() }
    if let directory = invocation.value(.files) { try Verb.check(directory) }
    let hole = try invocation.open(create: true) { options in
      if let attempts { options.mail.attempts = attempts }
      let (log, output) = (options.log, invocation.output)
      // That something is left where it is.
      options.log = { entry in
        let hint = entry.text.ends(with: "takes files") ? "; give a directory with --files" : ""
        if entry.level == .notice { output.tell(entry.text + hint) } else { log(entry) }
      }
    }
    let member = try hole.join(as: name)
    let telling = Telling("receive as", name, count: count, finishes: true)
    // For good: what is in hand stays there until the process has ended.
    _ = try member.receive(
      kinds: invocation.value(.kind).map { [$0] },
      takingFiles: invocation.has(.files) || invocation.has(.exec), acknowledging: .explicit
    ) { message in
      telling.tell { try invocation.handle(message) }
      telling.restIfOver()
    }
    try invocation.hearMore(member, telling)
    invocation.output.explain("receiving as '\(name)'")
    // What was told then counts as received, and its senders know.
    defer { member.settle() }
    return try telling.wait(until: deadline)
  }

  /// Before anything is received that could not be put there.
  fileprivate static func check(_ directory: String) throws(Failure) {
    do throws(Errno) {
      try Processes.checkDirectory(directory)
    } catch {
      throw .usage("cannot use --files '\(directory)': \(error)")
    }
  }
}

extension Invocation {
  /// Answers 0 if the message was handled, and nothing if it is to come again.
  fileprivate func handle(_ message: Wormhole.Message) throws -> Int32? {
    let value: PropertyListValue
    if let file = message.file, let directory = self.value(.files) {
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
      let reason: String?
      do {
        reason = try run(line, on: value, settings(of: message))
      } catch {
        // It was no attempt: whoever is started again and again with a program that is not there
        // would give the message up.
        try message.unclaim()
        throw error
      }
      if let reason { return refuse(message, reason) }
      try message.acknowledge()
      Interruption.endIfAsked()
    } else {
      try output.write(value, of: message, to: self.value(.joinAs) ?? "", raw: has(.raw))
      try message.acknowledge()
    }
    return 0
  }

  private func settings(of message: Wormhole.Message) -> [String] {
    var settings = [
      "WORMHOLE_MESSAGE_DELIVERY=guaranteed",
      "WORMHOLE_MESSAGE_ID=\(message.id)", "WORMHOLE_MESSAGE_PLACE=\(message.place)",
      "WORMHOLE_MESSAGE_FROM=\(message.from ?? "")",
      "WORMHOLE_MESSAGE_KIND=\(message.kind)", "WORMHOLE_MESSAGE_ATTEMPT=\(message.attempt)",
    ]
    if let file = message.file {
      settings += [
        "WORMHOLE_MESSAGE_FILE=\(file.path)", "WORMHOLE_MESSAGE_FILE_NAME=\(file.name)",
      ]
    }
    return settings
  }

  /// Answers why the message was not handled; nil if it was.
  func run(
    _ line: String, on value: PropertyListValue, _ settings: [String]
  ) throws -> String? {
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
    try status.refuseMissingProgram(line, "the message waits for whoever joins next")
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

extension ExitStatus {
  /// Ends what would run the line again and again, where its program is missing.
  ///
  /// - Parameter what: what has become of whatever it was run for.
  func refuseMissingProgram(_ line: String, _ what: String) throws(Failure) {
    guard case .exited(let code) = self, code == 126 || code == 127 else { return }
    let why = code == 126 ? "cannot be run" : "is not there"
    var failure = Failure(
      .neverRan, "neverRan",
      "cannot go on: a program of '\(line)' \(why); \(what)")
    failure.status = code
    throw failure
  }
}

extension Output {
  fileprivate func write(
    _ value: PropertyListValue, of message: Wormhole.Message, to name: String, raw: Bool
  ) throws {
    if raw { return try write(try value.printed(raw: true)) }
    guard isJSON else { return try write(line: try value.inOneLine()) }
    try write(value, of: message, to: name, [:])
  }

  /// - Parameter more: what is known besides.
  func write(
    _ value: PropertyListValue?, of message: Wormhole.Message, to name: String,
    _ more: [String: PropertyListValue?]
  ) throws {
    let fields: [String: PropertyListValue?] = [
      "delivery": "guaranteed", "id": .string(message.id),
      "place": .integer(Int64(message.place)), "from": message.from.map { .string($0) },
      "to": .string(name), "kind": .string(message.kind),
      "sent": DateText.format(message.sent).map { .string($0) },
      "attempt": .integer(Int64(message.attempt)), "redelivered": .boolean(message.isRedelivered),
      "value": value,
    ]
    try write(.received, fields.merging(more) { $1 })
  }
}

extension Option {
  static let attempts = Option("attempts", .any("N"), "give a message up after N attempts")
  static let joinAs = Option("as", .member("NAME"), "the name to join under", isRequired: true)
}
