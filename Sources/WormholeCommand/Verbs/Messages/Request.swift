import CommandLine
import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let request = Verb(
    "request", "ask a member something, and print its answer", [Operand("VALUE", .optional)],
    [.to, .from, .type, .raw, .kind, .timeout, .wake],
    [
      "Puts VALUE, or what comes on standard input, as 'put' takes it, to the process that runs as "
        + "PEER now, and prints its answer as 'get' prints values. What the question is called by "
        + "is String, Data or PropertyListValue, or what --kind says.",
      "Exits with 69 if PEER does not run, or ends before it has answered; with 1 if it refuses, "
        + "which the error gives its reason for, or if no answer comes within --timeout, ten "
        + "seconds by default. With --wake, PEER is started if it does not run, see 'wake'; that "
        + "takes of the same time.",
      "Who asks is a guest that PEER is not told the name of. With --from it joins under NAME for "
        + "that time, so nobody else must have the name. With --json, writes one object: who has "
        + "asked whom, and the answer.",
    ],
    [
      Example("wormhole request --to watch 'what time is it?'", "a question"),
      Example("wormhole request --to till --type json '[3, 4]' --json", "for programs"),
      Example("wormhole request --to till --wake --timeout 5 open", "start it first if need be"),
    ]
  ) { invocation in
    let name = invocation.value(.to) ?? ""
    if invocation.output.isJSON, invocation.has(.raw) {
      throw Failure.usage("cannot request: --json and --raw exclude each other")
    }
    let timeout = try invocation.seconds(.timeout) ?? .seconds(10)
    let value = try invocation.givenValue(at: 0, for: name)
    try Interruption.prepare()
    let (peer, leave) = try invocation.sender(in: invocation.open(create: true), to: name)
    try Interruption.prepare(cleanUp: leave)
    defer { leave() }
    let answer = try peer.request(
      value, as: PropertyListValue.self, kind: invocation.kind(of: value), within: timeout,
      waking: invocation.has(.wake))
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(
        .answer,
        [
          "from": invocation.value(.from).map { .string($0) }, "to": .string(name),
          "kind": .string(invocation.kind(of: value)), "answered": true, "value": answer,
        ])
    } else {
      try invocation.output.ofDone.write(try answer.printed(raw: invocation.has(.raw)))
    }
    return 0
  }
}

extension Option {
  static let wake = Option("wake", nil, "start it if it does not run")
}
