import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let reply = Verb(
    "reply", "join under a name and answer its requests", [],
    [.joinAs, .answerer, .kind, .type, .count, .timeout, .raw],
    [
      "Joins as NAME, which nobody else can have meanwhile, and runs CMD in a shell for each "
        + "request, one after the other: with the question on standard input, as 'get' prints it, "
        + "or as it is with --raw, and WORMHOLE_REQUEST_FROM and WORMHOLE_REQUEST_KIND. What CMD "
        + "writes is the answer: a string, or what --type says. Of a string one line feed at the "
        + "end is taken off; with --raw nothing is added or taken off.",
      "If CMD fails, the request is refused with its status and the last line that it wrote to "
        + "standard error; where that is 126 or 127, this ends with it too. With --kind, "
        + "requests of other kinds are refused. Whoever waits when "
        + "this ends is told so at once.",
      "With --json, writes one object for each request: sender, kind, and what it was answered. "
        + "With --count, ends after so many. Exits with 1 if time was up before as many had come, "
        + "or any.",
    ],
    [
      Example("wormhole reply --as clock --exec date", "tell the time to whoever asks"),
      Example("wormhole reply --as adder --type json --exec 'jq add'", "numbers"),
      Example("wormhole reply --as clock --exec date --count 1", "answer once"),
    ]
  ) { invocation in
    let name = invocation.value(.joinAs) ?? ""
    let line = invocation.value(.answerer) ?? ""
    let count = try invocation.number(.count, least: 1)
    let deadline = try invocation.deadline(.timeout)
    try Interruption.prepare()
    let member = try invocation.open(create: true).join(as: name)
    let telling = Telling("reply as", name, count: count, finishes: true)
    // For good: the end of the process ends it all, and whoever waits is told.
    _ = member.respond(toKind: invocation.value(.kind)) { request in
      telling.tell { try invocation.answer(request, line) }
      telling.restIfOver()
    }
    invocation.output.explain("replying as '\(name)'")
    return try telling.wait(until: deadline)
  }
}

extension Invocation {
  fileprivate func answer(_ request: Wormhole.Request, _ line: String) throws -> Int32 {
    let limit = Wormhole.Options().largestValue
    let ran: (status: ExitStatus, output: [UInt8], complaint: String)
    do {
      let question = try request.value(as: PropertyListValue.self)
      ran = try Programs.answer(
        line, input: try question.printed(raw: has(.raw)),
        [
          "WORMHOLE_REQUEST_FROM=\(request.from ?? "")",
          "WORMHOLE_REQUEST_KIND=\(request.kind)",
        ], limit: limit)
    } catch {
      request.refuse("its command could not be run")
      throw Failure(neverRan: error)
    }
    var reason: String?
    var given: PropertyListValue?
    switch ran.status {
    case .exited(0): (given, reason) = answer(request, with: ran.output, limit)
    case .exited(let code): reason = "the command ended with status \(code)"
    case .signalled(let signal): reason = "the command was ended by signal \(signal)"
    }
    if let why = reason {
      reason = ran.complaint.isEmpty ? why : "\(why): \(ran.complaint)"
      request.refuse(reason!)
    }
    try output.ofDone.write(request, to: value(.joinAs) ?? "", given, refusal: reason)
    try ran.status.refuseMissingProgram(line, "the request was refused")
    return 0
  }

  /// Answers what was answered, or why nothing was.
  private func answer(
    _ request: Wormhole.Request, with bytes: [UInt8], _ limit: Int
  ) -> (PropertyListValue?, String?) {
    guard bytes.count <= limit else { return (nil, "the command wrote more than \(limit) bytes") }
    let type = value(.type).flatMap(ValueType.init) ?? .string
    do {
      let value = try ValueType.value(ofStream: bytes, type, raw: has(.raw), for: "answer")
      try request.answer(value)
      return (value, nil)
    } catch {
      let failure = Failure(error)
      output.tell(failure)
      return (nil, "what the command wrote is no answer: \(failure.sentence)")
    }
  }
}

extension Output {
  fileprivate func write(
    _ request: Wormhole.Request, to name: String, _ answer: PropertyListValue?, refusal: String?
  ) throws {
    let who = request.from.map { "'\($0)'" } ?? "somebody"
    guard isJSON else {
      return explain(refusal.map { "refused \(who): \($0)" } ?? "answered \(who)")
    }
    try write(
      .answer,
      [
        "from": request.from.map { .string($0) }, "to": .string(name),
        "kind": .string(request.kind), "answered": .boolean(refusal == nil), "value": answer,
        "reason": refusal.map { .string($0) },
      ])
  }
}

extension Option {
  static let answerer = Option(
    "exec", .any("CMD"), "run CMD in a shell, with the question as its input", isRequired: true)
}
