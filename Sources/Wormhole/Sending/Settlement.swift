internal import FoundationEssentials
internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// Settles claimed messages by one rename of the message's file, or by its removal: exactly one
/// outcome wins.
struct Settlement: Sendable {
  let container: SharedContainer
  /// The directory of the member or the queue: with the dead letters and the second names.
  let home: MemberDirectory
  /// The directory with the claims: the member's own, or a worker's.
  let claims: MemberDirectory
  let senders: SenderHomes
  /// How another process has got the message, if the claim is gone.
  let supersession: String

  /// The operation in errors of the step that also concerns the sender's directory.
  private static let ending = "acknowledge message"

  /// Settles a claimed file, and notifies the sender on request; in a queue of another machine, the
  /// carrier alone is notified.
  ///
  /// - Parameter size: the file's size in bytes, if known.
  func end(_ claimed: ClaimedName, _ end: MessageEnd, size: Int = 0) throws(WormholeError) {
    let operation = Self.ending
    do throws(Errno) {
      let isOurs = try home.ending(claimed.name, claimed.text, in: .claimed, of: claims) {
        () throws(Errno) in
        guard !home.isAway else {
          let receipt = ReceiptName(claimed.name, end).text
          return try claims.move(claimed.text, from: .claimed, to: home, .receipts, as: receipt)
        }
        return try self.end(claimed, end, telling: senders.home(of: claimed.name), size)
      }
      if !isOurs, !Mutants.has(.acceptLate) { throw .noSuchFile }
    } catch {
      guard error == .noSuchFile else { throw refusal(error, operation, claimed.name) }
      throw superseded(operation, claimed, error)
    }
  }

  /// The error of an outcome that cannot be written.
  ///
  /// If this user may not write to the sender's receipts, or if they are no directory, the hint
  /// names them: until a person changes them, the receiver repeats the call.
  private func refusal(
    _ error: Errno, _ operation: String, _ name: MessageName
  ) -> WormholeError {
    var refusal = WormholeError(error, operation, name.id, at: home)
    // In a queue of another machine the receipts are the queue's own.
    guard [.permissionDenied, .refused].contains(refusal.code), !home.isAway,
      claims.denial(of: .claimed) == nil, let sender = try? senders.home(of: name)
    else { return refusal }
    let denial =
      refusal.code == .refused ? obstruction(of: sender) : sender.denial(of: .receipts)
    refusal.hint = denial ?? refusal.hint
    return refusal
  }

  /// The level at which the error of an outcome is logged.
  ///
  /// Until a person changes the sender's directory, each message of the sender meets the same
  /// error, and only the first message reports it. An error of the receiver's own directories is
  /// reported each time.
  func level(of error: WormholeError, _ name: MessageName) -> LogLevel {
    guard error.code == .permissionDenied, error.operation == Self.ending, !home.isAway,
      claims.denial(of: .claimed) == nil
    else { return .error }
    return senders.isFirstRefusal(of: name) ? .error : .info
  }

  private func obstruction(of sender: MemberDirectory) -> String? {
    let receipts = MemberDirectory.Part.receipts.rawValue
    guard let status = try? sender.home.descriptor.status(of: receipts),
      status.kind != .directory
    else { return nil }
    return "'\(sender.path)/\(receipts)' is not a directory: move the file away"
  }

  /// The error of a call on a message that belongs to another process by now.
  func superseded(
    _ operation: String, _ claimed: ClaimedName, _ error: Errno? = nil
  ) -> WormholeError {
    WormholeError(.superseded, operation, claimed.name.id, because: supersession, errno: error)
  }

