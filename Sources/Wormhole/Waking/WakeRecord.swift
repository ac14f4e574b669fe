internal import PropertyLists
internal import SharedContainer
internal import Syscalls

/// The latest start of a member, as all see it who want it to run: the value of the slot
/// `wake.<name>` in `system/`.
///
/// It is changed under the slot's lock, so of all who ask at the same time one writes it, and that
/// one starts the program. Its end, if that came before the member had joined, is added later.
struct WakeRecord: Codable, Equatable, Sendable {
  /// What tells it from all others: 16 hexadecimal digits.
  let id: String
  /// In nanoseconds since the machine was started.
  let started: Int64
  /// Who starts it, for people.
  let by: String
  let program: String
  /// The member's incarnation before; another one means that somebody has joined since.
  let before: String?
  /// The process, once there is one, as in a profile.
  var process: Int32?
  var namespace: UInt64?
  var ticks: UInt64?
  /// How many starts in a row, right before this one, nobody has joined after.
  let failed: Int?
  /// Why nobody has joined, and when that was known.
  var failure: String?
  var ended: Int64?

  /// How the starting stands, for one who wants the member to run.
  enum Verdict: Equatable {
    /// It is up to whoever is first to write another record.
    case start
    /// Somebody else is about it; look again by then, at the latest.
    case wait(Duration)
    /// It was tried while this one wanted it, and did not succeed.
    case failed(String)
  }

  /// - Parameters:
  ///   - incarnation: the member's, which is not present.
  ///   - program: what would be started.
  ///   - begun: since when this one wants it.
  ///   - grace: how long somebody is believed to be about it who has not yet started anything.
  func verdict(
    _ incarnation: String?, _ program: String, begun: Int64, now: Int64, grace: Duration
  ) -> Verdict {
    // It has joined, and is gone again.
    if incarnation != before { return .start }
    if let failure, let ended {
      // What is still to come was noted in an earlier run of the machine.
      if (begun...max(begun, now)).contains(ended) { return .failed(failure) }
      let pause = Self.pause(after: failures(incarnation, program))
      let rest = pause - .nanoseconds(now - ended)
      // Of that more than all of it is left.
      return rest <= .zero || rest > pause ? .start : .wait(rest)
    }
    if isAlive { return .wait(grace) }
    // An age below 0 is that of an earlier start of the machine.
    let age = Duration.nanoseconds(now - started)
    return age < .zero || age >= grace ? .start : .wait(grace - age)
  }

  /// How many starts in a row have failed, this one with them, if another one begins now.
  func failures(_ incarnation: String?, _ program: String) -> Int {
    incarnation == before && program == self.program ? (failed ?? 0) + 1 : 0
  }

  /// How long after so many failures in a row nobody starts it again: what crashes is not to be
  /// started as fast as it can.
  private static func pause(after failures: Int) -> Duration {
    failures == 0 ? .zero : min(.milliseconds(100) * (1 << min(failures - 1, 10)), .seconds(10))
  }

  /// Whether the process is known to live.
  private var isAlive: Bool {
    guard let process, let namespace, let ticks else { return false }
    let holder = LockHolder(
      process: process, namespace: namespace, started: ticks, program: program)
    return holder.state == .running || holder.state == .stopped
  }

  /// What was started, for people.
  var whatRuns: String {
    if let failure {
      return "it was started \((failed ?? 0) + 1) times in a row in vain, the last time \(failure)"
    }
    guard let process else { return "'\(by)' was about to start it" }
    return "it was started as '\(program)' (process \(process))"
  }

  // MARK: In its slot

  static func slot(of name: String, in container: Container) throws(WormholeError) -> Slot {
    try container.slot(.system, "wake." + name)
  }

  init(
    id: String, started: Int64, by: String, program: String, before: String?, failed: Int = 0
  ) {
    self.id = id
    self.started = started
    self.by = by
    self.program = program
    self.before = before
    self.failed = failed
  }

  /// Nil for what is damaged, or of another form: then nobody is about it.
  init?(_ content: Slot.Content) {
    guard case .value(let bytes, _) = content,
      let record = try? BinaryDecoder().decode(WakeRecord.self, from: bytes),
      record.started >= 0, record.ended ?? 0 >= 0, record.process ?? 1 > 0,
      (0..<Int.max).contains(record.failed ?? 0)
    else { return nil }
    self = record
  }

  /// Changes the record, unless another one has taken its place.
  static func change(
    _ slot: Slot, _ id: String, _ patience: Patience, _ body: (inout WakeRecord) -> Void
  ) throws {
    try slot.change("wake", patience: patience) { content in
      guard var record = WakeRecord(content), record.id == id else { return .none }
      body(&record)
      return .put(try BinaryEncoder().encode(record))
    }
  }
}
