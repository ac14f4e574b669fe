import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let work = Verb(
    "work", "run a program for each message of a queue",
    [Operand("QUEUE", .one, .names(.queues))],
    [
      .program, .parallel, .handlingDeadline, .renew, .grace, .attempts, .count, .timeout, .raw,
      .format, .timestamps,
    ],
    [
      "Handles the messages of QUEUE, a queue that any number of workers share: each message is "
        + "one worker's. Runs CMD in a shell for each message, as 'receive --exec' does: with the "
        + "value on standard input, and with the fields and headers of the message in the "
        + "environment. With --parallel, runs several at the same time. CMD finds the file of a "
        + "message at WORMHOLE_MESSAGE_FILE, and copies it: the file is removed with the message.",
      "The message is acknowledged if CMD succeeds. Otherwise it is redelivered after a short "
        + "pause, to any worker; after five attempts, or the number in --attempts, it is moved to "
        + "the dead letters: see 'queue'. If CMD ends with 126 or 127, this command ends with the "
        + "same status, and the message waits for another worker.",
      "If CMD runs longer than 30 seconds, or the time in --deadline, another worker may have the "
        + "message, marked as redelivered, while CMD still runs; CMD's success is then without "
        + "effect, and a note says so. With --renew, the time starts anew for as long as CMD runs. "
        + "If this command is killed by SIGKILL, another worker has its messages at once, and CMD "
        + "continues to run: two programs may then handle one message at the same time.",
      "A signal that ends this command is passed on to the programs, which are killed if they "
        + "still run after ten seconds, or the time in --grace; programs that CMD has started are "
        + "not killed. No further message is taken. A message whose CMD does not succeed then is "
        + "redelivered, and the attempt does not count.",
      "With --timestamps or --format, writes a line for each message that was handled, after the "
        + "output of CMD: the value with the time and a tab before it, or the form F.",
      "With --count, ends once so many messages were handled, and those that are being handled "
        + "then. Exits with 1 if the time limit passes before that, or, without --count, before "
        + "the first message was handled; a message whose CMD runs at the time limit is in time, "
        + "and CMD is waited for. Notifies a service manager that has set NOTIFY_SOCKET "
        + "when it can take messages, and its watchdog.",
    ],
    [
      Example("wormhole work jobs --exec 'sh convert.sh'", "run a program for each message"),
      Example("wormhole work jobs --exec 'sh convert.sh' --parallel 4", "four at the same time"),
      Example(
        "wormhole work jobs --exec 'sh convert.sh' --deadline 5m --renew", "for long programs"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let line = invocation.value(.program) ?? ""
    let parallel = try invocation.number(.parallel, least: 1, most: 1000) ?? 1
    let given = try invocation.seconds(.handlingDeadline, " above 0") { $0 > .zero }
    let limit = given ?? .seconds(30)
    let (count, deadline) = try (
      invocation.number(.count, least: 1), invocation.deadline(.timeout)
    )
    let attempts = try invocation.number(.attempts, least: 1)
    let writer = try LineWriter(invocation)
    try Interruption.prepare(grace: invocation.grace())
    let container = try invocation.open(create: true) { options in
      if let attempts { options.mailbox.attempts = attempts }
    }
    let jobs = Jobs(
      invocation, line, renewal: invocation.has(.renew) ? limit / 3 : nil, count, writer)
    Interruption.endInOrder { jobs.end(.success(0)) }
    let worker = try container.queue(name, of: PropertyListValue.self).callers(
      concurrency: parallel, handlingDeadline: limit)
    var threads: [Thread] = []
    do throws(Errno) {
      for _ in 1...parallel {
        threads.append(
          try Thread("work") {
            // The container is gone.
            if let error = worker.handle(jobs.handle) { jobs.end(.failure(error)) }
          })
      }
    } catch {
      jobs.end(.failure(WormholeError(error, "work on queue", name)))
    }
    invocation.output.explain("working on queue '\(name)'")
    try ServiceReport.begin()
    let end = jobs.wait(until: deadline)
    ServiceReport.end()
    worker.stop()
    for thread in threads { thread.join() }
    Interruption.endIfAsked(isLast: true)
    if let end { return try end.get() }
    return try jobs.timeUp(name)
  }
}

/// The programs that `work` runs.
private final class Jobs: Sendable {
  private struct State {
    var handled = 0
    var end: Result<Int32, any Error>?
  }

  /// The reason why a message was not handled.
  private struct HandlingFailure: Error, CustomStringConvertible {
    let description: String
  }

  private let invocation: Invocation
  private let line: String
  /// How often the claim of a message is renewed; nil for never.
  private let renewal: Duration?
  private let count: Int?
  private let writer: LineWriter
  private let state = Monitor(State())
  /// Lines are written one at a time.
  private let writing = Monitor(0)

  init(
    _ invocation: Invocation, _ line: String, renewal: Duration?, _ count: Int?,
    _ writer: LineWriter
  ) {
    (self.invocation, self.line, self.renewal) = (invocation, line, renewal)
    (self.count, self.writer) = (count, writer)
  }

  func end(_ end: Result<Int32, any Error>) { state.signal { $0.end = $0.end ?? end } }

  /// Returns the end; nil after the deadline.
  func wait(until deadline: Instant?) -> Result<Int32, any Error>? {
    state.wait(until: deadline) { $0.end }
  }

  /// Returns the end after the deadline, once the programs that ran at the deadline have ended.
  ///
  /// As with `receive`, the messages of these programs were in time: one of them may have reached
  /// the count, or its program may be missing.
  func timeUp(_ queue: String) throws -> Int32 {
    let (handled, end) = state.withLock { ($0.handled, $0.end) }
    if let end { return try end.get() }
    if count == nil, handled > 0 { return 0 }
    throw WormholeError(
      .timedOut, "work on queue", queue,
      because: handled == 0
        ? "no message was handled before the deadline"
        : "only \(handled) were handled before the deadline")
  }

  /// Runs the program for a message; returns once the message is handled, or has its outcome.
  func handle(_ message: Message) throws {
    let value: PropertyListValue = try message.value()
    let isOver = Monitor(false)
    defer { isOver.signal { $0 = true } }
    let reason: String?
    do {
      if let renewal { try renew(message, every: renewal, until: isOver) }
      reason = try invocation.run(
        line, on: value, invocation.settings(of: message),
        missing: "the message waits for another worker")
    } catch {
      // Not counted as an attempt: the next message would meet the same.
      message.requeue()
      if !Interruption.isAsked { end(.failure(error)) }
      return
    }
    guard let reason else { return try done(message, value) }
    // A program that was asked to end has not refused the message.
    if Interruption.isAsked { return message.interrupt() }
    invocation.output.tell(
      "message '\(message.id)' is not handled (attempt \(message.attempt)): \(reason)")
    throw HandlingFailure(description: reason)
  }

  /// Acknowledges the message, and ends the command if it was the last one.
  private func done(_ message: Message, _ value: PropertyListValue) throws {
    do throws(WormholeError) {
      try message.acknowledge()
    } catch {
      // After any other error, which may pass, the worker repeats the acknowledgement.
      if error.code == .superseded {
        invocation.output.tell("\(error)")
        throw error
      }
    }
    if writer.isChosen {
      do {
        let line = WrittenLine(value, of: message, to: invocation.operands[0])
        try writing.withLock { _ in try writer.write(line) }
      } catch {
        // The message is handled all the same.
        end(.failure(error))
      }
    }
    state.signal { state in
      state.handled += 1
      if state.handled == count { state.end = state.end ?? .success(0) }
    }
  }

  /// Renews the claim of the message on a thread of its own, until the program has ended.
  private func renew(
    _ message: Message, every pause: Duration, until isOver: Monitor<Bool>
  ) throws {
    try naming("renew the claim of message", message.id) { () throws(Errno) in
      try Thread("renewal") {
        while isOver.wait(until: .now + pause, { $0 ? true : nil }) == nil {
          do throws(WormholeError) {
            try message.renew()
          } catch {
            guard error.code != .superseded else { return }
            self.invocation.output.tell("\(error)")
          }
        }
      }.detach()
    }
  }
}

extension Option {
  static let program = Option(
    "exec", .any("CMD"), "command to run in a shell for each message, with the value as its input",
    isRequired: true)
  static let parallel = Option("parallel", .any("N"), "number of programs that run at a time")
  static let handlingDeadline = Option(
    "deadline", .any("D"), "time after which another worker may have a message; 30s by default")
  static let renew = Option("renew", nil, "start the deadline anew for as long as CMD runs")
}
