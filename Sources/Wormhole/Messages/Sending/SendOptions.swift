public import SharedContainer

extension Wormhole {
  /// How a message is sent.
  public struct SendOptions: Sendable {
    /// What it survives once the call has returned.
    public var durability = Durability.power

    /// For how long it may wait to be received; nil for ever.
    ///
    /// One that has not been received then counts as expired, and is handled by nobody: it ends by
    /// itself, and whoever waits for its outcome is told. One that was received in time may be
    /// handled later: when an attempt has failed, or was cut off. The time is the wall clock's, so
    /// that it goes on while the machine is off; if that is set, it comes sooner or later.
    public var timeToLive: Duration?

    /// Whether it goes before all that were not sent so.
    public var isUrgent = false

    /// What it is called; by default a number that is never given twice.
    ///
    /// One with the id of a message that is still on its way from the same sender to the same
    /// member is refused, with ``WormholeError/Code-swift.struct/conflict``: of several that are
    /// sent at the same time, by however many processes, one is. At most 36 bytes, once escaped:
    /// enough for a UUID.
    public var id: String?

    /// Whether ``id`` is 16 digits that were drawn for this message: nobody else has it then, and
    /// nothing is done to keep it from others.
    package var isIdentifierFresh = false

    /// What kind of message it is, for receivers that want certain kinds; by default the name of
    /// the value's type.
    public var kind: String?

    /// Whether the sender is told how it ended; by default if the sender is a member.
    public var wantsOutcome: Bool?

    /// What happens when the receiver's queue is full.
    public var whenFull = WhenFull.fail

    /// What happens when a queue is full.
    @nonexhaustive
    public enum WhenFull: Hashable, Sendable {
      /// It is an error, ``WormholeError/Code-swift.struct/full``.
      case fail
      /// The call waits, on its thread, for as long as this at most.
      case wait(Duration)
    }

    /// The options that suit most.
    public init() {}
  }
}
