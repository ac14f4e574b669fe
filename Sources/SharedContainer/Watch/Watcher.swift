internal import Synchronization
package import Syscalls

/// Notice of what happens in directories, for the whole process: one inotify instance, of which a
/// machine allows a user few, and a few threads that wait for it together.
///
/// Notices are hints, the directory is the truth. A listener registers, *then* looks, and looks
/// again at every signal; so nothing that changes after its first look stays unseen, though one
/// signal may stand for many changes, and one may come for none.
///
/// Where inotify cannot serve, the listener is told to look again every tenth of a second instead:
/// when the kernel is out of instances or watches, and on file systems that other machines change,
/// or that do not tell (NFS, FUSE and the like).
///
/// The thread that has heard of a change can go on with it, through ``afterwards(_:)``: to wake
/// another one for that would take longer than to read the file. Meanwhile another one waits.
package final class Watcher: Sendable {
  private static let one = OneForEachProcess { Watcher() }
  package static var shared: Watcher { one.current }

  /// What whoever listens is told.
  package enum Signal: Sendable, Equatable {
    /// Names in the directory that something happened to; those that are UTF-8.
    case changed([String])
    /// Something may have happened to any name.
    case lookAgain
    /// Another directory has the name now, or one has that had gone; for whoever watches a name.
    case replaced
    /// The directory is no longer there. Nothing more will come, but to whoever watches a name.
    case gone

    /// How many names are kept for whoever does not look: as many as the kernel keeps itself.
    package static let most = 1 << 14

    /// Takes in what came later, for whoever has not looked yet.
    package mutating func add(_ later: Signal) {
      guard case .changed(var names) = self, case .changed(let others) = later,
        names.count + others.count <= Self.most
      else {
        self = .lookAgain
        return
      }
      self = .changed([])  // Or the names would be copied.
      names += others
      self = .changed(names)
    }
  }

  struct State {
    var instance: Inotify?
    var watches: [CInt: [Watch]] = [:]
    var polled: [ObjectIdentifier: Watch] = [:]
    var nextPoll = Instant.distantFuture
    var nextUpgrade: Instant?
    /// Those that are told by inotify now, and are to look once more.
    var upgraded: Set<ObjectIdentifier> = []
    var calls = WatcherCalls()
    /// There as long as anybody listens, or asks inotify.
    var crew: WatcherCrew?
  }

  let state = Monitor(State())
  let rescans = Atomic<Int>(0)
  fileprivate let owner = ProcessCopy.current

  /// How long a listener that is polled waits from look to look.
  static let pollInterval = Duration.milliseconds(100)
  /// How long until inotify is tried again for those that are polled.
  static let upgradeInterval = Duration.seconds(5)

  private init() {}

  /// How often any listener was told to look again without a notice of what had changed.
  package var rescanCount: Int { rescans.load(ordering: .relaxed) }

  /// Calls the handler, on a thread of the watcher's, when something of the kind happens in the
  /// directory.
  ///
  /// The handler must not wait for anything, and not for the file system either: it holds up all
  /// others. What takes longer it leaves to ``afterwards(_:)``.
  ///
  /// - Parameters:
  ///   - keeping: the directory, for a listener that may pause, or that would not come back to try
  ///     again should the directory have to be polled. It stays open.
  ///   - polled: is called with the reason if the directory has to be polled.
  package func watch(
    _ directory: borrowing Descriptor, _ mask: InotifyMask, keeping: OpenDirectory? = nil,
    polled: (String) -> Void = { _ in },
    _ handler: @escaping @Sendable (Signal) -> Void
  ) throws(Errno) -> Watch {
    // Asked before the lock is taken: a file system may not answer.
    let silence = Self.whyNotTold(of: directory)
    let watch = Watch(
      mask.union([.selfDeleted, .added]), keeping, canBeTold: silence == nil, self,
      handler)
    try state.withLock { state throws(Errno) in
      _ = try crew(&state)
      if silence == nil { state.calls.beginRegistering() } else { poll(watch, &state) }
    }
    let reason = silence ?? register(watch, directory)
    if let reason { polled(reason) }
    return watch
  }

  /// Has the handler told to look again and again.
  func poll(_ handler: @escaping @Sendable (Signal) -> Void) -> Watch {
    let watch = Watch([], nil, canBeTold: false, self, handler)
    state.withLock { state in
      // Without a thread there is nobody to tell, and the next listener brings one.
      state.crew = try? crew(&state)
      poll(watch, &state)
    }
    return watch
  }

  /// Has a listener told to look again and again.
  func poll(_ watch: Watch, _ state: inout State) {
    state.polled[ObjectIdentifier(watch)] = watch
    state.nextPoll = min(state.nextPoll, .now + Self.pollInterval)
    state.nextUpgrade = state.nextUpgrade ?? .now + Self.upgradeInterval
    state.crew?.wakeUp.raise()
  }

  private static func whyNotTold(of directory: borrowing Descriptor) -> String? {
    let type = try? directory.fileSystem().type
    let name = type.flatMap { FileSystemStatus.withoutNotices[$0] }
    return name.map { "\($0) does not tell of all changes" }
  }

  fileprivate func remove(_ watch: Watch) {
    state.withLock { state in
      state.polled[ObjectIdentifier(watch)] = nil
      state.upgraded.remove(ObjectIdentifier(watch))
      if state.polled.isEmpty { state.nextPoll = .distantFuture }
      let number = watch.number.load(ordering: .relaxed)
      if var others = state.watches[number] {
        others.removeAll { $0 === watch }
        state.watches[number] = others.isEmpty ? nil : others
        if others.isEmpty, number >= 0 { state.forget(number) }
      }
      state.restIfUnused()
    }
  }

  // MARK: Telling

  func deliver(from instance: Inotify, _ crew: WatcherCrew) {
    // What follows each other in one directory is told together.
    var names: [String] = []
    var latest: CInt?
    var gone: Set<CInt>?
    let failure = Errno.of { () throws(Errno) in
      try instance.drain { number, mask, name in
        if mask.tellsOfOverflow {
          // What comes after it is told after it: whoever goes by the order of names has to know
          // before that some are missing.
          if let latest { tell(latest, of: instance, .changed(names)) }
          (latest, names) = (nil, [])
          tellAllToLookAgain()
        } else if mask.tellsOfEnd {
          gone = (gone ?? []).union([number])
        } else {
          if let latest, latest != number {
            tell(latest, of: instance, .changed(names))
            names = []
          }
          latest = number
          if let name = name.flatMap({ String(validatingCString: $0) }) { names.append(name) }
        }
      }
    }
    // What could not be read is there still, and would not be told of again.
    if failure != nil {
      try? crew.waits.tellAgain(of: instance.descriptor, as: WatcherCrew.notices)
    }
    if let latest { tell(latest, of: instance, .changed(names)) }
    for number in gone ?? [] { tell(number, of: instance, .gone) }
  }

  private func tell(_ number: CInt, of instance: Inotify, _ signal: Signal) {
    let (watches, upgraded) = state.withLock { state -> ([Watch], Set<ObjectIdentifier>) in
      // Another instance has come meanwhile, and its numbers mean other directories.
      guard state.instance === instance else { return ([], []) }
      guard signal == .gone else { return (state.watches[number] ?? [], state.upgraded) }
      state.calls.hear(endOf: number)
      return (state.watches.removeValue(forKey: number) ?? [], [])
    }
    for watch in watches {
      // One that has not looked since it was polled does not know what came before these names.
      watch.tell(upgraded.contains(ObjectIdentifier(watch)) ? .lookAgain : signal)
    }
  }

  private func tellAllToLookAgain() {
    if Mutants.has(.noRescanAfterOverflow) { return }
    let all = state.withLock { $0.watches.values.flatMap { $0 } }
    for watch in all {
      rescans.add(1, ordering: .relaxed)
      watch.tell(.lookAgain)
    }
  }

  /// Tells those that inotify does not serve, and now and then asks it for them again.
  func poll(for crew: WatcherCrew) {
    let (polled, isUpgradeDue) = state.withLock { state -> ([Watch], Bool) in
      // Several threads may have waited for the same moment.
      guard state.crew === crew, Instant.now >= state.nextPoll else { return ([], false) }
      state.nextPoll = state.polled.isEmpty ? .distantFuture : .now + Self.pollInterval
      let isUpgradeDue = state.nextUpgrade.map { Instant.now >= $0 } ?? false
      if isUpgradeDue { state.nextUpgrade = .now + Self.upgradeInterval }
      let polled = Array(state.polled.values)
      // Told once more, of what came before they were registered.
      for watch in state.upgraded { state.polled[watch] = nil }
      state.upgraded = []
      return (polled, isUpgradeDue)
    }
    rescans.add(polled.count, ordering: .relaxed)
    for watch in polled { watch.tell(.lookAgain) }
    if isUpgradeDue { upgrade(polled, crew) }
  }
}

