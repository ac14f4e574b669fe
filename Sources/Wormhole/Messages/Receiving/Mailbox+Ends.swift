internal import FoundationEssentials
internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// How a message ends: by one rename of its one file, or its removal, so that exactly one end wins.
extension Mailbox {
  /// Ends what is claimed, and tells the sender if it asked.
  ///
  /// - Parameter size: how many bytes its file has, where that is known.
  func end(
    _ claimed: ClaimedName, _ end: MessageEnd, size: Int = 0
  ) throws(WormholeError) {
    let operation = "acknowledge message"
    do throws(Errno) {
      let isOurs = try home.ending(claimed.name, claimed.text, in: .claimed) {
        () throws(Errno) in
        try self.end(claimed, end, telling: senders.home(of: claimed.name), size)
      }
      if !isOurs { throw .noSuchFile }
    } catch {
      guard error == .noSuchFile else { throw WormholeError(error, operation, claimed.name.id) }
      throw WormholeError(
        .superseded, operation, claimed.name.id,
        because: "another process has become '\(home.name)' meanwhile, and has the message now",
        errno: error)
    }
  }

  /// False if it is not there any more.
  private func end(
    _ claimed: ClaimedName, _ end: MessageEnd, telling sender: MemberDirectory?, _ size: Int
  ) throws(Errno) -> Bool {
    guard let sender else { return try home.remove(claimed.text, from: .claimed) }
    let receipt = ReceiptName(claimed.name, end).text
    if try home.move(claimed.text, from: .claimed, to: sender, .receipts, as: receipt) {
      Receipts.bound(sender, after: size, hole)
      return true
    }
    if !sender.isStale { return false }
    // It was removed, and may have joined anew.
    senders.forget(claimed.name)
    return try self.end(claimed, end, telling: senders.home(of: claimed.name), size)
  }

  /// Gives up a file: it goes to the dead letters, with the reason, and the sender is told.
  ///
  /// The dead letter is a second name of the same file, given before the end; a process that dies
  /// between the two leaves a message that the next one gives up again.
  func giveUp(
    _ claimed: ClaimedName, kind: MessageLabel?, attempts: Int, _ reason: String, by receiver: Int
  ) throws(WormholeError) {
    do throws(WormholeError) {
      try explain(claimed.name, attempts: attempts, reason)
      if try bury(claimed) { try end(claimed, .dead) }
    } catch {
      if error.code == .superseded {
        finished(by: receiver)
      } else {
        postpone(claimed, kind: kind, by: receiver)
      }
      throw error
    }
    finished(by: receiver)
    log(
      .error, "gave up message '\(claimed.name.id)' to '\(home.name)': \(reason)", claimed.name)
  }

  /// Gives a file a second name among the dead letters; false if it has only that one now.
  private func bury(_ claimed: ClaimedName) throws(WormholeError) -> Bool {
    do throws(Errno) {
      do throws(Errno) {
        try home.link(claimed.text, from: .claimed, .dead, as: claimed.name.text)
        return true
      } catch {
        // A directory has one name only, and is nobody's message.
        let status = try home.status(of: claimed.text, in: .claimed)
        guard status?.kind == .directory else { throw error }
        _ = try home.move(claimed.text, from: .claimed, .dead, as: claimed.name.text)
        return false
      }
    } catch {
      throw WormholeError(error, "give up message", claimed.name.id)
    }
  }

  /// Gives up one message of a batch: it goes to the dead letters in a file of its own.
  func bury(
    _ delivery: Delivery, _ index: Int, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    let name = delivery.name.part(index)
    do throws(WormholeError) {
      try explain(name, attempts: attempts, reason)
      let bytes = try extract(delivery, index)
      do throws(Errno) {
        try home.place(bytes, as: name.text, in: .dead)
      } catch {
        // It was put there before, by a process that died then.
        guard error == .fileExists else {
          throw WormholeError(error, "give up message", name.id)
        }
      }
    } catch {
      if error.code != .superseded { postpone(delivery, index) }
      throw error
    }
    log(.error, "gave up message '\(name.id)' to '\(home.name)': \(reason)", name)
  }

