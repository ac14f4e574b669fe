internal import WormholeContainerStorage

/// The name of a delayed message in `later/`: a message's name, whose stamp states until when the
/// message is delayed.
///
/// Of the 20 digits of the stamp, twelve are the milliseconds since 1970, three the 4096ths of a
/// millisecond, and five the epoch of the sending. So names sort in the order in which their
/// messages are due, and are no longer than other names.
struct DelayedName: Hashable, Sendable {
  /// The name, with a stamp of another meaning.
  let name: MessageName

  var text: String { name.text }

  /// - Parameter due: when the message is due, in nanoseconds since 1970; not before 1970.
  init(_ due: Int64, epoch: Int, _ name: (MessageStamp) -> MessageName) {
    let parts = due % 1_000_000
    let place = (due / 1_000_000) << 12 + (parts << 12 + 999_999) / 1_000_000
    self.name = name(
      MessageStamp(
        epoch: Int(place >> 40), nanoseconds: (place & 0xff_ffff_ffff) << 20 | Int64(epoch)))
  }

  /// Nil for a text in another form.
  init?(_ text: UnsafePointer<CChar>) { self.init(MessageName(text)) }

  init?(_ text: String) { self.init(MessageName(text)) }

  private init?(_ name: MessageName?) {
    guard let name else { return nil }
    self.name = name
    // A name may have been made up; no clock comes that far.
    guard place >> 12 < Int64.max / 1_000_000 else { return nil }
  }

  /// The milliseconds since 1970, and behind them 12 bits for a part of one.
  private var place: Int64 {
    Int64(name.stamp.epoch) << 40 | name.stamp.nanoseconds >> 20
  }

  /// When the message is due, in nanoseconds since 1970.
  var due: Int64 {
    let place = place
    return (place >> 12) * 1_000_000 + ((place & 0xfff) * 1_000_000) >> 12
  }

  /// The epoch in which the message was sent.
  var epoch: Int { Int(name.stamp.nanoseconds & 0xf_ffff) }

  /// The name in the inbox for a message that is due, or in the receipts for a settled one.
  ///
  /// A message sent before a restart of the machine may have been handled before it, as the removal
  /// of its file may not have reached the disk. So such a message stays in the epoch of its
  /// sending, behind all other messages of the epoch: it counts as redelivered.
  func arrived(at now: MessageStamp) -> MessageName {
    if Mutants.has(.keepSentStamp) {
      return name.stamped(MessageStamp(epoch: 0, nanoseconds: place))
    }
    let first = firstStamp(at: now)
    return name.stamped(epoch < now.epoch ? first.advanced(by: place) : first)
  }

  /// A stamp that no name of this message precedes from now on.
  func firstStamp(at now: MessageStamp) -> MessageStamp {
    epoch < now.epoch ? MessageStamp(epoch: epoch, nanoseconds: 1 << 58) : now
  }
}

/// How a sent message is found: by its name or, if it was delayed, by what all its names share.
struct SentName: Hashable, Sendable {
  let name: MessageName
  /// For a delayed message, a stamp that precedes all its names in an inbox; otherwise nil.
  let since: MessageStamp?

  init(_ name: MessageName) {
    self.name = name
    since = nil
  }

  init(_ delayed: DelayedName, since: MessageStamp) {
    name = delayed.name
    self.since = since
  }

  /// The name in `later/`; nil for a message that was not delayed.
  var delayed: DelayedName? { since == nil ? nil : DelayedName(name.text) }

  func matches(_ other: MessageName) -> Bool {
    guard let since else { return other == name }
    // The sender can use an id again once the message with the id is settled.
    return other.unique == name.unique && other.stamp >= since
  }
}
