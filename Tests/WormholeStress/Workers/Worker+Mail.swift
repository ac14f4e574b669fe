import FoundationEssentials
import Wormhole
import WormholeContainerStorage
import WormholeSyscalls

/// The worker's communication with other workers.
extension Worker {
  private func other() -> String {
    // Never the worker itself: a worker that waits for its own reply would only wait.
    let step = dice.number(1..<max(2, plan.processes))
    return plan.name((number + step) % plan.processes)
  }

  func send(_ membership: Membership) {
    let to = other()
    let count = dice.oneIn(4) ? dice.number(2..<9) : 1
    let tokens = (0..<count).map { _ in token() }
    var options = SendOptions()
    options.durability = dice.oneIn(8) ? .power : .process
    follow(tokens[0], &options)
    perform(.send(to: to, tokens: tokens)) { [options] in
      let peer = membership.member.peer(to)
      guard count == 1 else {
        try peer.send(contentsOf: tokens.map { Payload($0) }, options)
        return .done
      }
      membership.sent.append((tokens[0], try peer.send(Payload(tokens[0]), options)))
      return .done
    }
  }

  /// Sends a message to the shared queue: half of them have one of a few ordering keys.
  func sendJob(_ container: SharedContainer) {
    let token = token()
    var options = SendOptions()
    options.durability = dice.oneIn(8) ? .power : .process
    options.orderingKey = dice.oneIn(2) ? "key \(dice.number(0..<4))" : nil
    perform(.job(token: token, key: options.orderingKey)) { [options] in
      try container.queue(Plan.queue, of: Payload.self).send(Payload(token), options)
      return .done
    }
  }

  private func follow(_ token: String, _ options: inout SendOptions) {
    options.kind = Payload.kind(token)
    let isFollowed = Payload.isFollowed(token)
    options.wantsOutcome = isFollowed
    if isFollowed { options.id = token }
  }

  /// Cancels one of the latest messages, which may have been handled long ago.
  func cancel(_ membership: Membership) {
    guard let (token, sent) = membership.sent.popLast() else { return send(membership) }
    perform(.cancel(token: token)) { .truth(try sent.cancel() == .cancelled) }
    if membership.sent.count > 8 { membership.sent.removeFirst(membership.sent.count - 8) }
  }

  func sendFile(_ membership: Membership) {
    let (to, token) = (other(), token())
    let path = "\(plan.directory)/file.\(token)"
    var options = SendOptions()
    follow(token, &options)
    perform(.sendFile(to: to, token: token)) { [options] in
      let file = try Descriptor.open(path: path, [.writeOnly, .create], mode: 0o600)
      let content = Array(Payload.filling(token))
      try file.writeFully(content)
      try membership.member.peer(to)
        .send(file: path, metadata: token, mode: .moving, options)
      return .done
    }
  }

  func tell(_ membership: Membership) {
    let (to, token) = (other(), token())
    let durability: Durability = dice.oneIn(8) ? .power : .process
    perform(.tell(to: to, token: token)) {
      try membership.member.peer(to).setContext(Payload(token), durability: durability)
      return .done
    }
  }

  func ask(_ membership: Membership) {
    let (to, token) = (other(), token())
    perform(.ask(of: to, token: token)) {
      let answer: String = try membership.member.peer(to)
        .request(token, within: .milliseconds(100))
      if answer != token + "!" { journal.note(.broken("'\(token)' was answered with '\(answer)'")) }
      return .done
    }
  }
}

/// The first attempt of some messages.
private struct Refusal: Error {}

/// A worker as a member: it receives all messages, and replies to requests.
final class Membership {
  let member: Member
  /// The messages that were sent last and may be cancelled.
  var sent: [(token: String, sent: Sent)] = []
  private let receiving: Any
  private let responding: Any
  private let listening: Any
  private let following: Any
  private let working: Subscription

  init(_ container: SharedContainer, _ name: String, _ journal: Journal) throws {
    member = try Self.join(container, name)
    receiving = try Self.receive(member, journal)
    responding = member.respond(to: String.self) { token in
      journal.note(.asked(token: token))
      return token + "!"
    }
    listening = try member.watchContexts { Self.hear($0, journal) }
    following = try Self.follow(member, journal)
    working = try Self.work(container, journal)
  }

