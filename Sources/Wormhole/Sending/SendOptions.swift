public import FoundationEssentials
public import WormholeContainerStorage

/// The options of a sent message.
public struct SendOptions: Sendable {
  /// What the message survives once the call has returned.
  public var durability: Durability

  /// How long the message may wait for its receiver; nil for ever.
  ///
  /// A message not received in time is expired, and no receiver handles it: it is settled
  /// automatically, and a waiting sender is notified of the outcome. A message received in time
  /// may be handled later: after a failed or interrupted attempt. The time is wall-clock time,
  /// and continues while the machine is off; setting the clock moves the deadline.
  public var timeToLive: Duration?

  /// How long the message is delayed; nil for not at all.
  ///
  /// Until then no receiver sees the message, and nothing else waits for it. It then joins the
  /// queue behind the messages that wait, and its ``timeToLive`` begins. The time is wall-clock
  /// time, and continues while the machine is off; setting the clock moves it. A message is delayed
  /// by at most 30 days. A message with a file cannot be delayed.
  public var delay: Duration?

  /// Until when the message is delayed, as by ``delay``; of both, the later moment counts.
  public var notBefore: Date?

  /// Whether the message goes before all messages that are not urgent.
  public var isUrgent: Bool

  /// The message's id; by default a number that is never given twice.
  ///
  /// A message with the id of a pending message from the same sender to the same member is
  /// refused with ``WormholeError/Code-swift.struct/conflict``. Of several messages sent at the
  /// same time, by however many processes, exactly one is accepted. An id has at most 36 bytes,
  /// once escaped: enough for a UUID.
  public var id: String?

  /// Whether ``id`` is 16 digits drawn for this message: no other message has the id then, and
  /// its uniqueness is not checked.
  package var isIdentifierFresh = false

  /// Whether the message may have been handled before, and its receiver learns that.
  package var isRedelivered = false
  /// When the message expires, for a message that was sent before; ``timeToLive`` has precedence.
  package var expires: Date?
  /// The death of a message that goes to the dead letters at once.
  package var death: PortableMessage.Death?

  /// The message's kind, for receivers that want certain kinds; by default the name of the
  /// value's type.
  public var kind: String?

  /// The messages of a queue with the same key are handled strictly one after another, in the order
  /// of sending, by however many workers.
  ///
  /// The next message of a key is started when the one before was acknowledged or dead-lettered. A
  /// message that has failed, or has passed its handling deadline, is the first of its key again.
  /// Messages with other keys, or without one, do not wait. A key has 1 to 256 bytes. To a member,
  /// all of whose messages are in order, the key makes no difference.
  public var orderingKey: String?

  /// Text beside the value, for the receiver's program and for tracing.
  ///
  /// At most 64 headers, with keys of 1 to 64 characters `A-Z a-z 0-9 - _ .`, and 8192 bytes in
  /// all. A value contains no zero byte. Further headers are refused with
  /// ``WormholeError/Code-swift.struct/invalidName``. A receiver ignores the headers of another
  /// program that break these rules, and logs a warning.
  public var headers: [String: String]

  /// Whether the sender is notified of the outcome; by default, if the sender is a member or a
  /// guest.
  public var wantsOutcome: Bool?

  /// The reaction to a full queue of the receiver.
  public var whenFull: WhenFull

  /// The reaction to a full queue.
  @nonexhaustive
  public enum WhenFull: Hashable, Sendable {
    /// The call throws ``WormholeError/Code-swift.struct/full``.
    case fail
    /// The call waits on its thread, for at most this duration.
    case wait(Duration)
  }

  /// Makes options; the defaults suit most messages.
  public init(
    durability: Durability = .power, timeToLive: Duration? = nil, delay: Duration? = nil,
    notBefore: Date? = nil, isUrgent: Bool = false,
    id: String? = nil, kind: String? = nil, orderingKey: String? = nil,
    headers: [String: String] = [:], wantsOutcome: Bool? = nil, whenFull: WhenFull = .fail
  ) {
    self.durability = durability
    self.timeToLive = timeToLive
    self.delay = delay
    self.notBefore = notBefore
    self.isUrgent = isUrgent
    self.id = id
    self.kind = kind
    self.orderingKey = orderingKey
    self.headers = headers
    self.wantsOutcome = wantsOutcome
    self.whenFull = whenFull
  }
}
