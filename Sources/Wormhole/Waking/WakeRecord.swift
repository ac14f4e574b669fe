internal import WormholeContainerStorage
internal import WormholePropertyLists
internal import WormholeSyscalls

/// The latest start of a member, for all processes that wake the member: the value of the slot
/// `wake.<name>` in `system/`.
///
/// The record is changed under the slot's lock. So if several processes wake the member at the same
/// time, only a single process writes the record and starts the program. If the program ends before
/// the member has joined, its end is added later.
struct WakeRecord: FileRecord, Equatable, Sendable {
  /// Identifies the start: 16 hexadecimal digits.
  private(set) var id = ""
  /// In nanoseconds since the machine was started.
  private(set) var started: Int64 = 0
  /// The name of the starting process, for people.
  private(set) var by = ""
  private(set) var program = ""
  /// The machine that starts the program, if it is the member's home; a carrier asks it.
  private(set) var machine: String?
  /// The member's incarnation before the start; a different incarnation means that a process has
  /// joined since.
  private(set) var before: String?
  /// The process, once the program runs, as in a profile.
  var process: Int32?
  var namespace: UInt64?
  var ticks: UInt64?
  /// The number of starts in a row, right before the current start, after which no process has
  /// joined.
  private(set) var failed: Int?
  /// The reason why no process has joined, and the moment when the reason was known.
  var failure: String?
  var ended: Int64?

  mutating func visit(_ fields: inout some FieldVisitor) throws {
    try fields.field("id", &id)
    try fields.field("started", &started)
    try fields.check("started", started >= 0, "\(started) is not a time")
    try fields.field("by", &by)
    try fields.field("program", &program)
    try fields.field("machine", &machine)
    try fields.field("before", &before)
    try fields.field("process", &process)
    try fields.check("process", process ?? 1 > 0, "\(process ?? 0) is not a process")
    try fields.field("namespace", &namespace)
    try fields.field("ticks", &ticks)
    try fields.field("failed", &failed)
    try fields.check(
      "failed", (0..<Int.max).contains(failed ?? 0), "\(failed ?? 0) is not a number of starts")
    try fields.field("failure", &failure)
    try fields.field("ended", &ended)
    try fields.check("ended", ended ?? 0 >= 0, "\(ended ?? 0) is not a time")
  }

  /// The state of the start, for a process that wakes the member.
  enum StartDecision: Equatable {
    /// The first process that writes a new record starts the program.
    case start
    /// Another process is starting the member; check again after this time, at the latest.
    case wait(Duration)
    /// A start has failed since the process began to wake the member.
    case failed(String)
  }

  /// - Parameters:
  ///   - incarnation: the incarnation of the member, which is not present.
  ///   - program: the program to be started.
  ///   - begun: the moment when the process began to wake the member.
  ///   - grace: the time for which a process with a record, but without a started program, is
  ///     believed to be starting it.
  func verdict(
    _ incarnation: String?, _ program: String, begun: Int64, now: Int64, grace: Duration
  ) -> StartDecision {
    // The member has joined, and has left again.
    if incarnation != before { return .start }
    if let failure, let ended {
      // A moment in the future was recorded in an earlier run of the machine.
      if (begun...max(begun, now)).contains(ended) { return .failed(failure) }
      let pause = Self.pause(after: failures(incarnation, program))
      let rest = pause - .nanoseconds(now - ended)
      // More than the whole pause can only be left after a restart of the machine.
      return rest <= .zero || rest > pause ? .start : .wait(rest)
    }
    if isAlive { return .wait(grace) }
    // A negative age belongs to an earlier run of the machine.
    let age = Duration.nanoseconds(now - started)
    return age < .zero || age >= grace ? .start : .wait(grace - age)
  }

  /// Returns the number of failed starts in a row, including this start, if another one begins now.
  func failures(_ incarnation: String?, _ program: String) -> Int {
    incarnation == before && program == self.program ? (failed ?? 0) + 1 : 0
  }

  /// Returns the pause before the next start, after a number of failures in a row.
  ///
  /// A program that crashes must not be restarted as fast as possible.
  private static func pause(after failures: Int) -> Duration {
    failures == 0 ? .zero : min(.milliseconds(100) * (1 << min(failures - 1, 10)), .seconds(10))
  }

  /// Whether the process is known to be alive.
  private var isAlive: Bool {
    guard let process, let namespace, let ticks else { return false }
    let holder = LockHolder(
      process: process, namespace: namespace, started: ticks, program: program)
    return holder.state == .running || holder.state == .stopped
  }

  /// The state of the start, for people.
  var whatRuns: String {
    if let failure {
      let starts = (failed ?? 0) + 1
      return starts == 1
        ? "the program was started once without success: \(failure)"
        : "the program was started \(starts) times in a row without success; the last time, "
          + failure
    }
    if let machine {
      return process == nil
        ? "'\(by)' was about to have machine '\(machine)' start the program"
        : "machine '\(machine)' was asked to start the program"
    }
    guard let process else { return "'\(by)' was about to start the program" }
    return "'\(program)' (process \(process)) was started"
  }
}

// MARK: In its slot

extension WakeRecord {
  static func slot(of name: String, in storage: Container) throws(WormholeError) -> Slot {
    try storage.slot(prefix: Container.Folder.wakePrefix, name)
  }

  /// Nil for a record that is damaged or of another form: then no process counts as starting the
  /// member.
  init?(_ content: Slot.Content) {
    guard case .value(let bytes, _) = content, let record = try? WakeRecord(bytes) else {
      return nil
    }
    self = record
  }

  /// Changes the record, unless another record has replaced it.
  static func change(
    _ slot: Slot, _ id: String, _ patience: Patience, _ body: (inout WakeRecord) -> Void
  ) throws {
    try slot.change("wake", patience: patience) { content in
      guard var record = WakeRecord(content), record.id == id else { return .none }
      body(&record)
      return .put(try record.encoded())
    }
  }
}
