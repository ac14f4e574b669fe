import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let receive = Verb(
    "receive", "join under a name and print its messages", [],
    [
      .joinAs, .kind, .count, .timeout, .exec, .attempts, .raw, .files, .hearImmediate,
      .hearContexts, .grace, .standby, .format, .timestamps,
    ],
    [
      "Joins as NAME, which no other process can join as at the same time, and writes each "
        + "message on a line, in the form of 'watch'. With --raw, writes only the bytes of the "
        + "values, with nothing between two values. With --json, writes one object per line: "
        + "delivery, ID, index in its batch, sender, receiver, kind, time of sending, attempt, "
        + "whether the message may have been handled before, and the value. Messages that were "
        + "sent together share an ID and differ in their index. A message is acknowledged after "
        + "its line was written. A pipe may contain lines that its reader never reads; if each "
        + "message must be handled, use --exec or --count.",
      "With --exec, runs CMD in a shell for each message instead of writing a line. CMD reads "
        + "the value on standard input, in the form of 'get', or unchanged with --raw. Its "
        + "environment contains WORMHOLE_MESSAGE_ID, WORMHOLE_MESSAGE_BATCH_INDEX, "
        + "WORMHOLE_MESSAGE_FROM, WORMHOLE_MESSAGE_KIND and WORMHOLE_MESSAGE_ATTEMPT, all "
        + "headers as JSON in WORMHOLE_HEADERS, and each header in WORMHOLE_HEADER_ and its key "
        + "in capitals, with '_' for '-' and '.'.",
      "The message is acknowledged if CMD succeeds. Otherwise, the message is redelivered after "
        + "a short pause; after five attempts, or the number in --attempts, it is moved to the "
        + "dead letters: see 'queue'. A message that cannot be passed to CMD counts as failed. "
        + "If CMD ends with 126 or 127, the statuses of a shell that cannot execute or find a "
        + "program, this command ends with the same status, and the message waits for the next "
        + "process that joins as NAME.",
      "With --files, moves a file that arrives with a message into DIR under its own name, with "
        + "'.1', '.2' and so on appended if the name is taken, and writes the path in place of "
        + "the value. Without --files, messages with files stay in the queue, and a note says "
        + "so, unless --exec is given: then CMD finds the file at WORMHOLE_MESSAGE_FILE and the "
        + "sender's name for the file in WORMHOLE_MESSAGE_FILE_NAME, and the file is removed "
        + "after CMD has succeeded.",
      "A signal that ends this command is passed on to CMD, which is killed if it still runs after "
        + "ten seconds, or the time in --grace; programs that CMD has started are not killed. If "
        + "CMD ends without success then, the message is redelivered to the next process that "
        + "joins as NAME, and the attempt does not count. "
        + "Messages that are claimed but not acknowledged when this command ends in any other "
        + "way are redelivered as another attempt. If this command is killed by SIGKILL, CMD "
        + "continues to run, and may still run when the message is redelivered.",
      "With --wait-for-name, waits while another process has joined as NAME, and takes over when "
        + "that process ends.",
      "With --immediate, receives immediate messages too, and with --contexts, the contexts set "
        + "for NAME; see 'send'. Both are delivered once, even if CMD fails; a delivery that "
        + "arrives while CMD runs waits. WORMHOLE_MESSAGE_DELIVERY is immediate or context, and "
        + "guaranteed for all other messages. Without --immediate, the sender of an immediate "
        + "message to NAME gets an error: no receiver listens.",
      "With --timestamps, the time and a tab precede each line, and with --format, the line has "
        + "the form F. With --exec, such a line is written once CMD has succeeded.",
      "Exits with 1 if the time limit passes before --count messages arrived, or, without "
        + "--count, before the first message. A message that is claimed at that time, and not yet "
        + "written or passed to CMD, counts no attempt. Notifies a service manager that has set "
        + "NOTIFY_SOCKET when it has joined, and its watchdog.",
    ],
    [
      Example("wormhole receive --as watch", "print a line for each message"),
      Example(
        "wormhole receive --as watch --count 1 --timeout 5",
        "the next message, within five seconds"),
      Example("wormhole receive --as printer --exec 'lpr'", "run a command for each message"),
      Example("wormhole receive --as watch --kind Order --json", "messages of one kind"),
      Example("wormhole receive --as watch --files incoming", "move each file into a directory"),
      Example("wormhole receive --as watch --immediate --contexts", "all messages and contexts"),
    ]
  ) { invocation in
    let name = invocation.value(.joinAs) ?? ""
    try invocation.exclude(.exec, [.files])
    try invocation.exclude(.kind, [.hearContexts])
    try invocation.exclude(.json, [.raw])
    let writer = try LineWriter(invocation)
    let telling = try ItemOutput(invocation, finishes: true)
    let attempts = try invocation.number(.attempts, least: 1)
    let grace = try invocation.grace()
    if invocation.has(.exec) { try Interruption.prepare(grace: grace) }
    if let directory = invocation.value(.files) { try Verb.check(directory) }
    let container = try invocation.open(create: true) { options in
      if let attempts { options.mailbox.attempts = attempts }
      let (log, output) = (options.log, invocation.output)
      // Reports messages left in the inbox.
      options.log = { entry in
        let hint = entry.text.ends(with: "accepts files") ? "; give a directory with --files" : ""
        if entry.level == .notice { output.tell(entry.text + hint) } else { log(entry) }
      }
    }
    let member = try invocation.join(container, as: name, until: telling.deadline)
    // A message that was shown stays claimed until the process has ended. A message that was
    // claimed too late to be shown is returned: no attempt counts.
    _ = try member.receive(
      kinds: invocation.value(.kind).map { [$0] },
      takingFiles: invocation.has(.files) || invocation.has(.exec), acknowledging: .explicit
    ) { message in
      telling.tell {
        try invocation.handle(message, writer)
      } refuse: {
        try? message.unclaim()
      }
      telling.restIfOver()
    }
    try invocation.hearMore(member, telling, writer)
    invocation.output.explain("receiving as '\(name)'")
    try ServiceReport.begin()
    // Written messages and contexts count as received afterwards, and their senders are notified.
    defer {
      ServiceReport.end()
      member.settle()
      telling.endReceiving { member.leave() }
    }
    return try telling.wait("receive as", name)
  }

  /// Checked before the first message is received, because its file could not be stored otherwise.
  fileprivate static func check(_ directory: String) throws(Failure) {
    do throws(Errno) {
      try Processes.checkDirectory(directory)
    } catch {
      throw .usage("cannot use --files '\(directory)': \(error)")
    }
  }
}

