internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Settles a message by one rename of its one file, or by its removal: exactly one outcome wins.
extension Mailbox {
  /// Settles a claimed file, and notifies the sender on request.
  ///
  /// - Parameter size: the file's size in bytes, if known.
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
      guard error == .noSuchFile else {
        throw WormholeError(error, operation, claimed.name.id, at: home)
      }
      throw WormholeError(
        .superseded, operation, claimed.name.id,
        because: "another process has joined as '\(home.name)', and has claimed the message",
        errno: error)
    }
  }

  /// Returns false if the file is gone.
  private func end(
    _ claimed: ClaimedName, _ end: MessageEnd, telling sender: MemberDirectory?, _ size: Int
  ) throws(Errno) -> Bool {
    guard let sender else { return try home.remove(claimed.text, from: .claimed) }
    let receipt = ReceiptName(claimed.name, end).text
    if try home.move(claimed.text, from: .claimed, to: sender, .receipts, as: receipt) {
      Receipts.bound(sender, after: size, container)
      return true
    }
    if !sender.isStale { return false }
    // The sender's directory was removed, and the sender may have joined again.
    senders.forget(claimed.name)
    return try self.end(claimed, end, telling: senders.home(of: claimed.name), size)
  }

  /// Dead-letters a file, with the reason, and notifies the sender.
  ///
  /// The dead letter is a second name of the same file, linked before the outcome. If the process
  /// dies between the two, the next process dead-letters the message again.
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
      .error, "dead-lettered message '\(claimed.name.id)' to '\(home.name)': \(reason)",
      claimed.name)
  }

  /// Links a file among the dead letters; false if its only name now is there.
  private func bury(_ claimed: ClaimedName) throws(WormholeError) -> Bool {
    do throws(Errno) {
      do throws(Errno) {
        try home.link(claimed.text, from: .claimed, .dead, as: claimed.name.text)
        return true
      } catch {
        // A directory can have only one name, and is not a message.
        let status = try home.status(of: claimed.text, in: .claimed)
        guard status?.kind == .directory else { throw error }
        _ = try home.move(claimed.text, from: .claimed, .dead, as: claimed.name.text)
        return false
      }
    } catch {
      throw WormholeError(error, "dead-letter message", claimed.name.id, at: home)
    }
  }

  /// Dead-letters one message of a batch, in a file of its own.
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
        // A process that died afterwards had placed the letter already.
        guard error == .fileExists else {
          throw WormholeError(error, "dead-letter message", name.id, at: home)
        }
      }
    } catch {
      if error.code != .superseded { postpone(delivery, index) }
      throw error
    }
    log(.error, "dead-lettered message '\(name.id)' to '\(home.name)': \(reason)", name)
  }

  /// Encodes one message of a batch as a file of its own.
  private func extract(_ delivery: Delivery, _ index: Int) throws(WormholeError) -> [UInt8] {
    let limits = container.options.limits
    let operation = "dead-letter message"
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

  /// Writes the reason for a dead letter; throws if the limit of dead letters is reached.
  private func explain(
    _ name: MessageName, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    let operation = "dead-letter message"
    var count = 0
    do throws(Errno) {
      // This letter may exist already, from a process that died before the outcome; count it once.
      try home.list(.dead) { if let letter = MessageName($0), letter != name { count += 1 } }
    } catch {
      throw WormholeError(error, operation, name.id, at: home)
    }
    guard count < deadLimit else {
      throw WormholeError(
        .full, operation, name.id,
        because:
          "'\(home.name)' has \(deadLimit) dead letters, which is the limit; the message stays "
          + "in the queue",
        hint:
          "list the dead letters with 'wormhole queue \(home.name.shellWord) --dead', and retry "
          + "or discard each with '--retry ID' or '--discard ID'")
    }
    do throws(Errno) {
      let words = DeathReason(
        reason: reason, attempts: attempts,
        when: Date(sinceEpoch: container.options.environment.sinceEpoch()))
      guard let bytes = try? BinaryEncoder().encode(words) else { return }
      try home.place(bytes, as: name.reasonFile, in: .dead, replacing: true)
    } catch {
      throw WormholeError(error, operation, name.id, at: home)
    }
  }
}

/// Log entries about the member and its messages.
extension Mailbox {
  func log(
    _ level: LogLevel, _ text: String, _ name: MessageName? = nil, because cause: (any Error)? = nil
  ) {
    container.log(
      level, text, about: LogSubject(member: home.name, message: name?.id), because: cause)
  }

  func log(_ level: LogLevel, _ error: WormholeError, _ name: MessageName) {
    log(level, "\(error)", name, because: error)
  }
}
