internal import WormholeContainerStorage

/// How an attempt to handle a message has ended, without an outcome of the message.
package enum AttemptEnd: Hashable, Sendable {
  /// The attempt counts.
  case failed
  /// The receiver has ended while its handler had the message. The attempt does not count, and the
  /// message is marked as redelivered: a part of its work may have been done.
  case interrupted
  /// No handler has begun. The message is as if never claimed.
  case undone
}

/// The name of a claimed message: `<name>~<attempt>`, and by a worker of a queue
/// `<name>~<attempt>.<claim>`.
///
/// A message that was returned before its first counted attempt has the attempt 0, and is marked by
/// a second zero, `00`, if a handler had it; its first attempt is then `01`. Only a message with an
/// ordering key stays claimed with the attempt 0 without this mark.
package struct ClaimedName: Hashable, Sendable {
  package let name: MessageName
  package let attempt: Int
  /// Whether an attempt before the first counted one was interrupted.
  package let isInterrupted: Bool
  /// The number of the claim among all claims of its worker; nil for a member's claim.
  ///
  /// A message that comes back to a worker has another number, even in the same attempt. So who
  /// holds an old claim cannot settle the message.
  package let claim: Int?
  package let text: String

  /// - Parameter isInterrupted: irrelevant from the second attempt on.
  package init(
    _ name: MessageName, attempt: Int, isInterrupted: Bool = false, claim: Int? = nil
  ) {
    self.name = name
    self.attempt = attempt
    self.isInterrupted = isInterrupted && attempt <= 1
    self.claim = claim
    text =
      "\(name.text)~\(self.isInterrupted ? "0" : "")\(attempt)"
      + (claim.map { ".\(String($0, radix: 36))" } ?? "")
  }

  /// Nil for a text in another form.
  package init?(_ text: String) {
    guard let tilde = text.lastIndex(of: "~"), let name = MessageName(String(text[..<tilde])) else {
      return nil
    }
    let parts = text[text.index(after: tilde)...].split(
      separator: ".", omittingEmptySubsequences: false)
    let isInterrupted = parts[0].count == 2 && parts[0].first == "0"
    guard parts.count <= 2, let attempt = Int(parts[0]), attempt <= Self.limit,
      attempt >= (name.key == nil && !isInterrupted ? 1 : 0)
    else { return nil }
    let claim = parts.count == 2 ? Int(parts[1], radix: 36) : nil
    guard claim.map({ (1...Self.lastClaim).contains($0) }) ?? true else { return nil }
    self.init(name, attempt: attempt, isInterrupted: isInterrupted, claim: claim)
    guard self.text == text else { return nil }
  }

  /// Whether an earlier attempt may have handled the message, in whole or in part.
  package var isRepeated: Bool { attempt > 1 || isInterrupted || name.isRetried }

  /// Whether the message waits in a queue's `claimed/` as if never claimed: no attempt counts, and
  /// only the ordering key keeps the message out of the inbox.
  package var isUnclaimed: Bool { attempt == 0 && !isInterrupted && claim != nil }

  /// The claim of the next attempt.
  package func next(limit: Int = limit, claim: Int? = nil) -> ClaimedName {
    ClaimedName(
      name, attempt: min(attempt + 1, limit), isInterrupted: isInterrupted && attempt == 0,
      claim: claim)
  }

  /// The same attempt with another number of its claim.
  package func renewed(claim: Int) -> ClaimedName {
    ClaimedName(name, attempt: attempt, isInterrupted: isInterrupted, claim: claim)
  }

  /// The name in `claimed/` after the attempt has ended; nil if the message returns to the inbox.
  ///
  /// With an ordering key, the name in a queue's `claimed/` states the number of the last claim: no
  /// message has this name twice.
  package func returned(after end: AttemptEnd) -> ClaimedName? {
    let attempts = end == .failed ? attempt : attempt - 1
    let isMarked =
      attempts == 0 && (isInterrupted || end == .interrupted && !Mutants.has(.forgetInterrupted))
    let staysClaimed = name.key != nil && claim != nil && !Mutants.has(.returnKeysToInbox)
    guard attempts > 0 || isMarked || staysClaimed else { return nil }
    return ClaimedName(
      name, attempt: attempts, isInterrupted: isMarked, claim: name.key == nil ? nil : claim)
  }

  /// The highest number of a claim: the name of the file has no space for more digits.
  package static let lastClaim = 2_176_782_335

  /// The largest number of counted attempts; more attempts may follow.
  package static let limit = 999
}
