import WormholeCommandLine
import WormholePropertyLists

/// The kinds of subjects that `events` reports.
enum EventKind: String, CaseIterable {
  case channel, setting, notice, message, context, worker, member, lock, access, damage, lost

  /// What can happen to a subject of the kind.
  var help: String {
    switch self {
    case .channel: "put, cleared, or unreadable; the name and the value"
    case .setting: "changed or removed; the suite, the key and the value"
    case .notice: "posted; the name"
    case .message:
      "waiting, delayed, claimed, acknowledged, requeued or dead; the member or queue, and the ID"
    case .context: "set; the member, and the sender"
    case .worker: "joined or left; the queue"
    case .member: "joined, left, stopped, resumed or changed; the name, and the process"
    case .lock: "held or free; the name, and the holder"
    case .access: "waiting, running, overtaken or ended; the files, and the process"
    case .damage: "set aside; the file in damaged/"
    case .lost: "notices were lost: events are missing before this line"
    }
  }
}

/// Something that has happened in a container.
struct ContainerEvent {
  let kind: EventKind
  let event: String
  let name: String
  /// Further words on the line.
  var detail: String?
  var value: PropertyListValue?
  var version: Int?
  var id: String?
  var sender: String?
  var attempt: Int?
  var process: Int32?

  init(_ kind: EventKind, _ event: String, _ name: String, _ detail: String? = nil) {
    (self.kind, self.event, self.name, self.detail) = (kind, event, name, detail)
  }

  /// The line that the event is written as.
  func line(_ now: String?) -> WrittenLine {
    let event = self
    var line = WrittenLine(name, .event) {
      [
        "kind": .string(event.kind.rawValue), "event": .string(event.event),
        "name": .string(event.name), "at": now.map { .string($0) }, "value": event.value,
        "detail": event.detail.map { .string($0) },
        "version": event.version.map { .integer(Int64($0)) }, "id": event.id.map { .string($0) },
        "from": event.sender.map { .string($0) },
        "attempt": event.attempt.map { .integer(Int64($0)) },
        "process": event.process.map { .integer(Int64($0)) },
      ]
    }
    line.plain = {
      var words = [event.kind.rawValue, event.event, try event.name.inOneLine()]
      if let detail = event.detail { words.append(try detail.inOneLine()) }
      if let value = event.value { words.append(try value.inOneLine()) }
      if let id = event.id { words.append(try id.inOneLine()) }
      if let sender = event.sender { words.append(try "from \(sender)".inOneLine()) }
      if let attempt = event.attempt, attempt > 0 { words.append("attempt \(attempt)") }
      return words.joined(separator: "\t")
    }
    (line.value, line.id, line.version) = (value, id, version)
    (line.sender, line.kind, line.attempt) = (sender, kind.rawValue, attempt)
    line.event = self.event
    return line
  }
}
