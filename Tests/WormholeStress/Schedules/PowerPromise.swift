#if FAULT_POINTS
  import WormholeSyscalls

  /// P7 of a channel: a power cut after any step of a round undoes no more changes than it may.
  ///
  /// Names reach the disk in the order of their changes. A cut therefore leaves the names of the
  /// directory as at any moment since their latest sync. The sync of a file includes the change
  /// that made the file the value, and all changes before. A file without a sync has its content
  /// after the cut, or is damaged. For each of these outcomes, the check takes the file that
  /// readers get: the value, or the previous value in place of a damaged or missing one.
  ///
  /// - No outcome undoes a change that was synced and has returned.
  /// - Of the other changes, an outcome undoes at most the last change without a sync, later
  ///   changes, and the changes of the second before it.
  ///
  /// Each step contains the inodes of both files, as the calls before have left them. On tmpfs, no
  /// file has the number of an earlier one. The race begins with a synced value. While a save has
  /// taken the previous value out, readers have `past`; the check does without it.
  struct PowerPromise {
    static let channel = "channels/sum"
    /// The age of the previous value, and the steps between the decision and the making of a file.
    private static let age: Int64 = 1_000_000_000 + 1_000_000

    private struct Names: Hashable {
      let value: UInt64
      let kept: UInt64
    }

    private struct Change {
      let process: Int?
      /// Whether the change is durable once its call returns.
      var isSynced: Bool
      /// When the process had decided whether to sync the file.
      let begin: Int64
      /// When the next change replaced the value.
      var end: Int64?
    }

    private enum Sync { case names, file(UInt64) }

    /// The names at the latest sync, and all later ones.
    private var onDisk: [Names] = []
    private var unsynced: Set<UInt64> = []
    private var changes: [Change] = []
    /// The change of each file that was the value.
    private var positions: [UInt64: Int] = [:]
    /// The last change that was synced and has returned, and the last change without a sync.
    private var durable = 0
    private var latestUnsynced: Int?
    /// The process of each player, and the sync that the player makes next.
    private var processes: [Int: Int] = [:]
    private var syncs: [Int: Sync] = [:]
    /// When each process made the first file for its next change.
    private var begins: [Int: Int64] = [:]
    private var isUnchecked = false

    /// Returns the promise that a power cut could break in the last round.
    static func violation() -> String? {
      var promise = Self()
      let made = Turnstile.madeCalls
      var chosen = -1
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        promise.noteSync(by: chosen)
        promise.noteNames(at: choice, by: chosen)
        promise.noteStep(choice, number, isMade: made[number])
        if let broken = promise.brokenOutcome() { return broken }
        chosen = choice.isFailed ? -1 : choice.chosen
      }
      // The end of the last process is no step.
      promise.noteSync(by: chosen)
      for process in Set(promise.processes.values) where !Turnstile.wasKilled(process) {
        promise.noteReturn(of: process)
      }
      return promise.brokenOutcome()
    }

    // MARK: The steps

    /// The chosen player has made the call of its step.
    private mutating func noteSync(by player: Int) {
      switch syncs.removeValue(forKey: player) {
      case .names?: onDisk.removeFirst(max(0, onDisk.count - 1))
      case .file(let file)?:
        unsynced.remove(file)
        if let index = onDisk.firstIndex(where: { $0.value == file }) {
          onDisk.removeFirst(index)
        }
      case nil: break
      }
    }

    private mutating func noteNames(at choice: Turnstile.Choice, by player: Int) {
      let names = Names(value: choice.firstFile, kept: choice.secondFile)
      let latest = onDisk.last
      guard names != latest else { return }
      if names.value != latest?.value {
        noteChange(names.value, by: processes[player], choice.clock)
      }
      onDisk.append(names)
      isUnchecked = true
    }

    private mutating func noteChange(_ file: UInt64, by process: Int?, _ clock: Int64) {
      if !changes.isEmpty { changes[changes.count - 1].end = clock }
      guard file != 0 else { return }
      var begin = clock
      if let process {
        // A process makes its changes one after the other.
        noteReturn(of: process)
        begin = begins.removeValue(forKey: process) ?? clock
      }
      let isSynced = !unsynced.contains(file)
      if !isSynced { latestUnsynced = changes.count }
      positions[file] = changes.count
      changes.append(Change(process: process, isSynced: isSynced, begin: begin))
    }

    private mutating func noteReturn(of process: Int) {
      let last = changes.lastIndex { $0.process == process && $0.isSynced }
      guard let last, last > durable else { return }
      durable = last
      isUnchecked = true
    }

    /// The call throws `notDurable`: its change is made, and a power cut may undo it.
    private mutating func noteFailedSync(of process: Int) {
      let last = changes.lastIndex { $0.process == process && $0.isSynced }
      if let last { changes[last].isSynced = false }
    }

    private mutating func noteStep(_ choice: Turnstile.Choice, _ number: Int, isMade: Bool) {
      guard choice.player >= 0 else { return }
      processes[choice.player] = choice.process
      syncs[choice.player] = nil
      switch choice.doing {
      case .call(.write), .call(.pwrite): unsynced.insert(choice.file)
      case .call(.fsync):
        let isFolder = Turnstile.step(at: number).path == Self.channel
        if isMade { syncs[choice.player] = isFolder ? .names : .file(choice.file) }
        if isFolder, choice.isFailed { noteFailedSync(of: choice.process) }
      case .call(.open) where choice.access == .writesName && begins[choice.process] == nil:
        if Turnstile.step(at: number).path.hasSuffix("/next") {
          begins[choice.process] = choice.clock
        }
      // The end of another thread of the process is no return.
      case .end where choice.player == choice.process: noteReturn(of: choice.process)
      default: break
      }
    }

    // MARK: The outcomes

    /// Returns the promise that a cut at this moment could break.
    ///
    /// Without a change, a sync leaves fewer outcomes: these were checked.
    private mutating func brokenOutcome() -> String? {
      guard isUnchecked else { return nil }
      isUnchecked = false
      for names in onDisk {
        for file in found(under: names) {
          if let broken = check(file) { return broken }
        }
      }
      return nil
    }

    /// The files that readers may get; 0 for none.
    private func found(under names: Names) -> [UInt64] {
      let previous = unsynced.contains(names.kept) ? 0 : names.kept
      if names.value == 0 { return [previous] }
      return unsynced.contains(names.value) ? [names.value, previous] : [names.value]
    }

    private func check(_ file: UInt64) -> String? {
      guard let position = positions[file] else { return "undone: a power cut leaves no value" }
      if position < durable {
        let process = changes[durable].process ?? -1
        return "undone: a power cut undoes a synced change of process \(process)"
      }
      guard let latestUnsynced, latestUnsynced > position, let end = changes[position].end,
        end < changes[latestUnsynced].begin - Self.age
      else { return nil }
      return "undone: a power cut undoes changes of more than a second"
    }
  }
#endif
