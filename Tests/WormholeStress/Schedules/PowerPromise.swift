#if FAULT_POINTS
  import WormholeSyscalls

  /// The promise that an addition outlives a power cut from its return on.
  ///
  /// A cut may leave a file without the content that was not synced, and a directory with the names
  /// as at any moment since its latest sync. So a file must have been synced when it gets the name
  /// of the value, and the directory between this moment and the return.
  enum PowerPromise {
    private static let value = "channels/sum/value.plist"
    private static let folder = "channels/sum"

    /// Returns a process whose addition a power cut could undo, by the steps of the last round.
    static func violation() -> String? {
      var unsynced: Set<UInt64> = []
      // The processes that have given the value its name since the directory was synced.
      var renamed: Set<Int> = []
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        guard Self.matters(choice) else { continue }
        let step = Turnstile.step(at: number)
        guard let process = step.process else { continue }
        switch step.doing {
        case .call(.write), .call(.pwrite): unsynced.insert(choice.object)
        case .call(.fsync):
          unsynced.remove(choice.object)
          if step.path == folder { renamed = [] }
        case .call(.rename):
          let isUnsynced = unsynced.remove(choice.other) != nil
          guard step.path == value else {
            if isUnsynced { unsynced.insert(choice.object) }
            continue
          }
          if isUnsynced { return "unsynced: process \(process) published before its sync" }
          renamed.insert(process)
        case .end where renamed.contains(process):
          return "unsynced: process \(process) returned before the sync of '\(folder)'"
        default: break
        }
      }
      return nil
    }

    /// Whether a step can be one of those above: most are not, and their texts take long.
    private static func matters(_ choice: Turnstile.Choice) -> Bool {
      switch choice.access {
      case .readsName, .readsFile, .readsListing: false
      default: true
      }
    }
  }
#endif
