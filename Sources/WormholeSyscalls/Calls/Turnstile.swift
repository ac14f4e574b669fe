#if FAULT_POINTS
  internal import WormholeCLinux

  /// Processes with one running thread at a time, in the order of a schedule.
  ///
  /// The header `Turnstile.h` is the manual. The scheduling process and the scheduled processes
  /// call the functions of this file.
  package enum Turnstile {
    /// An action of a schedule at a step, in place of a further step of the same player.
    package enum ScheduleMove: Hashable, Sendable {
      case go(player: Int)
      case kill(process: Int)
      case suspend(process: Int, Duration)
      /// The call of the process with the turn fails.
      case fail(process: Int, Errno)
      /// The process receives an overflow in place of the next notices.
      case loseNotices(process: Int)
    }

    /// The next action of a player.
    package enum PlayerAction: Hashable, Sendable {
      case call(Call)
      case wait, end, begin
    }

    /// A step of a round, with the player at the step and the player that continued.
    package struct Step: Sendable {
      /// Nil for the keeper, at the beginning and after a kill.
      package let player: Int?
      package let process: Int?
      package let thread: String
      package let doing: PlayerAction
      /// The file of a call, or the object of a wait.
      package let path: String
      /// The enabled players.
      package let enabled: [Int]
      /// Nil after any other action of the schedule.
      package let chosen: Int?
      package let clock: Int64
      /// Whether no other process notices the call.
      package let isLocal: Bool
      package let isMove: Bool
    }

    package enum RoundOutcome: Int, Sendable {
      case over, deadlock, tooLong, crash, stuck, astray
    }

    package static let playerLimit = Int(turnstile_max_players)
    package static let moveLimit = Int(turnstile_max_moves)

    // MARK: The process that schedules

    /// Makes the shared memory; from now on this process starts no task.
    package static func make() throws(Errno) {
      guard turnstile_make() == 0 else { throw Errno.current }
    }

    /// Forks the keeper, which calls the role in each player.
    package static func start(
      _ role: @escaping @convention(c) (Int32) -> Void
    ) throws(Errno) {
      guard turnstile_start_keeper(role) == 0 else { throw Errno.current }
    }

    package static func end() { turnstile_end_keeper() }

    /// Prepares a round of processes; the last process begins after the end of the other processes.
    package static func prepare(_ processes: Int, seed: UInt64) {
      turnstile_prepare(Int32(processes), seed)
    }

    /// Lets a process begin only after the death of another process.
    package static func replace(_ other: Int, by process: Int) {
      turnstile_replace(Int32(process), Int32(other))
    }

    package static func add(_ move: ScheduleMove, at step: Int) {
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
    package static func draw(ranks: [Int], steps: [Int]) {
      let ranks = (0..<playerLimit).map { Int32($0 < ranks.count ? ranks[$0] : 0) }
      turnstile_draw(ranks, steps.map { Int32($0) }, Int32(steps.count))
    }

    package static func round() -> RoundOutcome {
      RoundOutcome(rawValue: Int(turnstile_round().rawValue))!
    }

    package static var stepCount: Int { Int(turnstile_step_count()) }
    package static var fingerprint: UInt64 { turnstile_fingerprint() }

    /// The enabled players at a step, and the player at the step.
    package static func choice(at number: Int) -> Choice {
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
        other: step.pointee.other, otherFolder: step.pointee.other_folder)
    }

    /// The effect of a call on the file at the path.
    package enum CallEffect: Int, Sendable {
      /// Of a step that begins, ends, or waits for a thread of the same process.
      case nothing
      case other
      case readsName, readsFile, readsListing
      case writesName, writesFile
      /// Only of a call: a step contains another access instead.
      case readsStatus
      case watches
      case readsNotices
    }

    /// The part of a step for a search: numbers below 0 stand for the keeper.
    package struct Choice: Sendable {
      package let player: Int
      package let process: Int
      package let enabled: UInt32
      package let suspended: UInt32
      package let chosen: Int
      package let isLocal: Bool
      package let access: CallEffect
      /// Whether a process of this round has watched the directory.
      package let isWatched: Bool
      /// Whether the player has read the clock since its former step.
      package let usedClock: Bool
      /// The locks of the process that the player has taken since its former step: a bit each.
      package let usedLocks: UInt64
      /// Hashes of the path and the directory; of a rename also the hashes of the other name.
      package let object: UInt64
      package let folder: UInt64
      package let other: UInt64
      package let otherFolder: UInt64
    }

    package static func step(at number: Int) -> Step {
      let step = turnstile_step_at(Int32(number))!
      let raw = step.pointee
      let doing: PlayerAction =
        switch raw.call {
        case Int32(turnstile_waits): .wait
        case Int32(turnstile_ends): .end
        case 0...: .call(unsafeBitCast(UInt8(raw.call), to: Call.self))
        default: .begin
        }
      return Step(
        player: raw.player < 0 ? nil : Int(raw.player),
        process: raw.process < 0 ? nil : Int(raw.process),
        thread: withUnsafeBytes(of: raw.thread, text), doing: doing,
        path: withUnsafeBytes(of: raw.path, text),
        enabled: (0..<playerLimit).filter { raw.enabled & (1 << UInt32($0)) != 0 },
        chosen: raw.chosen < 0 ? nil : Int(raw.chosen), clock: raw.clock,
        isLocal: raw.is_local != 0, isMove: raw.move >= 0)
    }

    private static func text(_ bytes: UnsafeRawBufferPointer) -> String {
      String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
    }

    /// The notes of a process.
    package static func notes(of process: Int) -> [Int] {
      (0..<turnstile_note_count(Int32(process))).map {
        Int(turnstile_note_at(Int32(process), $0))
      }
    }

    package static func wasKilled(_ process: Int) -> Bool {
      turnstile_was_killed(Int32(process)) != 0
    }

    /// The latest text of a process: an error.
    package static func text(of process: Int) -> String {
      String(cString: turnstile_text(Int32(process)))
    }

    /// The failure of the round.
    package static var trouble: String { String(cString: turnstile_trouble()) }

    // MARK: The processes that are scheduled

    /// Whether a schedule controls this thread.
    package static var isScheduled: Bool { turnstile_plays() != 0 }
    /// Ends the preparations of this process; returns when the race has begun.
    package static func begin() { turnstile_begin() }
    /// Ends the part of this process without closing files; returns only in an unscheduled process.
    package static func finish() { turnstile_finish() }
    /// Keeps this process on one processor, the number modulo their count.
    package static func pin(_ number: Int) { turnstile_pin(Int32(number)) }
    package static func note(_ value: Int) { turnstile_note(Int64(value)) }
    package static func setText(_ text: String) { turnstile_set_text(text) }

    /// Waits at a fault point until the schedule lets this thread continue.
    ///
    /// - Returns: an error to report instead of making the call.
    @inline(__always)
    static func pass(
      _ call: Call, _ descriptor: CInt, _ name: UnsafePointer<CChar>?
    ) -> Errno? {
      guard turnstile_plays() != 0 else { return nil }
      let error = turnstile_at(
        Int32(unsafeBitCast(call, to: UInt8.self)), call.changes ? 1 : 0, call.isLocal ? 1 : 0,
        Int32(call.access.rawValue), descriptor, name)
      return error == 0 ? nil : Errno(rawValue: error)
    }
  }

  extension Call {
    /// Whether the call can end a wait of another thread.
    fileprivate var changes: Bool {
      switch self {
      case .read, .pread, .fstat, .fstatat, .getdents, .fstatfs, .readlink, .ofdquery, .lseek,
        .epollWait, .poll, .inotifyInit, .eventfd, .epoll, .pipe, .waitpid, .duplicate, .fsync:
        false
      default: true
      }
    }

    /// Whether the call has no effect on other processes, and other processes none on the result.
    fileprivate var isLocal: Bool {
      switch self {
      case .inotifyInit, .eventfd, .epoll, .epollControl, .pipe, .fstatfs, .lseek, .duplicate,
        .inotifyRemove, .fsync:
        true
      default: false
      }
    }

    /// The effect of the call on the file at the path, without the flags of the call.
    fileprivate var access: Turnstile.CallEffect {
      switch self {
      case .fstatat, .readlink: .readsName
      // Of an inotify instance: notices.
      case .pread, .read: .readsFile
      case .getdents: .readsListing
      case .fstat: .readsStatus
      case .open, .rename, .link, .unlink, .mkdir, .rmdir, .symlink, .mknod: .writesName
      // Closing releases locks.
      case .write, .pwrite, .fchmod, .ftruncate, .utimensat, .fallocate, .clone, .copyRange,
        .flock, .ofdlock, .close:
        .writesFile
      case .inotifyAdd: .watches
      case .epollWait, .poll: .readsNotices
      default: .other
      }
    }
  }
#endif
