internal import Wormhole

/// What a link does to what is sent over it: so often, by chance that a seed decides, or to certain
/// messages.
///
/// It is written as one line, ``description``, and read from one, ``init(_:)``: a test that prints
/// the plan it failed under can be run again under the same. What is sent in the same order suffers
/// the same. Messages are counted from 1 for each sender, receiver and kind: guaranteed (urgent
/// ones by themselves), immediate, questions, answers.
///
/// A link does nothing that the promises exclude. Guaranteed messages come, and in order; they are
/// kept back together with all that the same sender sent after them.
public struct LinkPlan: Hashable, Sendable {
  /// What may befall a message.
  @nonexhaustive
  public enum Fault: Hashable, Sendable {
    /// An immediate message, question or answer is lost.
    ///
    /// A guaranteed message never is. The receiver misses the word that it came, and finds it when
    /// it looks again: after ``LinkPlan/rediscovery``.
    case drop
    /// It takes as long as this.
    case delay(Duration)
    /// A guaranteed message comes once more after it was acknowledged, marked as redelivered, as if
    /// its receiver had died meanwhile. Nothing else is ever doubled.
    case duplicate
    /// Others overtake it, for ``LinkPlan/window``: of the same sender only if it is immediate.
    case reorder
  }

  /// Decides, together with the count, which messages suffer.
  public var seed: UInt64
  /// How many of all are dropped, from 0 to 1.
  public var drop = 0.0
  /// How many are delayed.
  public var delay = 0.0
  /// By how much those are delayed.
  public var delays: ClosedRange<Duration> = .milliseconds(1) ... .milliseconds(100)
  /// How many come once more.
  public var duplicate = 0.0
  /// How many are overtaken.
  public var reorder = 0.0
  /// What certain messages suffer, by their number from 1; chance is not asked about them.
  public var faults: [Int: Fault] = [:]
  /// The member to whom all this applies; nil for all.
  public var receiver: String?
  /// When a receiver looks again that has missed a guaranteed message.
  public var rediscovery = Duration.seconds(1)
  /// For how long what is reordered is held back.
  public var window = Duration.milliseconds(50)

  /// A plan that does nothing yet.
  public init(seed: UInt64 = 0) { self.seed = seed }

  /// What one message suffers.
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

/// Random numbers that come again with seed, stream and count.
private struct Chance {
  private var state: UInt64

  init(_ seed: UInt64, _ stream: Link.Stream, _ number: Int) {
    state = seed
    for byte in "\(stream.from)/\(stream.to)/\(stream.kind)/\(stream.isUrgent)".utf8 {
      state = (state ^ UInt64(byte)) &* 0x100_0000_01B3
    }
    state ^= UInt64(number) &* 0x9E37_79B9_7F4A_7C15
  }

  /// From 0 to below 1.
  mutating func next() -> Double {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    mixed ^= mixed >> 31
    return Double(mixed >> 11) / Double(1 << 53)
  }
}
