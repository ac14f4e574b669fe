extension MailboxMachine {
  /// What one receiver is to do.
  package enum Action: Equatable {
    /// Find out what was claimed before: ``recovered(_:)``.
    case recover
    /// Note the clock, then list the inbox: ``listed(_:before:)``.
    case list
    /// Look up the kind of a message that waits: ``peeked(_:kind:)``.
    case peek(MessageName)
    /// ``missing(by:)`` if it is gone; otherwise handle it.
    case claim(MessageName)
    /// The same, with what is claimed already: it becomes the next attempt.
    case reclaim(ClaimedName)
    /// Handle one message of a file that is in hand, now or once more.
    case again(MessageName, index: Int)
    /// Write down the end of a file that has ended, which could not be done before.
    case end(MessageName)
    /// Another goes first, which has waited for longer or looks at what came earlier: have it ask.
    case yield
    /// Nothing to do until there is a signal, or this moment has come.
    case wait(until: Int64?)
  }

  package struct Settings: Hashable, Sendable {
    /// How often a message is handed over before it is given up.
    package var attempts = 5
    /// How long until the second attempt, in nanoseconds; each further one takes twice as long.
    package var firstDelay: Int64 = 100_000_000
    var longestDelay: Int64 = 60_000_000_000
    /// Whether what failed holds up all that was sent after it.
    var isStrict = false
    /// How many files one receiver may have in hand at a time.
    var inHand = 1024
    /// How many files of one sender may wait that are claimed and in nobody's hand.
    var waiting = 4096
    /// Of how many messages that wait the names are known at a time.
    var window = 1 << 17
    /// Takes what a listing shows, whenever it was sent; for tests.
    package var trustsListings = false

    package init() {}

    func delay(after attempt: Int) -> Int64 {
      let doublings = min(max(attempt - 1, 0), 20)
      // Of a day the doublings are soon more than 64 bits hold.
      guard firstDelay <= longestDelay >> doublings else { return longestDelay }
      return firstDelay << doublings
    }
  }

  /// What a failed attempt leads to.
  package enum Verdict: Equatable {
    case retry(at: Int64)
    case giveUp
  }

  /// A message that a process which has ended had claimed, or one that has failed.
  package struct Claimed: Hashable {
    let claimed: ClaimedName
    let kind: MessageLabel?
    var due: Int64 = 0
    /// Which message of a file that is in hand.
    var index: Int?

    package init(claimed: ClaimedName, kind: MessageLabel?, due: Int64 = 0, index: Int? = nil) {
      self.claimed = claimed
      self.kind = kind
      self.due = due
      self.index = index
    }
  }

  /// What has ended and does not say so yet.
  struct Unended: Hashable {
    let name: MessageName
    let due: Int64
  }

  struct Receiver: Hashable {
    let kinds: Set<String>?
    let takesFiles: Bool
    var served = 0
    var isIdle = false
    var inHand = 0

    var chooses: Bool { kinds != nil || !takesFiles }

    func wants(_ label: MessageLabel?) -> Bool {
      guard chooses, let label else { return true }
      return (takesFiles || !label.hasFile) && (kinds?.contains(label.kind) ?? true)
    }
  }
}
