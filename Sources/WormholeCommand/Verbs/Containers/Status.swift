import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholeSyscalls

extension Verb {
  static let status = Verb(
    "status", "show what is in a container, and who uses it", [], [.locksOnly, .redraw, .interval],
    [
      "Shows the number of channels and the bytes of their values; of each queue and member the "
        + "waiting messages, the age of the oldest, the claimed, the delayed and the dead ones and "
        + "the bytes, with the workers of a queue and the state of a member; the named locks that "
        + "are held, with holder and age; the accesses to files; the space; and the problems that "
        + "'doctor' would report.",
      "In a terminal, prints tables. Elsewhere, prints a line for each subject, with tabs between "
        + "the fields, of which the first names the subject: container (path), channels (number, "
        + "bytes), queue (name, waiting, oldest, claimed, delayed, dead, workers, bytes), member "
        + "(name, state, waiting, oldest, claimed, delayed, dead, bytes), lock (name, age, "
        + "holder), access (state, holder, age, files), damaged (files set aside), space (bytes "
        + "used, bytes free), doctor (problems, notes, unchecked), problem (subject, finding). "
        + "Ages are in seconds, and a dash stands for an unknown field. With --json, writes one "
        + "object.",
      "Only counts: values are read for a fifth of a second in search of damage, and messages if "
        + "there are at most 200. The rest is counted as unchecked, and 'doctor' reads it. "
        + "Messages that have expired and were not removed yet count as waiting.",
      "With --locks, lists the held locks only, a line for each: name, age in seconds, and holder. "
        + "The age of a lock that a suspended holder has includes the suspension.",
      "With --watch, shows the status again every two seconds, or at the interval in --interval: "
        + "in a terminal on a page that ends with the key q or with Ctrl-C, and elsewhere below "
        + "the last one.",
    ],
    [
      Example("wormhole status", "channels, queues, members, locks and problems"),
      Example("wormhole status --watch", "the same, on a page that is kept up to date"),
      Example("wormhole status --locks", "who holds which lock, for how long"),
      Example("wormhole status --json", "an object, for programs"),
    ],
    action: "show the status"
  ) { invocation in
    if invocation.has(.interval), !invocation.has(.redraw) {
      throw Failure.usage("cannot show the status: --interval requires --watch")
    }
    let given = try invocation.seconds(.interval, " of at least 0.1s") { $0 >= .milliseconds(100) }
    let interval = given ?? .seconds(2)
    let container = try invocation.open(create: false) { $0.isForReading = true }
    guard invocation.has(.redraw) else {
      try invocation.writeStatus(container)
      return 0
    }
    return try invocation.output.isPage
      ? invocation.drawStatus(container, every: interval)
      : invocation.repeatStatus(container, every: interval)
  }
}

extension Invocation {
  fileprivate func writeStatus(_ container: SharedContainer) throws {
    if has(.locksOnly) { return try writeLocks(container) }
    let report = try StatusReport(container)
    if output.isJSON { return try output.write(.status, report.object) }
    for line in try statusLines(report) { try output.write(line: line) }
  }

  private func statusLines(_ report: StatusReport) throws -> [String] {
    try StandardStream.output.isTerminal ? report.lines(.ofOutput) : report.bareLines()
  }

  private func writeLocks(_ container: SharedContainer) throws {
    var listing = Listing(output, HeldLock.titles)
    for lock in try container.storage.heldLocks() {
      if output.isJSON {
        try output.write(.lock, lock.object)
      } else {
        try listing.add(lock.cells, bare: lock.fields.joined(separator: "\t"))
      }
    }
    try listing.finish()
  }

  fileprivate func repeatStatus(
    _ container: SharedContainer, every interval: Duration
  ) throws -> Int32 {
    let isUnread = Monitor(false)
    // A list without a held lock writes nothing that would fail.
    try ItemOutput.watchReader { isUnread.signal { $0 = true } }
    while true {
      try writeStatus(container)
      guard isUnread.wait(until: .now + interval, { $0 ? true : nil }) == nil else {
        throw ClosedPipe()
      }
      // An object or a list of locks needs no separation.
      if !output.isJSON { try output.write(line: "") }
    }
  }

  fileprivate func drawStatus(
    _ container: SharedContainer, every interval: Duration
  ) throws -> Int32 {
    let screen = FullScreen()
    try screen.open()
    defer { screen.close() }
    let style = TerminalStyle.ofOutput
    var next = Instant.now
    var lines: [String] = []
    while true {
      // After a change of the terminal's size, the same lines are drawn.
      if Instant.now >= next {
        lines =
          try has(.locksOnly)
          ? Listing.lines(
            HeldLock.titles, try container.storage.heldLocks().map { try $0.cells }, style)
          : StatusReport(container).lines(style)
        next = .now + interval
      }
      try screen.draw(lines)
      guard screen.wait(next - .now) else { return 0 }
    }
  }
}

extension Output {
  /// Whether a page can be drawn.
  fileprivate var isPage: Bool { !isJSON && StandardStream.output.isTerminal }
}

extension Option {
  static let locksOnly = Option("locks", nil, "list the held locks only")
  static let redraw = Option("watch", nil, "show the status again and again")
  static let interval = Option("interval", .any("D"), "time between two pages; 2s by default")
}
