import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists

extension Verb {
  static let post = Verb(
    "post", "notify all observers of a name", [Operand("NAME", .one, .names(.notices))], [],
    [
      "Notifies all processes that observe NAME. A notice carries no data and is not stored for "
        + "later observers."
    ],
    [Example("wormhole post movies-changed", "notify the observers that the movies have changed")]
  ) { invocation in
    let name = invocation.operands[0]
    try invocation.open(create: true).notice(name).post()
    if invocation.output.isJSON {
      try invocation.output.ofDone.write(.notice, ["notice": .string(name)])
    }
    return 0
  }

  static let observe = Verb(
    "observe", "print a line for each notice",
    [Operand("NAME", .one, .names(.notices))], [.count, .timeout, .format, .timestamps],
    [
      "Writes NAME each time it is posted. Several notices in quick succession may become one "
        + "line. With --timestamps, the time and a tab precede each line, and with --format, the "
        + "line has the form F.",
      "Exits with 1 if the time limit passes before --count notices arrived, or, without "
        + "--count, before the first notice.",
    ],
    [
      Example("wormhole observe movies-changed", "print the notices until interrupted"),
      Example(
        "wormhole observe ready --count 1 --timeout 5",
        "wait for one notice, at most five seconds"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let output = invocation.output
    let telling = try ItemOutput(invocation)
    let writer = try LineWriter(invocation)
    let watching = try invocation.open(create: true).notice(name).watch {
      telling.tell {
        var line = WrittenLine(name, .notice) { ["notice": .string(name)] }
        line.plain = { try name.inOneLine() }
        try writer.write(line)
        return 0
      }
    } failure: {
      telling.end($0)
    }
    defer { watching.stop() }
    output.explain("observing '\(name)'")
    return try telling.wait("observe notice", name)
  }
}
