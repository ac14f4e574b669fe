internal import Wormhole

/// The faults of a link: at rates, by a chance that a seed decides, or for certain messages.
///
/// A plan is written as one line, ``description``, and read from a line, ``init(_:)``: a test that
/// prints the plan of a failed run can be run again with the same plan. The same order of messages
/// suffers the same faults. Messages are counted from 1 for each sender, receiver and kind:
/// guaranteed (urgent ones separately), immediate, requests, replies.
///
/// A link does nothing that the promises exclude. Guaranteed messages arrive, and in order; a
/// delayed message delays all later messages of the same sender.
public struct LinkPlan: Hashable, Sendable {
  /// A fault of one message.
  @nonexhaustive
  public enum Fault: Hashable, Sendable {
    /// An immediate message, request or reply is lost.
    ///
    /// A guaranteed message is never lost. The receiver misses its notice, and finds the message at
    /// the next rescan: after ``LinkPlan/rediscovery``.
    case drop
    /// The message takes this long.
    case delay(Duration)
    /// A guaranteed message arrives once more after it was acknowledged, marked as redelivered, as
    /// if its receiver had died in between. No other kind of message is ever duplicated.
    case duplicate
    /// The message is overtaken, for ``LinkPlan/window``: by messages of the same sender only if
    /// the overtaken message is immediate.
    case reorder
  }

  /// Decides, together with the count, which messages suffer a fault.
  public var seed: UInt64
  /// The share of dropped messages, from 0 to 1.
  public var drop = 0.0
  /// The share of delayed messages.
  public var delay = 0.0
  /// The range of the delays.
  public var delays: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(100)
  /// The share of duplicated messages.
  public var duplicate = 0.0
  /// The share of overtaken messages.
  public var reorder = 0.0
  /// The faults of certain messages, by their number from 1; chance does not decide about them.
  public var faults: [Int: Fault] = [:]
  /// The member to whose messages the plan applies; nil for all members.
  public var receiver: String?
  /// The time after which a receiver that has missed a guaranteed message rescans.
  public var rediscovery = Duration.seconds(1)
  /// The time for which a reordered message is held back.
  public var window = Duration.milliseconds(50)

  /// Creates a plan without faults.
  public init(seed: UInt64 = 0) { self.seed = seed }

  /// Returns the fault of one message.
  func fault(_ stream: Link.Stream, _ number: Int) -> Fault? {
    guard receiver == nil || receiver == stream.to else { return nil }
    if let fault = faults[number] { return fault }
    guard drop + delay + duplicate + reorder > 0 else { return nil }
    var random = Chance(seed, stream, number)
    var left = random.next()
    for (share, fault) in [(drop, Fault.drop), (duplicate, .duplicate), (reorder, .reorder)] {
      if left < share { return fault }
      left -= share
    }
    guard left < delay else { return nil }
    let span = delays.upperBound - delays.lowerBound
    return .delay(delays.lowerBound + span * random.next())
  }
}

/// Random numbers that seed, stream and count determine.
private struct Chance {
  private var state: UInt64

  init(_ seed: UInt64, _ stream: Link.Stream, _ number: Int) {
    state = seed
    for byte in "\(stream.from)/\(stream.to)/\(stream.kind)/\(stream.isUrgent)".utf8 {
      state = (state ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    state ^= UInt64(number) &* 0x9E37_79B9_7F4A_7C15
  }

  /// Returns a number from 0 to below 1.
  mutating func next() -> Double {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    mixed ^= mixed >> 31
    return Double(mixed >> 11) / Double(1 << 53)
  }
}