/// One listener's registration; ends when it is stopped.
package final class Watch: Sendable {
  let mask: InotifyMask
  /// The directory, for one that may pause or is to be asked for again.
  let directory: OpenDirectory?
  /// Whether inotify may serve it some day, should it not do so now.
  let canBeTold: Bool
  /// The process's, to which it belongs.
  fileprivate let watcher: Watcher
  let number = Atomic<CInt>(-1)
  private let handler: @Sendable (Watcher.Signal) -> Void

  fileprivate init(
    _ mask: InotifyMask, _ directory: OpenDirectory?, canBeTold: Bool,
    _ watcher: Watcher, _ handler: @escaping @Sendable (Watcher.Signal) -> Void
  ) {
    self.mask = mask
    self.directory = directory
    self.canBeTold = canBeTold
    self.watcher = watcher
    self.handler = handler
  }

  /// Whether it looks again and again, because inotify cannot serve it.
  package var isPolling: Bool { number.load(ordering: .relaxed) < 0 }

  /// Ends it.
  ///
  /// A call may be under way on another thread: whoever must not be called any more keeps a
  /// ``CallGate``.
  package func stop() {
    // In a copy of the process it has ended already, and what is left of it is not to be touched.
    guard watcher.owner.isCurrent else { return }
    watcher.remove(self)
  }

  /// Has nothing told any more but that the directory is gone, for a listener that will look of its
  /// own accord before it resumes; false if that cannot be.
  ///
  /// Each notice wakes a thread, and the one who makes the change pays for that too.
  package func pause() -> Bool { watcher.pause(self) }

  /// Has everything told again; what happened meanwhile is not: look once this has returned.
  package func resume() { watcher.resume(self) }

  func tell(_ signal: Watcher.Signal) { handler(signal) }
}

extension Descriptor {
  /// Whether names, links and locks are another program's or machine's, which may have ways of its
  /// own; so it is taken where nobody can tell.
  var isRelayed: Bool {
    (try? fileSystem()).map { FileSystemStatus.withoutNotices[$0.type] != nil } ?? true
  }
}

extension FileSystemStatus {
  /// File systems that change without this kernel's doing, or do not tell inotify of it.
  static let withoutNotices: [UInt32: String] = [
    0x6969: "NFS", 0x6573_5546: "FUSE", 0x0102_1997: "9P", 0xFF53_4D42: "CIFS",
    0xFE53_4D42: "SMB", 0x517B: "SMB", 0x00C3_6400: "Ceph", 0x5346_414F: "AFS",
    0x0BD0_0BD0: "Lustre", 0x7375_7245: "Coda",
  ]
}
