#if FAULT_POINTS
  import WormholeSyscalls

  /// The files, notices and locks that a thread uses from one step to its next step.
  ///
  /// Two threads have the same results in both orders if neither thread changes an object of the
  /// other thread.
  /// Paths stand for files: a file with several names counts under the name of each call. Names,
  /// contents and listings of directories are different objects.
  struct Effect {
    enum Kind {
      case nothing, files, notices
      /// In conflict with every other call.
      case unknown
    }

    /// Nil if no step tells the process.
    var process: Int?
    var kind = Kind.nothing
    var written: [UInt64] = []
    var read: [UInt64] = []
    /// Whether a process of the round watches the directory.
    var isWatched = false
    var usedClock = false
    /// The locks between the threads of the process: a bit each.
    var locks: UInt64 = 0

    /// The effect of a step's call, without the locks and the clock.
    ///
    /// - Parameter countsSyncs: whether a sync is an effect: on what a power cut leaves.
    init(_ choice: Turnstile.Choice, countsSyncs: Bool) {
      process = choice.process < 0 ? nil : choice.process
      switch choice.access {
      case .syncs where countsSyncs:
        (kind, written) = (.files, [choice.object])
      case _ where choice.isLocal: break
      case .nothing: break
      case .other: kind = .unknown
      case .readsNotices: kind = .notices
      default:
        kind = .files
        (written, read, isWatched) = (choice.written, choice.read, choice.isWatched)
      }
    }

    init(process: Int?) { self.process = process }

    var onlyReads: Bool {
      switch kind {
      case .nothing, .notices: true
      case .files: written.isEmpty
      case .unknown: false
      }
    }

    /// Whether the results may depend on the order of the two effects.
    func conflicts(with other: Effect) -> Bool {
      if process == nil || process == other.process {
        // Threads of a process share its memory and its descriptors.
        if locks & other.locks != 0 { return true }
      }
      switch (kind, other.kind) {
      case (.nothing, _), (_, .nothing): return false
      case (.unknown, _), (_, .unknown): return true
      // Each process has its own notices.
      case (.notices, .notices): return process == other.process
      case (.notices, .files): return other.notifies
      case (.files, .notices): return notifies
      case (.files, .files): break
      }
      // The order of two notices is seen.
      if notifies && other.notifies { return true }
      return written.contains { other.written.contains($0) || other.read.contains($0) }
        || other.written.contains { read.contains($0) }
    }

    private var notifies: Bool { isWatched && !written.isEmpty }
  }

  extension Turnstile.Choice {
    private static func listing(_ folder: UInt64) -> UInt64 { folder ^ 0x9e37_79b9_7f4a_7c15 }

    /// The names, files and listings that the call changes.
    fileprivate var written: [UInt64] {
      switch access {
      case .writesName where other != 0:
        [object, Self.listing(folder), other, Self.listing(otherFolder)]
      case .writesName: [object, Self.listing(folder)]
      case .writesFile: [object]
      default: []
      }
    }

    /// The names, files and listings on which the result depends.
    fileprivate var read: [UInt64] {
      switch access {
      case .readsName: [object, folder]
      case .readsFile: [object]
      case .readsListing, .watches: [object, Self.listing(object)]
      case .writesName where other != 0: [folder, otherFolder]
      case .writesName: [folder]
      default: []
      }
    }
  }
#endif