  /// Works on the queue that all workers share.
  static func work(_ container: SharedContainer, _ journal: Journal) throws -> Subscription {
    // No process is suspended for so long: a late handler could note its message at any time.
    let queue = container.queue(Plan.queue, of: Payload.self)
    return try queue.work(concurrency: 2, handlingDeadline: .seconds(20)) { payload, message in
      journal.note(.tookJob(token: payload.token, isRedelivered: message.isRedelivered))
      if let damage = payload.damage { journal.note(.broken(damage)) }
      // The others of the key must wait for the second attempt, which any worker may make.
      if Payload.fails(payload.token), message.attempt == 1 { throw Refusal() }
      do {
        try message.acknowledge()
        journal.note(.endedJob(token: payload.token, isSure: true))
      } catch {
        journal.note(.endedJob(token: payload.token, isSure: false))
        throw error
      }
    }
  }

  /// Records the outcomes of the member's own messages.
  static func follow(
    _ member: Member, _ journal: Journal
  ) throws -> Subscription {
    try member.watchOutcomes { outcome in
      let end =
        switch outcome.status {
        case .delivered: "delivered"
        case .cancelled: "cancelled"
        case .expired: "expired"
        case .deadLettered: "given up"
        @unknown default: "unknown"
        }
      journal.note(.told(token: outcome.id, end: end))
    }
  }

  /// Starts one receiver for all kinds, or one for each kind.
  static func receive(
    _ member: Member, _ journal: Journal
  ) throws -> [Subscription] {
    let wanted = Plan.chooses(member.name) ? Payload.kinds.map { [$0] } : [Set(Payload.kinds)]
    return try wanted.map { kinds in
      try member.receive(kinds: kinds, acknowledging: .explicit) { message in
        if !kinds.contains(message.kind) {
          journal.note(.broken("'\(message.kind)' came to whoever wants \(kinds.sorted())"))
        }
        try handle(message, journal)
      }
    }
  }

  static func hear(_ context: Context, _ journal: Journal) {
    do {
      let payload: Payload = try context.value()
      journal.note(.heard(token: payload.token, from: context.from))
      if let damage = payload.damage { journal.note(.broken(damage)) }
    } catch {
      journal.note(.broken("a state that was told cannot be read: \(error)"))
    }
  }

  func leave() {
    working.stop()
    member.leave()
  }

  /// The name is free as soon as its last holder is gone, which takes a moment.
  private static func join(_ container: SharedContainer, _ name: String) throws -> Member {
    let deadline = Instant.now + .seconds(10)
    while true {
      do throws(WormholeError) {
        return try container.join(as: name)
      } catch {
        guard error.code == .nameTaken, Instant.now < deadline else { throw error }
      }
    }
  }

  private static func handle(_ message: Message, _ journal: Journal) throws {
    let token: String
    if let file = message.file {
      token = try file.metadata() ?? "-"
      journal.note(
        .got(token: token, from: message.from ?? "-", isRedelivered: message.isRedelivered))
      let content = try contents(file.path)
      if content != Array(Payload.filling(token)) {
        journal.note(.broken("file '\(token)' is not what was sent"))
      }
    } else {
      let payload: Payload = try message.value()
      token = payload.token
      journal.note(
        .got(token: token, from: message.from ?? "-", isRedelivered: message.isRedelivered))
      if let damage = payload.damage { journal.note(.broken(damage)) }
    }
    do {
      try message.acknowledge()
      journal.note(.acknowledged(token: token, isSure: true))
    } catch {
      journal.note(.acknowledged(token: token, isSure: false))
      throw error
    }
  }

  private static func contents(_ path: String) throws -> [UInt8] {
    let file = try Descriptor.open(path: path, [.readOnly])
    var bytes = [UInt8](repeating: 0, count: try file.status().size)
    let count = try bytes.withUnsafeMutableBytes { try file.readFully(into: $0) }
    return Array(bytes[..<count])
  }
}
