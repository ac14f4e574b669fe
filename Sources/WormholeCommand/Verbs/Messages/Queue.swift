import FoundationEssentials
import Wormhole
import WormholeCommandLine
import WormholeContainerStorage
import WormholePropertyLists
import WormholeSyscalls

extension Verb {
  static let queue = Verb(
    "queue", "list a member's unhandled messages",
    [Operand("NAME", .one, .names(.members))],
    [
      .dead, .contexts, .cancel, .retry, .discard, .discardAll, .purge, .kind, .olderThan,
      .outcomes, .clear, .ofMember, .ofQueue,
    ],
    [
      "Writes a line for each claimed or waiting message, in the order of delivery, separated by "
        + "tabs: ID, state ('waiting'; 'claimed' with the attempt; 'interrupted' with the attempt "
        + "if the receiver has ended; 'in transit' to a member of another machine), sender, kind, "
        + "number of messages, bytes, and time of sending. A dash stands for an unknown field. "
        + "With --json, writes one object per line.",
      "NAME is a member, or a queue of several workers. If NAME is both, --member or --queue "
        + "decides. A queue has no contexts, and no outcomes of its own: --queue excludes "
        + "--contexts, --outcomes and --remove-outcomes.",
      "With --dead, lists the dead letters: ID, sender, kind, number of messages, number of failed "
        + "attempts, time of sending, and reason. A dead letter stays until it is retried or "
        + "discarded.",
      "With --contexts, lists the contexts set for NAME, the latest of each sender: sender, "
        + "state (received or waiting), kind, value, and time.",
      "With --cancel, cancels a waiting message; its sender is notified, if the sender requested "
        + "the outcome. A message that is in transit is cancelled by the other machine, if it is "
        + "in time. Exits with 1 if the message no longer waits. With --retry, moves a dead letter "
        + "back to the queue, and with --discard, removes a dead letter; both exit with 1 if the "
        + "dead letter does not exist.",
      "With --purge, cancels all waiting messages, and with --discard-all, removes all dead "
        + "letters; with --kind those of a kind, and with --older-than those that were sent at "
        + "least so long ago. Claimed messages stay. A dead letter that cannot be removed is "
        + "reported after the others are removed.",
      "With --outcomes, lists the pending outcomes of messages that NAME has sent, which NAME "
        + "has not received yet: ID, receiver, kind, number of messages, and outcome. With "
        + "--remove-outcomes, removes the pending outcomes, and NAME never receives them.",
      "With --json, each change writes the message and its outcome.",
    ],
    [
      Example("wormhole queue watch", "list all unhandled messages"),
      Example("wormhole queue watch --dead", "list its dead letters"),
      Example("wormhole queue watch --contexts", "list its contexts"),
      Example("wormhole queue watch --purge --older-than 1h", "cancel messages of earlier hours"),
      Example("wormhole queue watch --retry 3f9a0c11d2e84b67", "deliver a dead letter again"),
      Example(
        "wormhole queue watch --discard-all --older-than 30d", "remove old dead letters"),
    ],
    action: "list or change a queue"
  ) { invocation in
    let name = invocation.operands[0]
    let action = try invocation.only(
      of: [.dead, .contexts, .cancel, .retry, .discard, .discardAll, .purge, .outcomes, .clear])
    try invocation.require(.purge, .discardAll, for: [.kind, .olderThan])
    if invocation.has(.purge) { return try invocation.purge(name) }
    if invocation.has(.discardAll) { return try invocation.discardAll(of: name) }
    if invocation.has(.clear) {
      let peer = try invocation.addressee(name, in: try invocation.open(create: false))
      let count = try peer.removePendingOutcomes()
      invocation.output.explain("\(count) outcomes removed")
      try invocation.output.ofDone.write(
        end: "pending", from: name, count: count)
      return 0
    }
    guard let action, let id = invocation.value(action), action.argument != nil
    else { return try invocation.listQueue(of: name) }
    return try invocation.change(id, action, in: name)
  }
}

extension Invocation {
  /// Returns the member or the queue that has the name.
  fileprivate func addressee(_ name: String, in container: SharedContainer) throws -> Peer {
    // What only a member has.
    let ofMember = [Option.ofMember, .contexts, .outcomes, .clear].first(where: has)
    if let ofMember {
      try exclude(ofMember, [.ofQueue])
      return container.peer(name)
    }
    guard try has(.ofQueue) || container.queues().contains(name) else {
      return container.peer(name)
    }
    guard try has(.ofQueue) || !container.isMember(name) else {
      throw Failure.usage(
        "cannot choose a queue: '\(name)' is a member and a queue; add --member or --queue")
    }
    return container.peer(name).ofQueue
  }