  /// One message of a batch as a file for itself.
  private func extract(_ delivery: Delivery, _ index: Int) throws(WormholeError) -> [UInt8] {
    let limits = hole.options.limits
    let operation = "give up message"
    let document = try delivery.contents().document
    let values = try WormholeError.reading(operation, delivery.name.id) {
      try BinaryDecoder(limits: limits).decode(
        MessageFile.OpenedBatch<PropertyListValue>.self, from: document.list
      ).values
    }
    return try WormholeError.writing(operation, delivery.name.id) {
      try BinaryEncoder(limits: limits).seal(delivery.header, values[index].get())
    }
  }

  /// Writes down why a message was given up; there must be room for one more dead letter.
  private func explain(
    _ name: MessageName, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    let operation = "give up message"
    var count = 0
    do throws(Errno) {
      // A letter that is there already, from a process that died then, takes no more room.
      try home.list(.dead) { if let letter = MessageName($0), letter != name { count += 1 } }
    } catch {
      throw WormholeError(error, operation, name.id)
    }
    guard count < deadLimit else {
      throw WormholeError(
        .full, operation, name.id,
        because: "'\(home.name)' has \(deadLimit) dead letters already; the message is kept",
        hint: "look at them with 'wormhole queue \(home.name) --dead', and retry or delete them")
    }
    do throws(Errno) {
      let words = DeathReason(
        reason: reason, attempts: attempts,
        when: Date(sinceEpoch: hole.options.environment.sinceEpoch()))
      guard let bytes = try? BinaryEncoder().encode(words) else { return }
      try home.place(bytes, as: name.reasonFile, in: .dead, replacing: true)
    } catch {
      throw WormholeError(error, operation, name.id)
    }
  }
}

/// Why a message was given up: `dead/<name>,reason`.
struct DeathReason: Codable, Sendable {
  let reason: String
  let attempts: Int
  let when: Date

  static func read(_ name: MessageName, in home: MemberDirectory) -> DeathReason? {
    guard
      case .sound(let bytes, _)? = try? home.read(
        name.reasonFile, in: .dead, "read dead letter")
    else { return nil }
    let reason = try? BinaryDecoder().decode(DeathReason.self, from: bytes)
    return reason.flatMap { $0.attempts >= 0 ? $0 : nil }
  }
}

/// The directories of those who sent, and want to be told how it ended.
final class SenderHomes: Sendable {
  private let container: Container
  private let known = KnownHomes<MessageName.Sender>()

  init(_ container: Container) { self.container = container }

  /// Nil if the sender need not be told, or is no more, or cannot be told ever.
  ///
  /// What the system refuses for the moment is thrown: a receipt must not be dropped for that.
  func home(of name: MessageName) throws(Errno) -> MemberDirectory? {
    guard name.wantsReceipt, let sender = name.sender else { return nil }
    if let home = known.home(of: sender) { return home }
    guard let found = try open(sender) else { return nil }
    known.keep(found, of: sender)
    return found
  }

  private func open(_ sender: MessageName.Sender) throws(Errno) -> MemberDirectory? {
    do throws(WormholeError) {
      return switch sender {
      case .member(let name): try container.existingMember(name)
      case .guest(let name): try container.existingMember(name, in: .guests)
      }
    } catch {
      let number = error.errno.map { Errno(rawValue: $0) }
      let forEver: Set<Errno?> = [nil, .notADirectory, .tooManyLinks, .accessDenied]
      guard !forEver.contains(number) else { return nil }
      throw number!
    }
  }

  func forget(_ name: MessageName) {
    if let sender = name.sender { known.forget(sender) }
  }
}

/// What the log is told.
extension Mailbox {
  func log(
    _ level: LogLevel, _ text: String, _ name: MessageName? = nil, because cause: (any Error)? = nil
  ) {
    hole.log(
      level, text, about: LogSubject(member: home.name, message: name?.id), because: cause)
  }

  func log(_ level: LogLevel, _ error: WormholeError, _ name: MessageName) {
    log(level, "\(error)", name, because: error)
  }
}
