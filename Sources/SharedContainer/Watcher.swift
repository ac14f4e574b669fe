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
  package static let shared = Watcher()

  /// What a listener is told.
  package enum Signal: Sendable, Equatable {
    /// Names in the directory that something happened to; those that are UTF-8.
    case changed([String])
    /// Something may have happened to any name.
    case lookAgain
    /// The directory is no longer there. Nothing more will come.
    case gone
  }

  struct State {
    var instance: InotifyInstance?
    var watches: [CInt: [Watch]] = [:]
    var polled: [Watch] = []
    var nextPoll = Instant.distantFuture
    var nextUpgrade: Instant?
    /// There as long as anybody listens.
    var crew: WatcherCrew?
  }

  final class InotifyInstance: Sendable {
    let inotify: Inotify
    init() throws(Errno) { inotify = try Inotify() }
  }

  let state = Monitor(State())
  let rescans = Atomic<Int>(0)

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
  /// The handler must not wait for anything: it holds up all others. What takes longer it leaves to
  /// ``afterwards(_:)``.
  ///
  /// - Parameters:
  ///   - pauses: whether the listener may pause, for which the directory stays open.
  ///   - log: is told if the directory has to be polled.
  package func watch(
    _ directory: borrowing Descriptor, _ mask: InotifyMask, pauses: Bool = false,
    mutants: Mutants = [], log: LogHook = { _, _ in },
    _ handler: @escaping @Sendable (Signal) -> Void
  ) throws(Errno) -> Watch {
    let open = OpenDirectory(try directory.duplicate())
    let watch = Watch(
      mask.union([.selfDeleted, .added]), pauses ? open : nil, mutants, handler)
    let reason = try state.withLock { state throws(Errno) -> String? in
      let crew = try crew(&state)
      guard let reason = register(watch, open, crew, &state) else { return nil }
      poll(watch, open, &state)
      return reason
    }
    if let reason {
      log(
        .warning,
        "looking at a directory every \(Self.pollInterval) instead of being told: \(reason)")
    }
    return watch
  }

  /// Has a listener told to look again and again.
  private func poll(_ watch: Watch, _ directory: OpenDirectory, _ state: inout State) {
    watch.polled.withLock { $0 = directory }
    state.polled.append(watch)
    state.nextPoll = min(state.nextPoll, .now + Self.pollInterval)
    state.nextUpgrade = state.nextUpgrade ?? .now + Self.upgradeInterval
    state.crew?.wakeUp.raise()
  }

  /// Asks inotify; the reason why the listener must be polled, or nil.
  private func register(
    _ watch: Watch, _ directory: OpenDirectory, _ crew: WatcherCrew, _ state: inout State
  ) -> String? {
    if let type = try? directory.descriptor.fileSystem().type,
      let name = FileSystemStatus.withoutNotices[type]
    {
      return "\(name) does not tell of all changes"
    }
    do throws(Errno) {
      if state.instance == nil {
        let instance = try InotifyInstance()
        try crew.waits.add(instance.inotify.descriptor, as: WatcherCrew.notices)
        state.instance = instance
      }
      let number = try state.instance!.inotify.watch(directory.descriptor, watch.mask)
      watch.number.store(number, ordering: .relaxed)
      state.watches[number, default: []].append(watch)
      return nil
    } catch {
      return "inotify failed: \(error)"
    }
  }

  /// Whether nothing but the end of the directory is told any more; not where others listen too.
  fileprivate func pause(_ watch: Watch) -> Bool {
    state.withLock { state in
      let number = watch.number.load(ordering: .relaxed)
      guard state.watches[number]?.count == 1, let instance = state.instance,
        let directory = watch.directory
      else { return false }
      return (try? instance.inotify.watch(directory.descriptor, .selfDeleted)) != nil
    }
  }

  fileprivate func resume(_ watch: Watch) {
    state.withLock { state in
      let number = watch.number.load(ordering: .relaxed)
      guard let directory = watch.directory, let instance = state.instance,
        state.watches[number]?.contains(where: { $0 === watch }) == true,
        (try? instance.inotify.watch(directory.descriptor, watch.mask)) == nil
      else { return }
      // It was watched before, and now it cannot be.
      state.watches[number]?.removeAll { $0 === watch }
      watch.number.store(-1, ordering: .relaxed)
      poll(watch, directory, &state)
    }
  }

  fileprivate func remove(_ watch: Watch) {
    state.withLock { state in
      state.polled.removeAll { $0 === watch }
      if state.polled.isEmpty { state.nextPoll = .distantFuture }
      let number = watch.number.load(ordering: .relaxed)
      if var others = state.watches[number] {
        others.removeAll { $0 === watch }
        state.watches[number] = others.isEmpty ? nil : others
        if others.isEmpty, number >= 0 { try? state.instance?.inotify.unwatch(number) }
      }
      guard state.watches.isEmpty, state.polled.isEmpty else { return }
      state.instance = nil
      state.crew.take()?.wakeUp.raise()
    }
  }

  // MARK: Telling

  func deliver(from instance: InotifyInstance, _ crew: WatcherCrew) {
    // What follows each other in one directory is told together.
    var names: [String] = []
    var latest: CInt?
    var gone: Set<CInt>?
    var overflowed = false
    let failure = Errno.of { () throws(Errno) in
      try instance.inotify.drain { number, mask, name in
        if mask.tellsOfOverflow {
          overflowed = true
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
      try? crew.waits.tellAgain(of: instance.inotify.descriptor, as: WatcherCrew.notices)
    }
    if let latest { tell(latest, of: instance, .changed(names)) }
    for number in gone ?? [] { tell(number, of: instance, .gone) }
    if overflowed { tellAllToLookAgain() }
  }

  private func tell(_ number: CInt, of instance: InotifyInstance, _ signal: Signal) {
    let watches = state.withLock { state -> [Watch]? in
      // Another instance has come meanwhile, and its numbers mean other directories.
      guard state.instance === instance else { return nil }
      return signal == .gone ? state.watches.removeValue(forKey: number) : state.watches[number]
    }
    for watch in watches ?? [] { watch.tell(signal) }
  }

  private func tellAllToLookAgain() {
    let all = state.withLock { $0.watches.values.flatMap { $0 } }
    for watch in all where !watch.mutants.has(.noRescanAfterOverflow) {
      rescans.add(1, ordering: .relaxed)
      watch.tell(.lookAgain)
    }
  }

  /// Tells those that inotify does not serve, and now and then asks it for them again.
  func poll(for crew: WatcherCrew) {
    let (left, polled) = state.withLock { state in
      // Several threads may have waited for the same moment.
      guard state.crew === crew, Instant.now >= state.nextPoll else {
        return ([Watch](), [Watch]())
      }
      let left = state.polled.filter(\.hasLost)
      state.polled.removeAll(where: \.hasLost)
      let polled = state.polled
      if let next = state.nextUpgrade, Instant.now >= next {
        state.nextUpgrade = Instant.now + Self.upgradeInterval
        state.polled = polled.filter { watch in
          guard let open = watch.polled.withLock({ $0 }) else { return false }
          guard register(watch, open, crew, &state) == nil else { return true }
          watch.polled.withLock { $0 = nil }
          return false
        }
      }
      state.nextPoll = state.polled.isEmpty ? .distantFuture : .now + Self.pollInterval
      return (left, polled)
    }
    rescans.add(polled.count, ordering: .relaxed)
    for watch in polled { watch.tell(.lookAgain) }
    for watch in left { watch.tell(.gone) }
  }
}

/// One listener's registration; ends when it is stopped.
package final class Watch: Sendable {
  /// The directory, for one that inotify does not serve.
  fileprivate let polled = Monitor<OpenDirectory?>(nil)
  fileprivate let mask: InotifyMask
  /// The directory, for one that may pause.
  fileprivate let directory: OpenDirectory?
  fileprivate let mutants: Mutants
  fileprivate let number = Atomic<CInt>(-1)
  private let handler: @Sendable (Watcher.Signal) -> Void
  private let gate = CallGate()

  fileprivate init(
    _ mask: InotifyMask, _ directory: OpenDirectory?, _ mutants: Mutants,
    _ handler: @escaping @Sendable (Watcher.Signal) -> Void
  ) {
    self.mask = mask
    self.directory = directory
    self.mutants = mutants
    self.handler = handler
  }

  /// Whether the directory that is polled is no longer there.
  fileprivate var hasLost: Bool {
    polled.withLock { open in (try? open?.descriptor.status().links) == 0 }
  }

  /// Whether it looks again and again, because inotify cannot serve it.
  package var isPolling: Bool { number.load(ordering: .relaxed) < 0 }

  /// Ends it.
  ///
  /// Once this has returned, the handler is not called again; a call under way on another
  /// thread is waited for.
  package func stop() {
    gate.close()
    Watcher.shared.remove(self)
    gate.drain()
  }

  /// Has nothing told any more but that the directory is gone, for a listener that will look of its
  /// own accord before it resumes; false if that cannot be.
  ///
  /// Each notice wakes a thread, and the one who makes the change pays for that too.
  package func pause() -> Bool { Watcher.shared.pause(self) }

  /// Has everything told again; what happened meanwhile is not: look once this has returned.
  package func resume() { Watcher.shared.resume(self) }

  fileprivate func tell(_ signal: Watcher.Signal) { gate.call { handler(signal) } }
}

extension FileSystemStatus {
  /// File systems that change without this kernel's doing, or do not tell inotify of it.
  static let withoutNotices: [UInt32: String] = [
    0x6969: "NFS", 0x6573_5546: "FUSE", 0x0102_1997: "9P", 0xFF53_4D42: "CIFS",
    0xFE53_4D42: "SMB", 0x517B: "SMB", 0x00C3_6400: "Ceph", 0x5346_414F: "AFS",
    0x0BD0_0BD0: "Lustre", 0x7375_7245: "Coda",
  ]
}
