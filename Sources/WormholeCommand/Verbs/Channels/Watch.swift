import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let watch = Verb(
    "watch", "print each change of a channel's value",
    [Operand("CHANNEL", .many, .names(.channels))],
    [.prefix, .now, .count, .timeout, .exec, .format, .timestamps],
    [
      "Writes each new value on a line: a string as text if it fits on one line, other values as "
        + "JSON, and (cleared) if the channel was cleared; the text '(cleared)' is written as "
        + "JSON. With several channels, or with --prefix, the channel's name and a tab precede "
        + "the value. With --json, writes one object per line, in the form of 'get'.",
      "If a channel changes several times in quick succession, only the newest value may be "
        + "written. The last change is never missed.",
      "With --exec, runs CMD in a shell for each change instead of writing a line, one run at a "
        + "time. CMD reads the value on standard input, in the form of 'get'. WORMHOLE_CHANNEL "
        + "contains the channel's name, and WORMHOLE_VERSION the version. If CMD fails, this "
        + "command ends with the status of CMD.",
      "With --timestamps, the time and a tab precede each line, and with --format, the line has "
        + "the form F. With --exec, such a line is written once CMD has succeeded.",
      "Exits with 1 if the time limit passes before --count changes were written, or, without "
        + "--count, before the first change.",
    ],
    [
      Example("wormhole watch speed --now", "print the current value, and every change"),
      Example(
        "wormhole watch --prefix seat. --json", "all channels whose names begin with 'seat.'"),
      Example(
        "wormhole watch answer --count 1 --timeout 5", "the next change, within five seconds"),
      Example("wormhole watch mode --exec 'systemctl reload app'", "run a command for each change"),
    ]
  ) { invocation in
    let telling = try ItemOutput(invocation)
    if invocation.has(.exec) { try Interruption.prepare() }
    let names = invocation.operands.joined(separator: "', '")
    let writer = try LineWriter(invocation)
    let container = try invocation.open(create: true)
    let watching = try invocation.watch(container, telling, writer)
    defer { watching.stop() }
    invocation.output.explain("watching '\(names)'")
    return try telling.wait("watch channel", names)
  }
}

extension Invocation {
  fileprivate func watch(
    _ container: SharedContainer, _ telling: ItemOutput, _ writer: LineWriter
  ) throws -> Subscription {
    let isNamed = operands.count > 1 || has(.prefix)
    @Sendable func hear(_ snapshot: Snapshot<PropertyListValue>) {
      telling.tell { try tell(UntypedSnapshot(snapshot), isNamed, writer) }
    }
    // One unreadable value does not end the watch: later values and other channels may be readable.
    @Sendable func fail(_ error: WormholeError) {
      if error.code == .notAContainer { telling.end(error) } else { output.tell(Failure(error)) }
    }
    guard has(.prefix) else {
      let channels = operands.map { container.channel($0, of: PropertyListValue.self) }
      return try container.watch(channels, initial: has(.now), hear, failure: fail)
    }
    guard operands.count == 1 else {
      throw Failure.usage("cannot watch: --prefix takes one prefix")
    }
    return try container.watch(prefix: operands[0], initial: has(.now), hear, failure: fail)
  }

  private func tell(
    _ snapshot: UntypedSnapshot, _ isNamed: Bool, _ writer: LineWriter
  ) throws -> Int32 {
    guard let line = value(.exec) else {
      try writer.write(WrittenLine(snapshot, named: isNamed))
      return 0
    }
    let settings = [
      "WORMHOLE_CHANNEL=\(snapshot.channel)", "WORMHOLE_VERSION=\(snapshot.metadata.version)",
    ]
    do {
      let input = try snapshot.value?.printed() ?? []
      let status = try Programs.shell(line, input: input, settings).code
      // A command may treat the signal as its own end only: after a signal no further change is
      // reported.
      if status == 0 {
        if writer.isChosen { try writer.write(WrittenLine(snapshot, named: isNamed)) }
        Interruption.endIfAsked()
      }
      return status
    } catch {
      throw Failure(neverRan: error)
    }
  }
}

extension Option {
  static let prefix = Option("prefix", nil, "watch all channels whose names begin with CHANNEL")
}