extension Invocation {
  /// Returns how long a program may run after a signal: ten seconds by default.
  func grace() throws(Failure) -> Duration {
    guard let grace = try seconds(.grace) else { return .seconds(10) }
    try require(.exec, for: [.grace])
    return grace
  }

  fileprivate func join(
    _ container: SharedContainer, as name: String, until deadline: Instant?
  ) throws -> Member {
    guard has(.standby) else { return try container.join(as: name) }
    do throws(WormholeError) {
      return try container.join(as: name)
    } catch {
      guard error.code == .nameTaken else { throw error }
      output.explain("waiting for the name '\(name)': \(error.reason)")
    }
    return try container.join(as: name, within: deadline.map { $0 - .now })
  }

  /// Returns 0 if the message was handled, and nil if it is to be redelivered.
  fileprivate func handle(_ message: Message, _ writer: LineWriter) throws -> Int32? {
    let value: PropertyListValue
    if let file = message.file, let directory = self.value(.files) {
      return try take(file, of: message, into: directory, writer)
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
        reason = try run(line, on: value, settings(of: message)) {
          try? message.unclaim(.interrupted)
        }
      } catch {
        // Not counted as an attempt: if the program is missing, repeated starts would make the
        // message a dead letter.
        try message.unclaim()
        throw error
      }
      if let reason { return refuse(message, reason) }
      try message.acknowledge()
      if writer.isChosen { try writer.write(WrittenLine(value, of: message, to: receiver)) }
      Interruption.endIfAsked()
    } else {
      if has(.raw) {
        try output.write(try value.printed(raw: true))
      } else {
        try writer.write(WrittenLine(value, of: message, to: receiver))
      }
      try message.acknowledge()
    }
    return 0
  }

  var receiver: String { value(.joinAs) ?? "" }

  func settings(of message: Message) throws -> [String] {
    var settings = [
      "WORMHOLE_MESSAGE_DELIVERY=guaranteed",
      "WORMHOLE_MESSAGE_ID=\(message.id)", "WORMHOLE_MESSAGE_BATCH_INDEX=\(message.batchIndex)",
      "WORMHOLE_MESSAGE_FROM=\(message.from ?? "")",
      "WORMHOLE_MESSAGE_KIND=\(message.kind)", "WORMHOLE_MESSAGE_ATTEMPT=\(message.attempt)",
    ]
    if let file = message.file {
      settings += [
        "WORMHOLE_MESSAGE_FILE=\(file.path)", "WORMHOLE_MESSAGE_FILE_NAME=\(file.name)",
      ]
    }
    return try settings + Programs.settings(of: message.headers)
  }

  /// Returns why the message was not handled; nil if it was handled.
  ///
  /// - Parameters:
  ///   - what: the consequence of a missing program for the message.
  ///   - interrupted: called before a signal ends this process, if the command was ended by the
  ///     signal and has not handled the message.
  func run(
    _ line: String, on value: PropertyListValue, _ settings: [String],
    missing what: String = "the message waits for the next process that joins",
    interrupted: () -> Void = {}
  ) throws -> String? {
    if let problem = Programs.problem(of: settings) { return problem }
    let input: [UInt8]
    do {
      input = try value.printed(raw: has(.raw))
    } catch {
      return "no command can receive the value: \(Failure(error).reason)"
    }
    let status: ChildStatus
    do {
      status = try Programs.shell(line, input: input, settings)
    } catch {
      if let problem = Programs.problem(of: settings, error) { return problem }
      throw Failure(neverRan: error)
    }
    if status == .exited(0) { return nil }
    // A command that was asked to end has not refused the message: an orderly end is no attempt.
    if Interruption.isAsked { interrupted() }
    Interruption.endIfAsked()
    try status.refuseMissingProgram(line, what)
    return switch status {
    case .exited(let code): "the command ended with status \(code)"
    case .signalled(let signal): "the command was ended by signal \(signal)"
    }
  }

  func refuse(_ message: Message, _ reason: String) -> Int32? {
    output.tell("message '\(message.id)' is not handled (attempt \(message.attempt)): \(reason)")
    do throws(WormholeError) {
      try message.fail(reason)
    } catch {
      output.tell("\(error)")
    }
    return nil
  }
}

