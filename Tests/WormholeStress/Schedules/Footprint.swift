#if FAULT_POINTS
  import WormholeSyscalls

  /// The names and files that the threads of all rounds have used.
  ///
  /// Two calls of two threads have the same results in both orders if neither call writes an object
  /// of the other call. A preemption before a call without objects of other threads leads to the
  /// same results as a preemption before the next call. The search leaves such orders out, and runs
  /// the orders after all once another thread uses an object of the call. A write to a watched
  /// directory notifies other processes.
  ///
  /// Paths stand for files: a file with several names counts under the one of each call.
  struct Footprint {
    /// The keys of a call before which orders were left out: no other thread has a bit there.
    struct Reliance {
      let keys: [UInt64]
      let onlyReads: Bool
    }

    /// A bit for each thread that writes an object, or uses it in any way: two keys.
    private(set) var users: [UInt64: UInt32] = [:]
    let processes: Int

    init(processes: Int) { self.processes = processes }

    private static func use(of object: UInt64) -> UInt64 { object ^ 0xbf58_476d_1ce4_e5b9 }

    /// Adds the last round; returns the keys under which a thread has a bit for the first time.
    mutating func note() -> Set<UInt64> {
      var new: Set<UInt64> = []
      for number in 0..<Turnstile.stepCount {
        let choice = Turnstile.choice(at: number)
        guard choice.player >= 0 else { continue }
        for object in choice.written { add(choice.player, object, &new) }
        for object in choice.written + choice.read {
          add(choice.player, Self.use(of: object), &new)
        }
      }
      return new
    }

    /// Adds the bits of other searches; returns the keys with new bits.
    mutating func add(_ others: [UInt64: UInt32]) -> Set<UInt64> {
      var new: Set<UInt64> = []
      for (key, players) in others where users[key, default: 0] | players != users[key, default: 0]
      {
        users[key, default: 0] |= players
        new.insert(key)
      }
      return new
    }

    private mutating func add(_ player: Int, _ key: UInt64, _ new: inout Set<UInt64>) {
      let known = users[key, default: 0]
      let all = known | 1 << UInt32(player)
      guard all != known else { return }
      users[key] = all
      new.insert(key)
    }

    /// Returns the keys of a call without objects of other threads; nil for any other call.
    func reliance(_ choice: Turnstile.Choice) -> Reliance? {
      guard choice.player >= 0, choice.access != .watches else { return nil }
      let (written, read) = (choice.written, choice.read)
      guard !(written.isEmpty && read.isEmpty), written.isEmpty || !choice.isWatched else {
        return nil
      }
      let keys = written.map(Self.use) + read
      let isOwn = keys.allSatisfy { !isOther($0, than: choice.player) }
      return isOwn ? Reliance(keys: keys, onlyReads: written.isEmpty) : nil
    }

    /// Whether another thread than the given thread has a bit under the key.
    func isOther(_ key: UInt64, than player: Int) -> Bool {
      Self.isOther(users[key, default: 0], than: player, processes)
    }

    static func isOther(_ users: UInt32, than player: Int, _ processes: Int) -> Bool {
      // Another thread may have the number of a thread that has ended; of a main thread, never.
      users & ~(player < processes ? 1 << UInt32(player) : 0) != 0
    }
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
