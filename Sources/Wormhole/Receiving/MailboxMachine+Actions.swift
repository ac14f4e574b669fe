internal import WormholeContainerStorage
internal import WormholeSyscalls

extension MailboxMachine {
  /// The next action of a receiver.
  package enum Action: Equatable {
    /// Find out which files were claimed before: ``recovered(_:)``.
    case recover
    /// Note the clock, and list the inbox afterwards: ``listed(_:before:)``.
    case list
    /// Read the kind of a waiting message: ``peeked(_:kind:)``.
    case peek(MessageName)
    /// Claim a file and handle it, or call ``missing(by:)`` if the file is gone.
    case claim(MessageName)
    /// Like `claim`, for a file in `claimed/`: its next attempt starts.
    case reclaim(ClaimedName)
    /// Handle one message of an open file, for the first time or again.
    case again(MessageName, index: Int)
    /// Write the outcome of a settled file after a failure to do so.
    case end(MessageName)
    /// Trigger the other receivers: a receiver has waited longer, or reads an earlier message's
    /// kind.
    case yield
    /// Do nothing until a signal or until this moment.
    case wait(until: Int64?)
  }

  package struct Settings: Hashable, Sendable {
    /// The number of attempts before a message is dead-lettered.
    package var attempts = 5
    /// The delay before the second attempt, in nanoseconds; each further attempt doubles it.
    package var firstDelay: Int64 = 100_000_000
    var longestDelay: Int64 = 60_000_000_000
    /// Whether a failed message blocks all later messages.
    var isStrict = false
    /// How many files a receiver may hold at a time.
    var inHand = 1024
    /// How many claimed files of one sender may wait without a holder.
    var waiting = 4096
    /// How many names of waiting messages are known at a time.
    var window = 1 << 17
    /// Whether all listed messages are taken, whenever sent; for tests.
    package var trustsListings = false
    /// Whether shelved messages are claimed although their sender is held back; for tests.
    var passesHeldBack = Mutants.has(.passHeldBack)

    package init() {}

    func delay(after attempt: Int) -> Int64 {
      let doublings = min(max(attempt - 1, 0), 20)
      // With delays of about a day, a few doublings exceed 64 bits.
      guard firstDelay <= longestDelay >> doublings else { return longestDelay }
      return firstDelay << doublings
    }
  }

  /// The result of a failed attempt.
  package enum RetryDecision: Equatable {
    case retry(at: Int64)
    case giveUp
  }

  /// A message claimed by a dead process, or a failed message.
  package struct Leftover: Hashable {
    let claimed: ClaimedName
    let kind: MessageLabel?
    var due: Int64 = 0
    /// The index of the message in an open file; nil for a whole file.
    var index: Int?

    package init(claimed: ClaimedName, kind: MessageLabel?, due: Int64 = 0, index: Int? = nil) {
      self.claimed = claimed
      self.kind = kind
      self.due = due
      self.index = index
    }
  }

  /// A settled file without a written outcome.
  struct OpenSettlement: Hashable {
    let name: MessageName
    let due: Int64
  }
}

struct ReceiverState: Hashable {
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

extension MailboxOptions {
  /// The settings of a mailbox's state machine.
  var machine: MailboxMachine.Settings {
    var settings = MailboxMachine.Settings()
    settings.attempts = min(max(attempts, 1), 60)
    settings.firstDelay = max(1, retryDelay.inNanosecondsClamped)
    settings.longestDelay = max(settings.firstDelay, settings.longestDelay)
    settings.isStrict = keepsOrderOnRetry
    return settings
  }
}