  /// Returns false if the file is gone.
  private func end(
    _ claimed: ClaimedName, _ end: MessageEnd, telling sender: MemberDirectory?, _ size: Int
  ) throws(Errno) -> Bool {
    guard let sender else { return try claims.remove(claimed.text, from: .claimed) }
    let receipt = ReceiptName(claimed.name, end).text
    if try claims.move(claimed.text, from: .claimed, to: sender, .receipts, as: receipt) {
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
  ///
  /// The reason is written first: a reader finds no letter without a reason. If the process has
  /// lost the message to another process by the time of the link, it removes the reason again. The
  /// other process may have written that reason, and may be about to link the letter. So each of
  /// the two processes looks again: the late process for the letter, the other process for the
  /// reason. At least one look follows both the link and the removal, and restores the reason.
  func giveUp(_ claimed: ClaimedName, attempts: Int, _ reason: String) throws(WormholeError) {
    let name = claimed.name
    guard !home.isAway else {
      // The letter belongs to the home of the queue; the reason is all that is left here.
      try storeReason(name, attempts: attempts, reason)
      return try end(claimed, .dead)
    }
    try explain(name, attempts: attempts, reason)
    let isLinked: Bool
    do throws(WormholeError) {
      isLinked = try bury(claimed)
    } catch {
      if error.code == .superseded, !hasLetter(name) {
        _ = try? home.remove(name.reasonFile, from: .dead)
        if hasLetter(name) { try? restoreReason(name, attempts: attempts, reason) }
      }
      throw error
    }
    try restoreReason(name, attempts: attempts, reason)
    if isLinked { try end(claimed, .dead) }
  }

  /// Links a file among the dead letters; false if its only name now is there.
  private func bury(_ claimed: ClaimedName) throws(WormholeError) -> Bool {
    let operation = "dead-letter message"
    var isGone = false
    do throws(Errno) {
      do throws(Errno) {
        try claims.link(claimed.text, from: .claimed, to: home, .dead, as: claimed.name.text)
        return true
      } catch {
        // A directory can have only one name, and is not a message.
        let status = try claims.status(of: claimed.text, in: .claimed)
        isGone = status == nil
        guard status?.kind == .directory else { throw error }
        isGone = try !claims.move(
          claimed.text, from: .claimed, to: home, .dead, as: claimed.name.text)
        if isGone { throw Errno.noSuchFile }
        return false
      }
    } catch {
      guard isGone else { throw WormholeError(error, operation, claimed.name.id, at: home) }
      throw superseded(operation, claimed, error)
    }
  }

  /// Whether a message has a dead letter; true if the system refuses to tell.
  ///
  /// A reason without a letter is harmless.
  private func hasLetter(_ name: MessageName) -> Bool {
    (try? home.status(of: name.text, in: .dead) != nil) ?? true
  }

  /// Writes the reason for a dead letter that has none.
  private func restoreReason(
    _ name: MessageName, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    guard DeathReason.read(name, in: home) == nil else { return }
    try storeReason(name, attempts: attempts, reason)
  }

  /// Writes the reason for a dead letter; throws if the limit of dead letters is reached.
  func explain(
    _ name: MessageName, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    let operation = "dead-letter message"
    let limit = container.options.mailbox.maximumDeadLetters
    var count = 0
    try naming(operation, name.id, at: home) { () throws(Errno) in
      // This letter may exist already, from a process that died before the outcome; count it once.
      try home.list(.dead) { if let letter = MessageName($0), letter != name { count += 1 } }
    }
    guard count < limit else {
      throw WormholeError(
        .full, operation, name.id,
        because:
          "'\(home.name)' has \(limit) dead letters, which is the limit; the message stays "
          + "in the queue",
        hint:
          "list the dead letters with 'wormhole queue \(home.name.shellWord) --dead', and retry "
          + "or discard each with '--retry ID' or '--discard ID', or discard all with "
          + "'--discard-all'")
    }
    try storeReason(name, attempts: attempts, reason)
  }

  /// Writes the reason alone, for a letter that another machine has.
  func storeReason(
    _ name: MessageName, attempts: Int, _ reason: String
  ) throws(WormholeError) {
    try naming("dead-letter message", name.id, at: home) { () throws(Errno) in
      let words = DeathReason(
        reason: reason, attempts: attempts,
        when: Date(sinceEpoch: container.options.environment.sinceEpoch()))
      try words.write(beside: name, in: home)
    }
  }
}
