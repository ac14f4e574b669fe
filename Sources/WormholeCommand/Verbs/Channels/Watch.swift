import CommandLine
import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let watch = Verb(
    "watch", "write a line for each change of a channel",
    [Operand("CHANNEL", .many, .names(.channels))], [.prefix, .now, .count, .timeout, .exec],
    [
      "Writes each new value on a line: a string as it is, if it fits on one, other values as "
        + "JSON, and (cleared) when a channel was cleared. With several channels, or --prefix, the "
        + "name and a tab come before it. With --json, one object a line, as 'get' writes it.",
      "Of changes in quick succession the newest is told; the last one is never missed.",
      "With --exec, runs CMD in a shell for each change in place of writing a line: with the value "
        + "on standard input, as 'get' prints it, the channel's name in WORMHOLE_CHANNEL and the "
        + "version in WORMHOLE_VERSION, one at a time. It ends when CMD fails, with its status.",
      "Exits with 1 if time was up before it had told as much as --count says, or anything.",
    ],
    [
      Example("wormhole watch speed --now", "the present value, and every change"),
      Example("wormhole watch --prefix seat. --json", "all channels whose names begin so"),
      Example("wormhole watch answer --count 1 --timeout 5", "the next change"),
      Example("wormhole watch mode --exec 'systemctl reload app'", "do something about it"),
    ]
  ) { invocation in
    let count = try invocation.number(.count, least: 1)
    let deadline = try invocation.deadline(.timeout)
    if invocation.has(.exec) { try Interruption.prepare() }
    let names = invocation.operands.joined(separator: "', '")
    let hole = try invocation.open(create: true)
    let telling = Telling("watch channel", names, count: count)
    let watching = try invocation.watch(hole, telling)
    defer { watching.stop() }
    invocation.output.explain("watching '\(names)'")
    return try telling.wait(until: deadline)
  }
}

extension Invocation {
  fileprivate func watch(
    _ hole: Wormhole, _ telling: Telling
  ) throws -> Wormhole.Subscription {
    let isNamed = operands.count > 1 || has(.prefix)
    @Sendable func hear(_ snapshot: Wormhole.Snapshot<PropertyListValue>) {
      telling.tell { try tell(Wormhole.UntypedSnapshot(snapshot), isNamed) }
    }
    // One value that cannot be had ends nothing: the next may be sound, and others are.
    @Sendable func fail(_ error: WormholeError) {
      if error.code == .notAContainer { telling.end(error) } else { output.tell(Failure(error)) }
    }
    guard has(.prefix) else {
      let channels = operands.map { hole.channel($0, of: PropertyListValue.self) }
      return try hole.watch(channels, present: has(.now), hear, failure: fail)
    }
    guard operands.count == 1 else {
      throw Failure.usage("cannot watch: --prefix takes one prefix")
    }
    return try hole.watch(prefix: operands[0], present: has(.now), hear, failure: fail)
  }

  private func tell(
    _ snapshot: Wormhole.UntypedSnapshot, _ isNamed: Bool
  ) throws -> Int32 {
    guard let line = value(.exec) else {
      try output.write(line: snapshot, named: isNamed)
      return 0
    }
    let settings = [
      "WORMHOLE_CHANNEL=\(snapshot.channel)", "WORMHOLE_VERSION=\(snapshot.metadata.version)",
    ]
    do {
      let input = try snapshot.value?.printed() ?? []
      let status = try Programs.shell(line, input: input, settings).code
      // A command may take the signal for its own end only: nobody is told of the next change.
      if status == 0 { Interruption.endIfAsked() }
      return status
    } catch {
      throw Failure(neverRan: error)
    }
  }
}

extension Option {
  static let prefix = Option("prefix", nil, "watch all channels whose names begin with CHANNEL")
  static let now = Option("now", nil, "begin with what is there")
  static let count = Option("count", .any("N"), "end after N of them")
}
