#if FAULT_POINTS
  import WormholeSyscalls

  /// P7 of messages: a power cut after any step of a round loses no message that was sent.
  ///
  /// Names reach the disk in the order of their changes. A cut therefore leaves the names as at any
  /// moment since the latest sync: the sync of a directory includes the changes up to the last one
  /// in this directory. A file without a sync has its content after the cut, or is damaged. In each
  /// of these outcomes, a sent message has a name and its content, until its file is removed at the
  /// acknowledgement.
  ///
  /// The name may be one in the inbox again: claims and acknowledgements are not synced. A name in
  /// `staging/` is none: the next sweep removes it. The steps contain hashes of the names, and the
  /// inodes of open files. On tmpfs, no file has the number of an earlier one.
  struct DeliveryPromise {
    private static let inbox = "members/b/inbox/"
    private static let staging = "staging/"

    private struct Moment {
      /// The file of each known name.
      var files: [UInt64: UInt64] = [:]
      /// The directories of the change that led to these names.
      var folders: [UInt64] = []
    }

    private struct PendingCall {
      let choice: Turnstile.Choice
      let isSend: Bool
      /// Whether the file has a name in `staging/`: a sweep may have removed the name.
      let isStaged: Bool
    }

    private struct Placed {
      let process: Int
      var files: [UInt64]
    }

    /// The names at the latest sync, and after each later change.
    private var moments = [Moment()]
    /// The file of each name in `staging/`.
    private var staged: [UInt64: UInt64] = [:]
    private var unsynced: Set<UInt64> = []
    private var removed: Set<UInt64> = []
    /// The call that each player makes when it continues.
    private var calls: [Int: PendingCall] = [:]
    /// The messages of each player with a send that has not returned.
    private var placed: [Int: Placed] = [:]
    private var sent: Set<UInt64> = []

    /// Returns the promise that a power cut could break in the last round.
    static func violation() -> String? {
      var promise = Self()
      let made = Turnstile.madeCalls
      var chosen = -1
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        promise.noteCall(of: chosen)
        promise.noteStep(choice, number, isMade: made[number])
        if let broken = promise.brokenOutcome() { return broken }
        chosen = choice.isFailed ? -1 : choice.chosen
      }
      // The end of the last process is no step.
      promise.noteCall(of: chosen)
      for (player, one) in promise.placed where !Turnstile.wasKilled(one.process) {
        promise.noteReturn(of: player, in: one.process)
      }
      return promise.brokenOutcome()
    }

    // MARK: The steps

    private mutating func noteStep(_ choice: Turnstile.Choice, _ number: Int, isMade: Bool) {
      guard choice.player >= 0 else { return }
      var isSend = false
      let path = Turnstile.step(at: number).path
      switch choice.doing {
      case .end: noteReturn(of: choice.player, in: choice.process)
      case .call(.open):
        // The thread makes the file of its next message.
        if path.hasPrefix(Self.staging) {
          noteReturn(of: choice.player, in: choice.process)
        }
      case .call(.rename): isSend = path.hasPrefix(Self.inbox)
      // The call throws `notDurable`: the message is there, and a power cut may remove it.
      case .call(.fsync) where choice.isFailed: placed[choice.player] = nil
      default: break
      }
      calls[choice.player] = nil
      guard isMade else { return }
      calls[choice.player] = PendingCall(
        choice: choice, isSend: isSend,
        isStaged: path.hasPrefix(Self.staging) && !path.hasSuffix(" (deleted)"))
    }

    private mutating func noteReturn(of player: Int, in process: Int) {
      // The number of a thread that has ended may be another thread's.
      guard let one = placed.removeValue(forKey: player), one.process == process else { return }
      sent.formUnion(one.files)
    }

    /// The chosen player has made the call of its step.
    private mutating func noteCall(of player: Int) {
      guard let call = calls.removeValue(forKey: player) else { return }
      let choice = call.choice
      switch choice.doing {
      case .call(.write), .call(.pwrite):
        unsynced.insert(choice.file)
        if call.isStaged { staged[choice.object] = choice.file }
      case .call(.fsync):
        unsynced.remove(choice.file)
        let index = moments.lastIndex { $0.folders.contains(choice.object) }
        if let index { moments.removeFirst(index) }
      case .call(.rename): noteRename(call)
      case .call(.unlink): noteRemoval(choice)
      default: break
      }
    }

    /// A rename that has failed finds no file here either.
    private mutating func noteRename(_ call: PendingCall) {
      let choice = call.choice
      var files = moments[moments.count - 1].files
      let from = staged.removeValue(forKey: choice.other) ?? files.removeValue(forKey: choice.other)
      guard let file = from else { return }
      files[choice.object] = file
      moments.append(Moment(files: files, folders: [choice.folder, choice.otherFolder]))
      guard call.isSend else { return }
      placed[choice.player, default: Placed(process: choice.process, files: [])].files.append(file)
    }

    private mutating func noteRemoval(_ choice: Turnstile.Choice) {
      if staged.removeValue(forKey: choice.object) != nil { return }
      var files = moments[moments.count - 1].files
      guard let file = files.removeValue(forKey: choice.object) else { return }
      removed.insert(file)
      moments.append(Moment(files: files, folders: [choice.folder]))
    }

    // MARK: The outcomes

    private func brokenOutcome() -> String? {
      for file in sent.subtracting(removed) {
        if unsynced.contains(file) { return "undone: a power cut damages a sent message" }
        if !moments.allSatisfy({ $0.files.values.contains(file) }) {
          return "undone: a power cut removes a sent message"
        }
      }
      return nil
    }
  }
#endif