  fileprivate func listQueue(of name: String) throws -> Int32 {
    let peer = try addressee(name, in: try open(create: false) { $0.isForReading = true })
    try output.gathering { try listQueue(of: peer, name, $0) }
    return 0
  }

  private func listQueue(of peer: Peer, _ name: String, _ output: Output) throws {
    var listing: Listing
    if has(.dead) {
      listing = Listing(
        output, ["ID", "FROM", "KIND", "COUNT", "ATTEMPTS", "SENT", "REASON"], numbers: [3, 4])
      for letter in try peer.deadLetters { try output.write(letter, to: name, &listing) }
    } else if has(.contexts) {
      listing = Listing(output, ["FROM", "STATE", "KIND", "VALUE", "SENT"])
      for told in try peer.toldContexts { try output.write(told, to: name, &listing) }
    } else if has(.outcomes) {
      listing = Listing(output, ["ID", "TO", "KIND", "COUNT", "OUTCOME"], numbers: [3])
      for outcome in try peer.pendingOutcomes { try output.write(outcome, from: name, &listing) }
    } else {
      listing = Listing(
        output, ["ID", "STATE", "FROM", "KIND", "COUNT", "BYTES", "SENT"], numbers: [4, 5])
      // Written while listing: only the names of a full queue fit into little memory.
      var failure: (any Error)?
      try peer.forEachQueued { message in
        do { try output.write(message, to: name, &listing) } catch { failure = error }
        return failure == nil
      }
      if let failure { throw failure }
    }
    try listing.finish()
  }

  fileprivate func purge(_ name: String) throws -> Int32 {
    let (kind, age) = (value(.kind), try seconds(.olderThan))
    let count = try addressee(name, in: try open(create: false)).purge(kind: kind, olderThan: age)
    output.explain(count == 1 ? "1 message was cancelled" : "\(count) messages were cancelled")
    try output.ofDone.write(end: "cancelled", to: name, count: count)
    return 0
  }

  fileprivate func discardAll(of name: String) throws -> Int32 {
    let (kind, age) = (value(.kind), try seconds(.olderThan))
    let peer = try addressee(name, in: try open(create: false))
    let (count, failure) = try peer.discardAll(kind: kind, olderThan: age)
    output.explain(count == 1 ? "1 message was discarded" : "\(count) messages were discarded")
    try output.ofDone.write(end: "discarded", to: name, count: count)
    if let failure { throw failure }
    return 0
  }

  fileprivate func change(_ id: String, _ action: Option, in name: String) throws -> Int32 {
    let peer = try addressee(name, in: try open(create: false))
    var end: String?
    var missing = "'\(name)' has no such dead letter"
    let isDone: Bool
    switch action.name {
    case Option.cancel.name:
      (end, missing) = ("cancelled", "no such message waits for '\(name)'")
      let cancellation = try peer.cancel(id: id)
      isDone = cancellation != .tooLate
      if cancellation == .requested {
        end = "requested"
        output.tell(
          "message '\(id)' is on its way to another machine, which was asked to cancel it")
      }
    case Option.retry.name:
      isDone = try peer.retry(id: id)
    default:
      end = "discarded"
      isDone = try peer.discard(id: id)
    }
    guard isDone else {
      throw WormholeError(.notFound, "\(action.name) message", id, because: missing)
    }
    try output.ofDone.write(id: id, end: end, to: name)
    return 0
  }
}

extension Output {
  fileprivate func write(
    _ message: QueuedMessage, to name: String, _ listing: inout Listing
  ) throws {
    guard isJSON else {
      var place = message.state.rawValue
      if message.attempt > 0, message.state != .inTransit {
        place += " (\(message.attempt))"
      } else if let start = message.notBefore.flatMap({ DateText.format($0) }) {
        place += " until \(start)"
      }
      return try listing.add(
        columns: [
          message.id, message.damage.map { "damaged: \($0)" } ?? place, message.from, message.kind,
          String(message.count), String(message.size),
          message.sentAt.flatMap { DateText.format($0) },
        ])
    }
    try write(
      .queued,
      [
        "id": .string(message.id), "from": message.from.map { .string($0) }, "to": .string(name),
        "kind": message.kind.map { .string($0) }, "headers": value(of: message.headers),
        "orderingKey": message.orderingKey.map { .string($0) },
        "sent": message.sentAt.flatMap { DateText.format($0) }.map { .string($0) },
        "count": .integer(Int64(message.count)), "size": .integer(Int64(message.size)),
        "urgent": .boolean(message.isUrgent), "state": .string(message.state.rawValue),
        "attempt": .integer(Int64(message.attempt)),
        "damage": message.damage.map { .string($0) },
        "notBefore": message.notBefore.flatMap { DateText.format($0) }.map { .string($0) },
      ])
  }

