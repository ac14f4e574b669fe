import CommandLine
import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let post = Verb(
    "post", "post a notice", [Operand("NAME", .one, .names(.notices))], [],
    [
      "Tells all who observe the name. Nothing is carried, and nothing is kept for those who come "
        + "later."
    ],
    [Example("wormhole post movies-changed", "whoever observes it looks again")]
  ) { invocation in
    let name = invocation.operands[0]
    try invocation.open(create: true).notice(name).post()
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(.notice, ["notice": .string(name)])
    }
    return 0
  }

  static let observe = Verb(
    "observe", "write a line for each posting of a notice",
    [Operand("NAME", .one, .names(.notices))], [.count, .timeout],
    [
      "Writes the name whenever it is posted; several postings in quick succession may be one "
        + "line.",
      "Exits with 1 if time was up before it had told as much as --count says, or anything.",
    ],
    [
      Example("wormhole observe movies-changed", "until it is interrupted"),
      Example("wormhole observe ready --count 1 --timeout 5", "wait for somebody"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let output = invocation.output
    let count = try invocation.number(.count, least: 1)
    let deadline = try invocation.deadline(.timeout)
    let telling = Telling("observe notice", name, count: count)
    let watching = try invocation.open(create: true).notice(name).watch {
      telling.tell {
        try output.isJSON
          ? output.write(.notice, ["notice": .string(name)]) : output.write(line: name.inOneLine())
        return 0
      }
    } failure: {
      telling.end($0)
    }
    defer { watching.stop() }
    output.explain("observing '\(name)'")
    return try telling.wait(until: deadline)
  }
}
