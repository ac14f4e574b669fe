import PropertyLists
import SharedContainer
import Syscalls
import Wormhole

extension Verb {
  static let watch = Verb(
    "watch", "write a line for each change of a channel",
    [Operand("CHANNEL", .many, .channels)], [.prefix, .now, .count, .timeout, .exec],
    [
      "Writes each new value on a line: a string as it is, if it fits on one, other values as JSON, "
        + "and (cleared) when a channel was cleared. With several channels, or --prefix, the name and "
        + "a tab come before it. With --json, one object a line, as 'get' writes it.",
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
    let hole = try invocation.open(create: true)
    let teller = Teller(invocation, count: count)
    let watching = try invocation.watch(hole, teller)
    defer { watching.stop() }
    let names = invocation.operands.joined(separator: "', '")
    invocation.output.explain("watching '\(names)'")
    return try teller.wait(until: deadline)
  }
}

extension Invocation {
  fileprivate func watch(
    _ hole: Wormhole, _ teller: Teller
  ) throws -> Wormhole.Watching {
    guard has(.prefix) else {
      let channels = operands.map { hole.channel($0, of: PropertyListValue.self) }
      return try hole.watch(
        channels, present: has(.now), teller.hear, failure: teller.end)
    }
    guard operands.count == 1 else {
      throw Failure.usage("cannot watch: --prefix takes one prefix")
    }
    return try hole.watch(
      prefix: operands[0], present: has(.now), teller.hear, failure: teller.end)
  }
}

/// Tells what is heard, on the watch's queue, and lets the main thread know when it is
/// enough.
private final class Teller: Sendable {
  private let invocation: Invocation
  private let count: Int?
  private let isNamed: Bool
  private let state = Monitor((told: 0, end: Result<Int32, any Error>?.none))

  init(_ invocation: Invocation, count: Int?) {
    self.invocation = invocation
    self.count = count
    isNamed = invocation.operands.count > 1 || invocation.has(.prefix)
  }

  func hear(_ snapshot: Wormhole.Snapshot<PropertyListValue>) {
    guard state.withLock({ $0.end }) == nil else { return }
    let status = Result { try tell(snapshot) }
    state.signal { state in
      state.told += 1
      switch status {
      case .success(0): if state.told == count { state.end = .success(0) }
      default: state.end = status
      }
    }
  }

  func end(_ error: WormholeError) { state.signal { $0.end = $0.end ?? .failure(error) } }

  private func tell(_ snapshot: Wormhole.Snapshot<PropertyListValue>) throws -> Int32 {
    guard let line = invocation.value(.exec) else {
      try invocation.output.write(line: snapshot, named: isNamed)
      return 0
    }
    let settings = [
      "WORMHOLE_CHANNEL=\(snapshot.channel)", "WORMHOLE_VERSION=\(snapshot.version)",
    ]
    do {
      let input = try snapshot.value?.printed() ?? []
      return try Programs.shell(line, input: input, settings).code
    } catch {
      throw Failure(neverRan: error)
    }
  }

  func wait(until deadline: Instant?) throws -> Int32 {
    try watchReader()
    if let end = state.wait(until: deadline, { $0.end }) { return try end.get() }
    let told = state.withLock { $0.told }
    if count == nil, told > 0 { return 0 }
    throw WormholeError(
      .timedOut, "watch channel", invocation.operands.joined(separator: "', '"),
      because: "time was up after \(told) changes")
  }

  /// Ends when whoever reads the output has gone, and not only with the next line.
  private func watchReader() throws {
    let state = state
    do throws(Errno) {
      try Thread("reader") {
        if (try? StandardStream.output.waitUntilBroken()) != nil {
          state.signal { $0.end = $0.end ?? .failure(ClosedPipe()) }
        }
      }.detach()
    } catch {
      throw WormholeError(error, "watch", "standard output")
    }
  }
}

extension Option {
  static let prefix = Option("prefix", nil, "watch all channels whose names begin with CHANNEL")
  static let now = Option("now", nil, "begin with what is there")
  static let count = Option("count", .any("N"), "end after N of them")
}
