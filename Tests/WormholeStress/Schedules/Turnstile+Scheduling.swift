#if FAULT_POINTS
  import WormholeCLinux
  import WormholeSyscalls

  /// The functions of the scheduling process and of the scheduled processes.
  extension Turnstile {
    /// An action of a schedule at a step, in place of a further step of the same player.
    enum ScheduleMove: Hashable, Sendable {
      case go(player: Int)
      case kill(process: Int)
      case suspend(process: Int, Duration)
      /// The call of the process with the turn fails.
      case fail(process: Int, Errno)
      /// The process receives an overflow in place of the next notices.
      case loseNotices(process: Int)
    }

    /// The next action of a player.
    enum PlayerAction: Hashable, Sendable {
      case call(Call)
      case wait, end, begin

      fileprivate init(_ call: Int32) {
        self =
          switch call {
          case Int32(turnstile_waits): .wait
          case Int32(turnstile_ends): .end
          case 0...: .call(unsafeBitCast(UInt8(call), to: Call.self))
          default: .begin
          }
      }

      /// An error that the call can return; nil if the step is no call.
      ///
      /// A call that reads does not find the disk full: the library would not expect this to pass.
      var failure: Errno? {
        guard case .call(let call) = self else { return nil }
        let error: Errno =
          switch call {
          case .open: .tooManyOpenFiles
          case .read, .pread, .fstat, .fstatat, .getdents, .fstatfs, .readlink, .ofdquery, .lseek:
            .inputOutput
          default: .noSpace
          }
        return error
      }
    }

    /// A step of a round, with the player at the step and the player that continued.
    struct Step: Sendable {
      /// Nil for the keeper, at the beginning and after a kill.
      let player: Int?
      let process: Int?
      let thread: String
      let doing: PlayerAction
      /// The file of a call, or the object of a wait.
      let path: String
      /// The enabled players.
      let enabled: [Int]
      /// Nil after any other action of the schedule.
      let chosen: Int?
      let clock: Int64
      /// Whether no other process notices the call.
      let isLocal: Bool
      let isMove: Bool
    }

    enum RoundOutcome: Int, Sendable {
      case over, deadlock, tooLong, crash, stuck, astray
    }

    static let playerLimit = Int(turnstile_max_players)
    static let moveLimit = Int(turnstile_max_moves)

    // MARK: The process that schedules

    /// Makes the shared memory; from now on this process starts no task.
    static func make() throws(Errno) {
      guard turnstile_make() == 0 else { throw Errno.current }
    }

    /// Forks the keeper, which calls the role in each player.
    static func start(
      _ role: @escaping @convention(c) (Int32) -> Void
    ) throws(Errno) {
      guard turnstile_start_keeper(role) == 0 else { throw Errno.current }
    }

    static func end() { turnstile_end_keeper() }

    /// Prepares a round of processes; the last process begins after the end of the other processes.
    static func prepare(_ processes: Int, seed: UInt64) {
      turnstile_prepare(Int32(processes), seed)
    }

    /// Lets a process begin only after the death of another process.
    static func replace(_ other: Int, by process: Int) {
      turnstile_replace(Int32(process), Int32(other))
    }

    /// Records at each step of the round which files have these paths.
    static func observe(_ first: String, _ second: String) { turnstile_observe(first, second) }

    static func add(_ move: ScheduleMove, at step: Int) {
      var made = turnstile_move()
      made.step = Int32(step)
      switch move {
      case .go(let player):
        (made.kind, made.target) = (Int32(turnstile_switch.rawValue), Int32(player))
      case .kill(let process):
        (made.kind, made.target) = (Int32(turnstile_kill.rawValue), Int32(process))
      case .suspend(let process, let time):
        (made.kind, made.target) = (Int32(turnstile_suspend.rawValue), Int32(process))
        made.value = time.inNanoseconds
      case .fail(let process, let error):
        (made.kind, made.target) = (Int32(turnstile_fail.rawValue), Int32(process))
        made.value = Int64(error.rawValue)
      case .loseNotices(let process):
        (made.kind, made.target) = (Int32(turnstile_lose.rawValue), Int32(process))
      }
      precondition(turnstile_add_move(&made) == 0, "a schedule has too many moves")
    }

    /// Lets the enabled player with the highest rank continue; at each of the steps the current
    /// player gets the lowest rank.
    static func draw(ranks: [Int], steps: [Int]) {
      let ranks = (0..<playerLimit).map { Int32($0 < ranks.count ? ranks[$0] : 0) }
      turnstile_draw(ranks, steps.map { Int32($0) }, Int32(steps.count))
    }

    static func round() -> RoundOutcome {
      RoundOutcome(rawValue: Int(turnstile_round().rawValue))!
    }

    static var stepCount: Int { Int(turnstile_step_count()) }
    static var fingerprint: UInt64 { turnstile_fingerprint() }

    /// The enabled players at a step, and the player at the step.
    static func choice(at number: Int) -> Choice {
      let step = turnstile_step_at(Int32(number))!
      return Choice(
        player: Int(step.pointee.player), process: Int(step.pointee.process),
        enabled: step.pointee.enabled,
        suspended: step.pointee.suspended,
        chosen: Int(step.pointee.chosen), isLocal: step.pointee.is_local != 0,
        access: CallEffect(rawValue: Int(step.pointee.access)) ?? .other,
        isWatched: step.pointee.is_watched != 0,
        usedClock: step.pointee.used_clock != 0, usedLocks: step.pointee.used_locks,
        object: step.pointee.object, folder: step.pointee.folder,
        other: step.pointee.other, otherFolder: step.pointee.other_folder,
        doing: PlayerAction(step.pointee.call), file: step.pointee.file,
        firstFile: step.pointee.first_file, secondFile: step.pointee.second_file,
        clock: step.pointee.clock,
        isFailed: step.pointee.move == Int32(turnstile_fail.rawValue))
    }

    /// The part of a step for a search: numbers below 0 stand for the keeper.
    struct Choice: Sendable {
      let player: Int
      let process: Int
      let enabled: UInt64
      let suspended: UInt64
      let chosen: Int
      let isLocal: Bool
      let access: CallEffect
      /// Whether a process of this round has watched the directory.
      let isWatched: Bool
      /// Whether the player has read the clock since its former step.
      let usedClock: Bool
      /// The locks of the process that the player has taken since its former step: a bit each.
      let usedLocks: UInt64
      /// Hashes of the path and the directory; of a rename also the hashes of the other name.
      let object: UInt64
      let folder: UInt64
      let other: UInt64
      let otherFolder: UInt64
      let doing: PlayerAction
      /// Inodes, 0 for none: the file of the descriptor, and the files at the observed paths before
      /// the call.
      let file: UInt64
      let firstFile: UInt64
      let secondFile: UInt64
      let clock: Int64
      /// Whether the schedule lets the call fail.
      let isFailed: Bool
    }

    /// Whether the call of each step was made.
    ///
    /// A process that is killed does not make its pending calls, and the number of its thread may
    /// become another thread's.
    static var madeCalls: [Bool] {
      var made = [Bool](repeating: false, count: stepCount)
      var next: [Int: Int] = [:]
      for number in made.indices.reversed() {
        let choice = choice(at: number)
        guard choice.player >= 0 else { continue }
        made[number] =
          next[choice.player].map { $0 == choice.process } ?? !wasKilled(choice.process)
        next[choice.player] = choice.process
      }
      return made
    }

    /// The steps of the round whose calls the schedule has made fail.
    static var failedSteps: [Step] {
      (0..<stepCount).filter { choice(at: $0).isFailed }.map { step(at: $0) }
    }

    static func step(at number: Int) -> Step {
      let step = turnstile_step_at(Int32(number))!
      let raw = step.pointee
      return Step(
        player: raw.player < 0 ? nil : Int(raw.player),
        process: raw.process < 0 ? nil : Int(raw.process),
        thread: withUnsafeBytes(of: raw.thread, text), doing: PlayerAction(raw.call),
        path: withUnsafeBytes(of: raw.path, text),
        enabled: (0..<playerLimit).filter { raw.enabled & (1 << UInt64($0)) != 0 },
        chosen: raw.chosen < 0 ? nil : Int(raw.chosen), clock: raw.clock,
        isLocal: raw.is_local != 0, isMove: raw.move >= 0)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// The notes of a process.
    static func notes(of process: Int) -> [Int] {
      (0..<turnstile_note_count(Int32(process))).map {
        Int(turnstile_note_at(Int32(process), $0))
      }
    }

    static func wasKilled(_ process: Int) -> Bool {
      turnstile_was_killed(Int32(process)) != 0
    }

    /// The latest text of a process: an error.
    static func text(of process: Int) -> String {
      String(cString: turnstile_text(Int32(process)))
    }

    /// The failure of the round.
    static var trouble: String { String(cString: turnstile_trouble()) }

    // MARK: The processes that are scheduled

    /// Whether a schedule controls this thread.
    static var isScheduled: Bool { turnstile_plays() != 0 }
    /// Ends the preparations of this process; returns when the race has begun.
    static func begin() { turnstile_begin() }
    /// Ends the part of this process without closing files; returns only in an unscheduled process.
    static func finish() { turnstile_finish() }
    /// Keeps this process on one processor, the number modulo their count.
    static func pin(_ number: Int) { turnstile_pin(Int32(number)) }
    static func note(_ value: Int) { turnstile_note(Int64(value)) }
    static func setText(_ text: String) { turnstile_set_text(text) }
  }
#endif
