internal import Syscalls

extension Wormhole {
  /// What holds for the messages that members send and receive through one opened container.
  public struct MailOptions: Sendable {
    /// How often a message is handed over before it goes to the dead letters; at most 60.
    public var attempts = 5

    /// How long until a message that has failed comes again; each further time takes twice as long,
    /// up to a minute.
    public var retryDelay = Duration.milliseconds(100)

    /// Whether a message that has failed holds up all that were sent after it.
    public var isStrict = false

    /// How many files of messages may wait in one inbox.
    ///
    /// A batch is one file. What several senders send at the same time may exceed this by a little.
    /// All who send to a member say the same, as they share one account of its inbox.
    public var largestQueue = 262_144

    /// How many bytes may wait in one inbox; the same holds.
    public var largestQueueBytes = 1 << 30

    /// How many dead letters are kept.
    ///
    /// While there are so many, what would become another stays in the queue and is tried again
    /// every minute.
    public var largestDeadLetters = 1000

    /// How many bytes of what a sender has not been told are kept for it; beyond that the oldest
    /// are dropped, and it is never told how these messages ended.
    ///
    /// Each keeps the whole message, and takes 4096 bytes at least. The receiver sees to it now and
    /// then, so that they may be a sixteenth more.
    public var largestReceipts = 64 << 20

    /// Is told now and then how far a file has come that is compared with what was sent, before
    /// its message is handed over; on the thread that receives, so that it should return soon.
    public var arriving: (@Sendable (_ from: String?, FileProgress) -> Void)?

    /// The options that suit most.
    public init() {}

    var machine: MailboxMachine.Settings {
      var settings = MailboxMachine.Settings()
      settings.attempts = min(max(attempts, 1), 60)
      settings.firstDelay = max(1, retryDelay.inNanosecondsClamped)
      settings.longestDelay = max(settings.firstDelay, settings.longestDelay)
      settings.isStrict = isStrict
      return settings
    }
  }
}

extension Int64 {
  func addingClamped(_ other: Int64) -> Int64 {
    let (sum, isTooMuch) = addingReportingOverflow(other)
    return isTooMuch ? (other < 0 ? .min : .max) : sum
  }
}

extension Duration {
  /// What can still be added to the present time: 146 years at most.
  var inNanosecondsClamped: Int64 { min(max(inNanoseconds, -1 << 62), 1 << 62) }
}
