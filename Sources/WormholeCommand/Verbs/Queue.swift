import FoundationEssentials
import PropertyLists
import SharedContainer
import Wormhole

extension Verb {
  static let queue = Verb(
    "queue", "list what a member was sent and has not handled", [Operand("NAME", .one, .members)],
    [.dead, .cancel, .retry, .discard],
    [
      "Writes a line for each message that is in hand or waits, in the order in which they come, "
        + "with tabs between: id, where it is, sender, kind, how many messages it holds, bytes, "
        + "and when it was sent. A dash stands for what nobody has said. With --json, one object "
        + "a line.",
      "With --dead, those that were given up: id, sender, kind, how often they were handled in "
        + "vain, when they were sent, and the reason. They stay until somebody retries or discards "
        + "them.",
      "With --cancel, takes a message back that waits; its sender is told, if it asked. Exits with "
        + "1 if it waits no longer. With --retry, puts a dead letter back into the queue, and with "
        + "--discard removes it; exits with 1 if there is none.",
    ],
    [
      Example("wormhole queue watch", "what waits for it"),
      Example("wormhole queue watch --dead", "what it has given up"),
      Example("wormhole queue watch --retry 3f9a0c11d2e84b67", "have it handled once more"),
    ]
  ) { invocation in
    let name = invocation.operands[0]
    let actions = [Option.dead, .cancel, .retry, .discard].filter(invocation.has)
    guard actions.count < 2 else {
      throw Failure.usage(
        "cannot queue: --\(actions[0].name) and --\(actions[1].name) exclude each other")
    }
    guard let action = actions.first, let id = invocation.value(action), action.argument != nil
    else {
      let peer = try invocation.open(create: false) { $0.isForReading = true }.peer(name)
      if invocation.has(.dead) {
        for letter in try peer.deadLetters { try invocation.output.write(letter) }
      } else {
        for message in try peer.queue { try invocation.output.write(message) }
      }
      return 0
    }
    let peer = try invocation.open(create: false).peer(name)
    let (isDone, missing) =
      switch action.name {
      case Option.cancel.name:
        (try peer.cancel(id: id), "it does not wait for '\(name)', or no longer")
      case Option.retry.name: (try peer.retry(id: id), "'\(name)' has no such dead letter")
      default: (try peer.discard(id: id), "'\(name)' has no such dead letter")
      }
    guard isDone else {
      throw WormholeError(.notFound, "\(action.name) message", id, because: missing)
    }
    return 0
  }
}

extension Output {
  fileprivate func write(_ message: Wormhole.QueuedMessage) throws {
    guard isJSON else {
      let place =
        message.attempt == 0 ? message.place.rawValue : "in hand (\(message.attempt))"
      return try write(
        columns: [
          message.id, message.damage.map { "damaged: \($0)" } ?? place, message.from, message.kind,
          "\(message.count)", "\(message.size)", message.sent.flatMap { DateText.format($0) },
        ])
    }
    var object: [String: PropertyListValue] = [
      "id": .string(message.id), "place": .string(message.place.rawValue),
      "attempt": .integer(Int64(message.attempt)), "count": .integer(Int64(message.count)),
      "size": .integer(Int64(message.size)), "urgent": .boolean(message.isUrgent),
    ]
    object["from"] = message.from.map { .string($0) }
    object["kind"] = message.kind.map { .string($0) }
    object["sent"] = message.sent.flatMap { DateText.format($0) }.map { .string($0) }
    object["damage"] = message.damage.map { .string($0) }
    try write(object)
  }

  fileprivate func write(_ letter: Wormhole.DeadLetter) throws {
    guard isJSON else {
      return try write(
        columns: [
          letter.id, letter.from, letter.kind, "\(letter.attempts)",
          letter.sent.flatMap { DateText.format($0) }, letter.reason,
        ])
    }
    var object: [String: PropertyListValue] = [
      "id": .string(letter.id), "attempts": .integer(Int64(letter.attempts)),
      "count": .integer(Int64(letter.count)), "size": .integer(Int64(letter.size)),
    ]
    object["from"] = letter.from.map { .string($0) }
    object["kind"] = letter.kind.map { .string($0) }
    object["sent"] = letter.sent.flatMap { DateText.format($0) }.map { .string($0) }
    object["given"] = letter.given.flatMap { DateText.format($0) }.map { .string($0) }
    object["reason"] = letter.reason.map { .string($0) }
    try write(object)
  }

  private func write(columns: [String?]) throws {
    try write(line: try columns.map { try ($0 ?? "-").inOneLine() }.joined(separator: "\t"))
  }
}

extension Option {
  static let dead = Option("dead", nil, "list those that were given up")
  static let cancel = Option("cancel", .any("ID"), "take a message back that waits")
  static let retry = Option("retry", .any("ID"), "have one handled again that was given up")
  static let discard = Option("discard", .any("ID"), "remove one that was given up")
}
