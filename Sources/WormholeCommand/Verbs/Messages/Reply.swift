import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let reply = Verb(
    "reply", "join under a name and reply to its requests", [],
    [.joinAs, .answerer, .kind, .type, .count, .timeout, .raw],
    [
      "Joins as NAME, which no other process can join as at the same time, and runs CMD in a "
        + "shell for each request, one at a time. CMD reads the request on standard input, in "
        + "the form of 'get', or unchanged with --raw. WORMHOLE_REQUEST_FROM contains the "
        + "requester, and WORMHOLE_REQUEST_KIND the kind. WORMHOLE_HEADERS contains all headers "
        + "as JSON, and WORMHOLE_HEADER_ with a key in capitals, with '_' for '-' and '.', "
        + "contains one header. The output of CMD is the reply: a "
        + "string, or the type in --type. A newline at the end of a string is removed. With "
        + "--raw, no newline is added or removed.",
      "If CMD fails, the request is refused with the status of CMD and the last line that CMD "
        + "wrote to standard error; if the status is 126 or 127, this command ends with it too. "
        + "A request that cannot be passed to CMD is refused. With --kind, requests of other "
        + "kinds are refused. Requesters that still wait when this command ends are notified at "
        + "once.",
      "With --json, writes one object per request: sender, kind, and reply. With --count, ends "
        + "after N requests. Exits with 1 if the time limit passes before --count requests "
        + "arrived, or, without --count, before the first request. Notifies a service manager "
        + "that has set NOTIFY_SOCKET when it has joined, and its watchdog.",
    ],
    [
      Example("wormhole reply --as clock --exec date", "reply with the time"),
      Example("wormhole reply --as adder --type json --exec 'jq add'", "reply with a sum"),
      Example("wormhole reply --as clock --exec date --count 1", "reply once"),
    ]
  ) { invocation in
    let name = invocation.value(.joinAs) ?? ""
    let line = invocation.value(.answerer) ?? ""
    let telling = try ItemOutput(invocation, finishes: true)
    try Interruption.prepare()
    let member = try invocation.open(create: true).join(as: name)
    // Never stopped: the end of the process ends all requests, and requesters are notified.
    _ = member.respond(toKind: invocation.value(.kind)) { request in
      telling.tell { try invocation.answer(request, line) }
      telling.restIfOver()
    }
    invocation.output.explain("replying as '\(name)'")
    try ServiceReport.begin()
    defer { ServiceReport.end() }
    return try telling.wait("reply as", name)
  }
}

extension Invocation {
  fileprivate func answer(_ request: Request, _ line: String) throws -> Int32 {
    let limit = Options().maximumValueBytes
    let settings =
      try [
        "WORMHOLE_REQUEST_FROM=\(request.from ?? "")", "WORMHOLE_REQUEST_KIND=\(request.kind)",
      ] + Programs.settings(of: request.headers)
    if let problem = Programs.problem(of: settings) { return try refuse(request, problem) }
    let input: [UInt8]
    do {
      input = try request.value(as: PropertyListValue.self).printed(raw: has(.raw))
    } catch {
      return try refuse(request, "no command can receive the value: \(Failure(error).reason)")
    }
    let ran: (status: ChildStatus, output: [UInt8], complaint: String)
    do {
      ran = try Programs.answer(line, input: input, settings, limit: limit)
    } catch {
      if let problem = Programs.problem(of: settings, error) {
        return try refuse(request, problem)
      }
      request.refuse("the command of the receiver could not be started")
      throw Failure(neverRan: error)
    }
    var reason: String?
    var given: PropertyListValue?
    switch ran.status {
    // Its write to a pipe that is read no further may have ended the command.
    case _ where ran.output.count > limit: reason = "the command wrote more than \(limit) bytes"
    case .exited(0): (given, reason) = answer(request, with: ran.output)
    case .exited(let code): reason = "the command ended with status \(code)"
    case .signalled(let signal): reason = "the command was ended by signal \(signal)"
    }
    if let why = reason {
      reason = ran.complaint.isEmpty ? why : "\(why): \(ran.complaint)"
      request.refuse(reason!)
    }
    try output.ofDone.write(request, to: receiver, given, refusal: reason)
    try ran.status.refuseMissingProgram(line, "the request was refused")
    return 0
  }

  /// Refuses a request that cannot be answered here; the next request may be possible.
  private func refuse(_ request: Request, _ reason: String) throws -> Int32 {
    request.refuse(reason)
    try output.ofDone.write(request, to: receiver, nil, refusal: reason)
    return 0
  }

  /// Returns the value of the reply, or the reason why there is none.
  private func answer(
    _ request: Request, with bytes: [UInt8]
  ) -> (PropertyListValue?, String?) {
    let type = value(.type).flatMap(ValueType.init) ?? .string
    do {
      let value = try ValueType.value(ofStream: bytes, type, raw: has(.raw), for: "the reply")
      try request.reply(value)
      return (value, nil)
    } catch {
      let failure = Failure(error)
      output.tell(failure)
      return (nil, "the output of the command is not a reply: \(failure.reason)")
    }
  }
}

extension Output {
  fileprivate func write(
    _ request: Request, to name: String, _ answer: PropertyListValue?, refusal: String?
  ) throws {
    let who = request.from.map { "'\($0)'" } ?? "a guest"
    guard isJSON else {
      return explain(refusal.map { "refused \(who): \($0)" } ?? "replied to \(who)")
    }
    try write(
      .answer,
      [
        "from": request.from.map { .string($0) }, "to": .string(name),
        "kind": .string(request.kind), "headers": value(of: request.headers),
        "replied": .boolean(refusal == nil), "value": answer,
        "reason": refusal.map { .string($0) },
      ])
  }
}

extension Option {
  static let answerer = Option(
    "exec", .any("CMD"),
    "command to run in a shell, with the request as its input", isRequired: true)
}