extension ChildStatus {
  /// Throws if the shell command's program is missing: otherwise the command would be run again and
  /// again.
  ///
  /// - Parameter what: the consequence for the message or request of this run.
  func refuseMissingProgram(_ line: String, _ what: String) throws(Failure) {
    guard case .exited(let code) = self, code == 126 || code == 127 else { return }
    let why = code == 126 ? "is not executable" : "was not found"
    var failure = Failure(
      .neverRan, "neverRan",
      "cannot continue: a program of '\(line)' \(why); \(what)")
    failure.status = code
    throw failure
  }
}

extension WrittenLine {
  /// - Parameter more: further fields of the object.
  init(
    _ value: PropertyListValue?, of message: Message, to name: String,
    _ more: [String: PropertyListValue?] = [:]
  ) {
    self.init(name, .received) {
      let headers = message.headers.mapValues { PropertyListValue.string($0) }
      let fields: [String: PropertyListValue?] = [
        "delivery": "guaranteed", "id": .string(message.id),
        "batchIndex": .integer(Int64(message.batchIndex)),
        "from": message.from.map { .string($0) }, "to": .string(name),
        "kind": .string(message.kind), "headers": headers.isEmpty ? nil : .dictionary(headers),
        "orderingKey": message.orderingKey.map { .string($0) },
        "sent": DateText.format(message.sentAt).map { .string($0) },
        "attempt": .integer(Int64(message.attempt)),
        "redelivered": .boolean(message.isRedelivered), "value": value,
      ]
      return fields.merging(more) { $1 }
    }
    plain = { try value?.inOneLine() ?? "" }
    (self.value, id, sender, kind) = (value, message.id, message.from, message.kind)
    (headers, attempt) = (message.headers, message.attempt)
    isRedelivered = message.isRedelivered
  }
}

/// Of `receive` alone, like those in `Receive+Files.swift` and `Receive+Immediate.swift`; the other
/// options are in `SharedOptions.swift`.
extension Option {
  static let standby = Option("wait-for-name", nil, "wait while another process has the name")
}
