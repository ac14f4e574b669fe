internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Moves messages from the inbox, or from the claims of dead processes, to a receiver.
extension Mailbox {
  /// - Parameter bytes: the file's content, if known.
  func claim(
    _ name: MessageName, _ bytes: [UInt8]? = nil, for receiver: Int
  ) -> OpenedMessage? {
    let claimed = ClaimedName(name, attempt: 1)
    if Mutants.has(.readBeforeClaim) { return claimLate(claimed, for: receiver) }
    do throws(Errno) {
      guard try home.claim(claimed) else {
        tell { $0.missing(by: receiver) }
        return nil
      }
    } catch {
      log(
        .error, "cannot claim message '\(name.id)' of '\(home.name)': \(error)", name,
        because: error)
      let isForeign = isDirectory(name.text, in: .inbox)
      tell { $0.claimFailed(by: receiver, until: pause, isForeign: isForeign) }
      return nil
    }
    return if let bytes { open(claimed, bytes, for: receiver) } else {
      open(claimed, for: receiver)
    }
  }

  /// Whether an entry is a directory, which is no message, and which only its owner may move.
  private func isDirectory(_ entry: String, in part: MemberDirectory.Part) -> Bool {
    (try? home.status(of: entry, in: part))?.kind == .directory
  }

  /// Claims a dead process's file, or a failed file, as the next attempt.
  func reclaim(_ old: ClaimedName, for receiver: Int) -> OpenedMessage? {
    let (unread, reason) = state.withLock { state in
      (state.unread.remove(old), state.reasons.removeValue(forKey: old))
    }
    // A claim whose file could not even be read was not an attempt.
    if unread != nil { return open(old, for: receiver) }
    let isKnown = progress.withLock { $0?.knows(old.name) ?? false }
    let next = old.next()
    if old.attempt >= attempts, !isKnown {
      let spent = "each of \(old.attempt) attempts failed or was interrupted"
      try? giveUp(old, kind: nil, attempts: old.attempt, reason ?? spent, by: receiver)
      return nil
    }
    do throws(Errno) {
      let isOurs =
        if next == old { true } else {
          try home.move(old.text, from: .claimed, .claimed, as: next.text)
        }
      guard isOurs else {
        tell { $0.missing(by: receiver) }
        return nil
      }
    } catch {
      log(
        .error, "cannot claim message '\(old.name.id)' of '\(home.name)': \(error)", old.name,
        because: error)
      if isDirectory(old.text, in: .claimed) {
        tell { $0.missing(by: receiver) }
      } else {
        tell { $0.postpone(old, kind: nil, by: receiver, until: pause) }
      }
      return nil
    }
    return open(next, for: receiver)
  }

  private func open(_ claimed: ClaimedName, for receiver: Int) -> OpenedMessage? {
    do throws(WormholeError) {
      switch try home.read(claimed.text, in: .claimed, "read message") {
      case .sound(let bytes, _):
        return open(claimed, bytes, for: receiver)
      case .missing:
        tell { $0.missing(by: receiver) }
      case .damaged(let reason, _):
        throw WormholeError(
          .damaged, "read message", claimed.name.id, because: "the message is damaged: \(reason)")
      }
    } catch {
      refuse(claimed, error, by: receiver)
    }
    return nil
  }

  /// Dead-letters an unreadable file, or tries again later.
  private func refuse(_ claimed: ClaimedName, _ error: WormholeError, by receiver: Int) {
    // A system error about its own state may pass; an error about the file will not.
    guard error.meansUnreadable else {
      return putOff(claimed, error, by: receiver, until: pause)
    }
    log(.error, error, claimed.name)
    // If dead-lettering fails, the file is read again as the same attempt, not delivered as
    // another.
    state.withLock { _ = $0.unread.insert(claimed) }
    do throws(WormholeError) {
      try giveUp(claimed, kind: nil, attempts: claimed.attempt, error.reason, by: receiver)
    } catch {
      log(.error, error, claimed.name)
      guard error.code == .superseded else { return }
    }
    state.withLock { _ = $0.unread.remove(claimed) }
  }

  /// Schedules a file again as the same attempt.
  private func putOff(
    _ claimed: ClaimedName, _ error: WormholeError, by receiver: Int, until due: Int64,
    _ level: LogLevel = .error
  ) {
    log(level, error, claimed.name)
    state.withLock { _ = $0.unread.insert(claimed) }
    tell { $0.postpone(claimed, kind: nil, by: receiver, until: due) }
  }

  /// Settles a file received after its deadline.
  private func expire(
    _ claimed: ClaimedName, _ header: MessageFile.Header, by receiver: Int
  ) {
    do throws(WormholeError) {
      try end(claimed, .expired)
      if header.file != nil { home.dropFile(of: claimed.name) }
    } catch {
      guard error.code == .superseded else {
        let longest = state.withLock { $0.machine.settings.longestDelay }
        return putOff(
          claimed, error, by: receiver, until: error.mayPass ? pause : now + longest,
          settlement.level(of: error, claimed.name))
      }
    }
    finished(by: receiver)
  }

  private var present: Date { Date(sinceEpoch: container.options.environment.sinceEpoch()) }

