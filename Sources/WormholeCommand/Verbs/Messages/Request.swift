import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let request = Verb(
    "request", "send a request to a member and print the reply", [Operand("VALUE", .optional)],
    [.asked, .from, .type, .raw, .kind, .header, .timeout, .wake],
    [
      "Sends VALUE, or standard input, which is read as in 'put', to the process that runs as "
        + "PEER now, and prints the reply in the form of 'get'. The kind of the request is "
        + "String, Data or PropertyListValue, or the kind in --kind. With --header, which may be "
        + "repeated, text travels beside the request; 'reply' passes it to CMD.",
      "Exits with 69 if PEER is not running, or ends before it has replied; with 1 if PEER "
        + "refuses the request, for the reason in the error, or if no reply arrives within "
        + "--timeout, ten seconds by default. With --wake, starts PEER first if it is not "
        + "running, see 'wake'; the start counts towards the time limit.",
      "The requester is a guest, whose name PEER does not receive. With --from, this command "
        + "joins as NAME until the reply arrives, so no other process can have joined as NAME. "
        + "With --json, writes one object: requester, receiver, and reply.",
    ],
    [
      Example("wormhole request --to watch 'what time is it?'", "request the time"),
      Example("wormhole request --to till --type json '[3, 4]' --json", "for programs"),
      Example(
        "wormhole request --to till --wake --timeout 5 open", "start the member first if needed"),
    ]
  ) { invocation in
    let name = invocation.value(.asked) ?? ""
    try invocation.exclude(.json, [.raw])
    let timeout = try invocation.seconds(.timeout) ?? .seconds(10)
    let value = try invocation.givenValue(at: 0, for: name)
    let headers = try invocation.fields(.header)
    try Interruption.prepare()
    let (peer, leave) = try invocation.sender(in: invocation.open(create: true), to: name)
    try Interruption.prepare(cleanUp: leave)
    defer { leave() }
    let answer = try peer.request(
      value, as: PropertyListValue.self, kind: invocation.kind(of: value), headers: headers,
      within: timeout, waking: invocation.has(.wake))
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(
        .answer,
        [
          "from": invocation.value(.from).map { .string($0) }, "to": .string(name),
          "kind": .string(invocation.kind(of: value)),
          "headers": invocation.output.value(of: headers), "replied": true, "value": answer,
        ])
    } else {
      try invocation.output.ofDone.write(try answer.printed(raw: invocation.has(.raw)))
    }
    return 0
  }
}

extension Option {
  static let asked = Option("to", .member("PEER"), "member that replies", isRequired: true)
}
