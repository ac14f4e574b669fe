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
        + "writes is the answer: a string, less one line feed at the end, or what --type says.",
      "If CMD fails, the request is refused with its status and the last line that it wrote to "
        + "standard error. With --kind, requests of other kinds are refused. Whoever waits when "
        + "this ends is told so at once.",
      "With --json, writes one object for each request: sender, kind, and whether it was answered. "
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
    let responding = member.respond(toKind: invocation.value(.kind)) { request in
      telling.tell { try invocation.answer(request, line) }
      telling.restIfOver()
    }
    // Kept for good: the end of the process ends it all, and whoever waits is told.
    _ = (Unmanaged.passRetained(member), Unmanaged.passRetained(responding))
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
    // Whoever was to end has not refused the request: its asker learns that this has ended.
    Interruption.endIfAsked()
    var reason: String?
    switch ran.status {
    case .exited(0): reason = try answer(request, with: ran.output, limit)
    case .exited(let code): reason = "the command ended with status \(code)"
    case .signalled(let signal): reason = "the command was ended by signal \(signal)"
    }
    if let given = reason {
      reason = ran.complaint.isEmpty ? given : "\(given): \(ran.complaint)"
      request.refuse(reason!)
    }
    try output.write(request, refusal: reason)
    return 0
  }

  /// Answers why there is no answer; nil if there is one.
  private func answer(
    _ request: Wormhole.Request, with bytes: [UInt8], _ limit: Int
  ) throws -> String? {
    guard bytes.count <= limit else { return "the command wrote more than \(limit) bytes" }
    let type = value(.type).flatMap(ValueType.init) ?? .string
    do {
      try request.answer(try type.value(ofOutput: bytes, for: "answer"))
      return nil
    } catch {
      let failure = Failure(error)
      output.tell(failure)
      return "what the command wrote is no answer: \(failure.sentence)"
    }
  }
}

extension Output {
  fileprivate func write(_ request: Wormhole.Request, refusal: String?) throws {
    let who = request.from.map { "'\($0)'" } ?? "somebody"
    guard isJSON else {
      return explain(refusal.map { "refused \(who): \($0)" } ?? "answered \(who)")
    }
    var object: [String: PropertyListValue] = [
      "kind": .string(request.kind), "answered": .boolean(refusal == nil),
    ]
    object["from"] = request.from.map { .string($0) }
    object["refusal"] = refusal.map { .string($0) }
    try write(object)
  }
}

extension Option {
  static let answerer = Option(
    "exec", .any("CMD"), "run CMD in a shell, with the question as its input", isRequired: true)
}