  func open(_ claimed: ClaimedName, _ bytes: [UInt8], for receiver: Int) -> OpenedMessage? {
    do throws(WormholeError) {
      let contents = try contents(of: claimed.name, bytes)
      let header = contents.document.header
      if let complaint = header.headers?.complaint(of: "message '\(claimed.name.id)'") {
        log(.warning, complaint, claimed.name)
      }
      if header.hasExpired(claimed.name, isRepeated: claimed.isRepeated, by: present) {
        expire(claimed, header, by: receiver)
        return nil
      }
      guard state.withLock({ $0.machine.wants(header.label, receiver) }) else {
        try leave(claimed, header.label, by: receiver)
        return nil
      }
      return try open(claimed, contents, for: receiver)
    } catch {
      if error.code == .superseded {
        finished(by: receiver)
      } else {
        refuse(claimed, error, by: receiver)
      }
      return nil
    }
  }

  /// Returns a file that is for another receiver: its kind was unreadable before the claim.
  private func leave(
    _ claimed: ClaimedName, _ kind: MessageLabel, by receiver: Int
  ) throws(WormholeError) {
    // A message wanted by no receiver waits where it was.
    if claimed.returned(after: .undone) == nil,
      !state.withLock({ $0.machine.isWanted(kind) })
    {
      try unclaim(claimed, .undone)
      return finished(by: receiver)
    }
    state.withLock { _ = $0.unread.insert(claimed) }
    tell { $0.postpone(claimed, kind: kind, by: receiver, until: now) }
  }

  private func contents(
    of name: MessageName, _ bytes: [UInt8]
  ) throws(WormholeError) -> Contents {
    let limits = container.options.limits
    return try WormholeError.reading("read message", name.id, of: .message) {
      try Contents(name, MessageFile.Document(bytes, BinaryDecoder(limits: limits)), limits)
    }
  }

  private func open(
    _ claimed: ClaimedName, _ contents: Contents, for receiver: Int
  ) throws(WormholeError) -> OpenedMessage? {
    let count = claimed.name.count
    let document = contents.document
    guard count > 1 else {
      try verifyFile(of: claimed, document.header)
      let delivery = MemberDelivery(
        self, claimed, document, for: receiver, record: nil, BatchSlots(count: 1))
      return OpenedMessage(delivery: delivery, contents: contents)
    }
    guard document.header.file == nil else {
      throw WormholeError(
        .damaged, "read message", claimed.name.id,
        because: "the message has a file, but contains \(count) messages")
    }
    guard document.count == count, count <= BatchProgress.slotCount else {
      throw WormholeError(
        .damaged, "read message", claimed.name.id,
        because: "the file contains \(document.count) messages, but the name of the file states "
          + "\(count)")
    }
    // Without a record, earlier attempts may have handled messages, and their progress is unknown.
    let record = progress.withLock { $0 }?.open(claimed.name, count: count)
    let slots = record?.slots ?? BatchSlots(count: count, begun: claimed.attempt - 1)
    let delivery = MemberDelivery(
      self, claimed, document, for: receiver, record: record?.record, slots)
    state.withLock { $0.open[claimed.name] = Open(delivery: delivery, holder: receiver) }
    guard !delivery.isComplete else {
      delivery.settle()
      return nil
    }
    return OpenedMessage(delivery: delivery, contents: contents)
  }

  /// Returns a claimed file to the inbox, or to its previous attempt.
  func unclaim(_ claimed: ClaimedName, _ end: AttemptEnd) throws(WormholeError) {
    try naming("requeue message", claimed.name.id, at: home) { () throws(Errno) in
      let back = claimed.returned(after: end)
      _ = try home.move(
        claimed.text, from: .claimed, back == nil ? .inbox : .claimed,
        as: back?.text ?? claimed.name.text)
    }
  }

  /// Returns the claimed files of a member that leaves.
  ///
  /// The next incarnation would count the attempt of a message that stays claimed. So a call that
  /// the system refuses is repeated twice: no later moment is left for it.
  func unclaimAll(_ claims: [(claimed: ClaimedName, end: AttemptEnd)]) {
    var left = claims
    for round in 1...3 where !left.isEmpty {
      if round > 1 { Thread.pause(.milliseconds(20)) }
      left = left.filter { one -> Bool in
        do throws(WormholeError) {
          try unclaim(one.claimed, one.end)
          return false
        } catch {
          if round == 3 { log(.error, error, one.claimed.name) }
          return true
        }
      }
    }
  }

  /// Reads the content of a claimed file again.
  func contents(of claimed: ClaimedName) throws(WormholeError) -> Contents {
    let operation = "read message"
    switch try home.read(claimed.text, in: .claimed, operation) {
    case .sound(let bytes, _): return try contents(of: claimed.name, bytes)
    case .missing:
      throw settlement.superseded(operation, claimed)
    case .damaged(let reason, _):
      throw WormholeError(
        .damaged, operation, claimed.name.id, because: "the message is damaged: \(reason)")
    }
  }
}

extension Mailbox {
  /// Reads a message before the claim, as no receiver may; for tests.
  func claimLate(_ claimed: ClaimedName, for receiver: Int) -> OpenedMessage? {
    guard
      case .sound(let bytes, _)? = try? home.read(
        claimed.name.text, in: .inbox, "read message")
    else {
      tell { $0.missing(by: receiver) }
      return nil
    }
    Processes.yield()
    _ = try? home.move(claimed.name.text, from: .inbox, .claimed, as: claimed.text)
    return open(claimed, bytes, for: receiver)
  }
}
