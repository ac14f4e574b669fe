internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The ends of the mailbox's messages.
extension Mailbox {
  /// Settles a claimed file, and notifies the sender on request.
  ///
  /// - Parameter size: the file's size in bytes, if known.
  func end(
    _ claimed: ClaimedName, _ end: MessageEnd, size: Int = 0
  ) throws(WormholeError) {
    try settlement.end(claimed, end, size: size)
  }

  /// Dead-letters a file, with the reason, and notifies the sender; if that fails, tries again
  /// later.
  func giveUp(
    _ claimed: ClaimedName, kind: MessageLabel?, attempts: Int, _ reason: String, by receiver: Int
  ) throws(WormholeError) {
    do throws(WormholeError) {
      try settlement.giveUp(claimed, attempts: attempts, reason)
    } catch {
      if error.code == .superseded {
        finished(by: receiver)
      } else {
        state.withLock { $0.reasons[claimed] = reason }
        postpone(claimed, kind: kind, by: receiver)
      }
      throw error
    }
    finished(by: receiver)
    log(
      .error, "dead-lettered message '\(claimed.name.id)' to '\(home.name)': \(reason)",
      claimed.name)
  }

  /// Dead-letters the file of a batch, which can no longer be read.
  func giveUp(batch claimed: ClaimedName, _ reason: String) throws(WormholeError) {
    try settlement.giveUp(claimed, attempts: claimed.attempt, reason)
    log(
      .error, "dead-lettered message '\(claimed.name.id)' to '\(home.name)': \(reason)",
      claimed.name)
  }

  /// Dead-letters one message of a batch, in a file of its own.
  func bury(
    _ delivery: MemberDelivery, _ index: Int, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    let name = delivery.name.part(index)
    let bytes: [UInt8]
    do throws(WormholeError) {
      bytes = try extract(delivery, index)
    } catch {
      if error.meansUnreadable {
        delivery.giveUpUnreadable(index, error.reason)
      } else if error.code != .superseded {
        postpone(delivery, index)
      }
      throw error
    }
    do throws(WormholeError) {
      try settlement.explain(name, attempts: attempts, reason)
      do throws(Errno) {
        // The file of the batch is removed in the end, and was perhaps sent with `.power`.
        try home.place(bytes, as: name.text, in: .dead, durability: .power)
        try home.makeDurable(.dead)
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
  private func extract(_ delivery: MemberDelivery, _ index: Int) throws(WormholeError) -> [UInt8] {
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