  fileprivate func write(
    _ letter: DeadLetter, to name: String, _ listing: inout Listing
  ) throws {
    guard isJSON else {
      return try listing.add(
        columns: [
          letter.id, letter.from, letter.kind, "\(letter.count)", "\(letter.attempts)",
          letter.sentAt.flatMap { DateText.format($0) }, letter.reason,
        ])
    }
    try write(
      .queued,
      [
        "id": .string(letter.id), "from": letter.from.map { .string($0) }, "to": .string(name),
        "kind": letter.kind.map { .string($0) }, "headers": value(of: letter.headers),
        "sent": letter.sentAt.flatMap { DateText.format($0) }.map { .string($0) },
        "count": .integer(Int64(letter.count)), "size": .integer(Int64(letter.size)),
        "state": "dead", "attempt": .integer(Int64(letter.attempts)),
        "failedAt": letter.failedAt.flatMap { DateText.format($0) }.map { .string($0) },
        "reason": letter.reason.map { .string($0) },
      ])
  }

  /// Writes the result of an action on one message or several.
  fileprivate func write(
    id: String? = nil, end: String?, from: String? = nil, to: String? = nil, count: Int? = nil
  ) throws {
    guard isJSON else { return }
    try write(
      .sent,
      [
        "delivery": "guaranteed", "id": id.map { .string($0) }, "from": from.map { .string($0) },
        "to": to.map { .string($0) }, "count": count.map { .integer(Int64($0)) },
        "status": end.map { .string($0) },
      ])
  }

  fileprivate func write(
    _ outcome: Outcome, from name: String, _ listing: inout Listing
  ) throws {
    let (end, word, reason): (String, String, String?) =
      switch outcome.status {
      case .delivered: ("delivered", "delivered", nil)
      case .cancelled: ("cancelled", "cancelled", nil)
      case .expired: ("expired", "expired", nil)
      case .deadLettered(let reason): ("dead-lettered", "deadLettered", reason)
      }
    guard isJSON else {
      return try listing.add(
        columns: [
          outcome.id, outcome.to, outcome.kind, "\(outcome.count)",
          reason.map { "\(end): \($0)" } ?? end,
        ])
    }
    try write(
      .sent,
      [
        "delivery": "guaranteed", "id": .string(outcome.id), "from": .string(name),
        "to": .string(outcome.to), "kind": .string(outcome.kind),
        "headers": value(of: outcome.headers),
        "count": .integer(Int64(outcome.count)), "file": (outcome.file?.name).map { .string($0) },
        "status": .string(word), "reason": reason.map { .string($0) },
      ])
  }

}

extension Listing {
  /// Adds a row of fields, each on one line; a dash stands for an unknown field.
  mutating func add(columns: [String?]) throws {
    guard isTable else { return try add(bare: columns) }
    try add(
      columns.map { text in
        let word = try (text ?? "-").inOneLine()
        let isBad = word.begins(with: "damaged: ") || word.begins(with: "dead-lettered")
        return Cell(word, isBad ? .bad : .plain)
      })
  }
}

extension Option {
  static let outcomes = Option(
    "outcomes", nil, "list the pending outcomes of messages that NAME has sent")
  static let contexts = Option("contexts", nil, "list the contexts set for NAME")
  static let clear = Option("remove-outcomes", nil, "remove the pending outcomes")
  static let ofMember = Option("member", nil, "list or change the member NAME")
  static let ofQueue = Option("queue", nil, "list or change the queue NAME")
  static let dead = Option("dead", nil, "list the dead letters")
  static let cancel = Option("cancel", .found("ID", Names.waiting), "waiting message to cancel")
  static let retry = Option(
    "retry", .found("ID", Names.deadLetters), "dead letter to deliver again")
  static let purge = Option("purge", nil, "cancel the waiting messages")
  static let olderThan = Option("older-than", .any("D"), "time since the messages were sent")
  static let discard = Option("discard", .found("ID", Names.deadLetters), "dead letter to remove")
  static let discardAll = Option("discard-all", nil, "remove the dead letters")
}
