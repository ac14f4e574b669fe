import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let events = Verb(
    "events", "print what happens in a container, as it happens", [],
    [.eventKind, .format, .timestamps, .count, .timeout],
    [
      "Writes a line for each event, with tabs between the fields: the kind of the subject, what "
        + "has happened, the name of the subject, and more, depending on the kind. With --json, "
        + "writes one object per line. With --kind, writes the events of these kinds only.",
      "The kinds: "
        + EventKind.allCases.map { "\($0.rawValue) (\($0.help))" }.joined(separator: "; ") + ".",
      "Shows of each channel and inbox what a watcher would be notified of: of quick changes the "
        + "last, and not each. The lines of one subject are in order; those of different subjects "
        + "may not be. If notices were lost, because the kernel had too many or the reader of the "
        + "output was slow, a line of the kind 'lost' says so. No message is read, and nothing is "
        + "changed or claimed. On file systems without notices, as NFS, messages are not shown.",
      "Exits with 1 if the time limit passes before --count events, or, without --count, before "
        + "the first event.",
    ],
    [
      Example("wormhole events", "print everything that happens"),
      Example("wormhole events --kind message --kind worker", "messages and workers only"),
      Example("wormhole events --format '%I %k %e %t'", "time, kind, event and name"),
      Example("wormhole events --json", "objects, for programs"),
    ],
    action: "print the events"
  ) { invocation in
    let telling = try ItemOutput(invocation)
    let kinds = invocation.eventKinds
    let writer = try LineWriter(invocation)
    let container = try invocation.open(create: true)
    let feed = EventFeed(container, kinds) {
      telling.end($0)
    } _: { event in
      telling.tell {
        try writer.write(event.line(DateText.format(Date(sinceEpochNow: Clocks.sinceEpoch))))
        return 0
      }
    }
    try feed.start()
    defer { feed.stop() }
    invocation.output.explain("watching '\(container.storage.path)'")
    return try telling.wait("print the events in", container.storage.path)
  }
}

extension Invocation {
  fileprivate var eventKinds: Set<EventKind> {
    let kinds = values(.eventKind).compactMap(EventKind.init)
    // Lost notices concern every kind.
    return kinds.isEmpty ? Set(EventKind.allCases) : Set(kinds + [.lost])
  }
}

extension Date {
  /// - Parameter nanoseconds: since 1970; rounded to milliseconds.
  init(sinceEpochNow nanoseconds: Int64) {
    self.init(timeIntervalSince1970: Double(nanoseconds / 1_000_000) / 1000)
  }
}

extension Option {
  static let eventKind = Option(
    "kind", .oneOf("KIND", EventKind.allCases.map(\.rawValue)),
    "kind of events to print; may be repeated", isRepeatable: true)
}
