internal import WormholeSyscalls

/// Options for the messages that members send and receive through one container instance.
public struct MailboxOptions: Sendable {
  /// The number of attempts before a message goes to the dead letters; at most 60.
  public var attempts: Int

  /// The delay before a failed message is redelivered.
  ///
  /// It doubles with each further attempt, up to a minute.
  public var retryDelay: Duration

  /// Whether a failed message blocks all messages sent after it.
  public var keepsOrderOnRetry: Bool

  /// How many files of messages may wait in one inbox.
  ///
  /// A batch is one file. Concurrent senders may exceed the limit by a little. All senders to a
  /// member must set the same value, as they share one account of its inbox.
  public var maximumQueuedMessages: Int

  /// How many bytes may wait in one inbox; the same rules apply.
  public var maximumQueueBytes: Int

  /// How many dead letters are stored.
  ///
  /// While the limit is reached, a message that would become a dead letter stays in the queue,
  /// and is tried again every minute.
  public var maximumDeadLetters: Int

  /// How many bytes of pending outcomes are stored for a sender.
  ///
  /// Beyond the limit the oldest are dropped, and the sender never learns how their messages
  /// ended.
  ///
  /// Each pending outcome contains the whole message, and takes at least 4096 bytes. The receiver
  /// enforces the limit from time to time, so the outcomes may exceed it by a sixteenth.
  public var maximumReceiptBytes: Int

  /// How long an asynchronous closure that receives may take for a message; nil for no limit.
  ///
  /// Afterwards the task of the closure is cancelled, and a line is logged. Once the closure has
  /// returned or thrown, its attempt has failed; until then no other closure gets the message. For
  /// workers of a queue the time is an argument of ``Queue/work(concurrency:handlingDeadline:_:)``.
  public var handlingDeadline: Duration?

  /// Called from time to time with the progress of comparing a received file with the sent one,
  /// before its message is delivered.
  ///
  /// The receiving thread makes the call, which should return soon.
  public var onFileProgress: (@Sendable (_ from: String?, FileProgress) -> Void)?

  /// Makes options; the defaults suit most programs.
  public init(
    attempts: Int = 5, retryDelay: Duration = .milliseconds(100), keepsOrderOnRetry: Bool = false,
    maximumQueuedMessages: Int = 262_144, maximumQueueBytes: Int = 1 << 30,
    maximumDeadLetters: Int = 1000, maximumReceiptBytes: Int = 64 << 20,
    handlingDeadline: Duration? = nil,
    onFileProgress: (@Sendable (_ from: String?, FileProgress) -> Void)? = nil
  ) {
    self.attempts = attempts
    self.retryDelay = retryDelay
    self.keepsOrderOnRetry = keepsOrderOnRetry
    self.maximumQueuedMessages = maximumQueuedMessages
    self.maximumQueueBytes = maximumQueueBytes
    self.maximumDeadLetters = maximumDeadLetters
    self.maximumReceiptBytes = maximumReceiptBytes
    self.handlingDeadline = handlingDeadline
    self.onFileProgress = onFileProgress
  }
}

extension Duration {
  /// Clamps to a duration that can be added to the present time: 146 years at most.
  var inNanosecondsClamped: Int64 { min(max(inNanoseconds, -1 << 62), 1 << 62) }
}
