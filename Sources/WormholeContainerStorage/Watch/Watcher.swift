internal import Synchronization
package import WormholeSyscalls

/// Notices of changes in directories, for the whole process: a single inotify instance, because a
/// user may have only a few, and a few threads with a common wait set.
///
/// Notices are hints, the directory is the truth. A listener registers, *then* reads, and reads
/// again at every signal. So every change after the first read is seen, although one signal may
/// stand for many changes, or for none.
///
/// If inotify is not available, the watcher makes the listener check every tenth of a second
/// instead: when the kernel is out of instances or watches, and on file systems that other machines
/// change, or that do not report changes (NFS, FUSE and the like).
///
/// The thread that receives the notice of a change can handle the change too, through
/// ``afterwards(_:)``: waking another thread would take longer than reading the file. In the
/// meantime another thread waits.
package final class Watcher: Sendable {
  private static let one = OneForEachProcess { Watcher() }
  package static var shared: Watcher { one.current }

  struct State {
    var instance: Inotify?
    var watches = SmallDictionary<CInt, [DirectoryWatch]>()
    var polled: [ObjectIdentifier: DirectoryWatch] = [:]
    var nextPoll = Instant.distantFuture
    var nextUpgrade: Instant?
    /// Listeners that inotify serves from now on; a last check is due.
    var upgraded: Set<ObjectIdentifier> = []
    var calls = WatcherCalls()
    /// Exists as long as there is a listener, or a call to inotify.
    var crew: WatcherCrew?
  }

  let state = Monitor(State())
  let rescans = Atomic<Int>(0)
  fileprivate let owner = ProcessCopy.current

  /// The interval between the checks of a polled listener.
  static let pollInterval = Duration.milliseconds(100)
  /// The time until inotify is tried again for polled listeners.
  static let upgradeInterval = Duration.seconds(5)

  /// For ``shared``, and for a test that needs all threads of a watcher.
  init() {}

  /// The number of signals to check again without a notice of a change.
  package var rescanCount: Int { rescans.load(ordering: .relaxed) }

  /// Calls the handler, on a thread of the watcher, when an event of the mask happens in the
  /// directory.
  ///
  /// The handler must not wait, not even for the file system: it delays all other listeners. Longer
  /// tasks belong into ``afterwards(_:)``.
  ///
  /// - Parameters:
  ///   - keeping: the directory, for a listener that may pause, or that would not retry on its own
  ///     should the directory have to be polled. It stays open.
  ///   - polled: called with the reason if the directory has to be polled.
  package func watch(
    _ directory: borrowing Descriptor, _ mask: InotifyMask, keeping: OpenDirectory? = nil,
    polled: (String) -> Void = { _ in },
    _ handler: @escaping @Sendable (WatchSignal) -> Void
  ) throws(Errno) -> DirectoryWatch {
    // Checked before the lock is taken: the file system may not respond.
    let silence = Self.whyNotTold(of: directory)
    let watch = DirectoryWatch(
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

  /// Makes the handler check periodically.
  func poll(_ handler: @escaping @Sendable (WatchSignal) -> Void) -> DirectoryWatch {
    let watch = DirectoryWatch([], nil, canBeTold: false, self, handler)
    state.withLock { state in
      // Without a thread the listener gets no call, until the next listener starts a thread.
      state.crew = try? crew(&state)
      poll(watch, &state)
    }
    return watch
  }

  /// Makes a listener check periodically.
  func poll(_ watch: DirectoryWatch, _ state: inout State) {
    state.polled[ObjectIdentifier(watch)] = watch
    // A listener that could not resume may be here again before its last check.
    state.upgraded.remove(ObjectIdentifier(watch))
    state.nextPoll = min(state.nextPoll, .now + Self.pollInterval)
    state.nextUpgrade = state.nextUpgrade ?? .now + Self.upgradeInterval
    state.crew?.wakeUp.raise()
  }

  private static func whyNotTold(of directory: borrowing Descriptor) -> String? {
    let type = try? directory.fileSystem().type
    let name = type.flatMap(FileSystemStatus.nameWithoutNotices)
    return name.map { "\($0) does not report all changes" }
  }

  fileprivate func remove(_ watch: DirectoryWatch) {
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

  // MARK: Notifying

  func deliver(from instance: Inotify, _ crew: WatcherCrew) {
    // Consecutive notices of one directory are combined.
    var names: [String] = []
    var latest: CInt?
    var gone: Set<CInt>?
    let failure = Errno.of { () throws(Errno) in
      try instance.drain { number, mask, name in
        if mask.tellsOfOverflow {
          // Later notices are passed on after the overflow: a listener that relies on the order of
          // names must know first that some names are missing.
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
    // Unread notices are still there, and the kernel would not report them again.
    if failure != nil {
      try? crew.waits.tellAgain(of: instance.descriptor, as: WatcherCrew.notices)
    }
    if let latest { tell(latest, of: instance, .changed(names)) }
    for number in gone ?? [] { tell(number, of: instance, .gone) }
  }

  private func tell(_ number: CInt, of instance: Inotify, _ signal: WatchSignal) {
    let (watches, upgraded) = state.withLock { state -> ([DirectoryWatch], Set<ObjectIdentifier>) in
      // Another instance has replaced this one, and its numbers mean different directories.
      guard state.instance === instance else { return ([], []) }
      guard signal == .gone else { return (state.watches[number] ?? [], state.upgraded) }
      state.calls.hear(endOf: number)
      return (state.watches.removeValue(forKey: number) ?? [], [])
    }
    for watch in watches {
      // A listener that was polled and has not checked since does not know the names before these.
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

  /// Signals polled listeners, and occasionally tries inotify for them again.
  func poll(for crew: WatcherCrew) {
    let (polled, isUpgradeDue) = state.withLock { state -> ([DirectoryWatch], Bool) in
      // Several threads may have waited for the same moment.
      guard state.crew === crew, Instant.now >= state.nextPoll else { return ([], false) }
      state.nextPoll = state.polled.isEmpty ? .distantFuture : .now + Self.pollInterval
      let isUpgradeDue = state.nextUpgrade.map { Instant.now >= $0 } ?? false
      if isUpgradeDue { state.nextUpgrade = .now + Self.upgradeInterval }
      let polled = Array(state.polled.values)
      // Signalled once more, for changes before their registration.
      for watch in state.upgraded { state.polled[watch] = nil }
      state.upgraded = []
      return (polled, isUpgradeDue)
    }
    rescans.add(polled.count, ordering: .relaxed)
    for watch in polled { watch.tell(.lookAgain) }
    if isUpgradeDue { upgrade(polled, crew) }
  }
}

/// A listener's registration; ends with ``stop()``.
package final class DirectoryWatch: NoticeSource {
  let mask: InotifyMask
  /// The directory, for a listener that may pause or be registered again.
  let directory: OpenDirectory?
  /// Whether inotify may serve the listener later, if not now.
  let canBeTold: Bool
  /// The watcher of the process that made the registration.
  fileprivate let watcher: Watcher
  let number = Atomic<CInt>(-1)
  private let handler: @Sendable (WatchSignal) -> Void

  fileprivate init(
    _ mask: InotifyMask, _ directory: OpenDirectory?, canBeTold: Bool,
    _ watcher: Watcher, _ handler: @escaping @Sendable (WatchSignal) -> Void
  ) {
    self.mask = mask
    self.directory = directory
    self.canBeTold = canBeTold
    self.watcher = watcher
    self.handler = handler
  }

  /// Whether the listener is polled, because inotify cannot serve it.
  package var isPolling: Bool { number.load(ordering: .relaxed) < 0 }

  /// Makes a call as the handler is called: without a gate.
  package func call(_ body: () -> Void) { body() }

  /// Ends the registration.
  ///
  /// A call may be in progress on another thread: a listener that must not be called afterwards
  /// uses a ``CallGate``.
  package func stop() {
    // In a forked child the registration has ended already, and its state must not be used.
    guard watcher.owner.isCurrent else { return }
    watcher.remove(self)
  }

  /// Stops all notices but that of the directory's end, for a listener that reads the directory
  /// before it resumes; false if pausing is not possible.
  ///
  /// Each notice wakes a thread, and the process that makes the change pays for that too.
  package func pause() -> Bool { watcher.pause(self) }

  /// Resumes all notices.
  ///
  /// Changes during the pause are not reported: read the directory after this call.
  package func resume() { watcher.resume(self) }

  func tell(_ signal: WatchSignal) { handler(signal) }
}

extension Descriptor {
  /// Whether another program or machine handles names, links and locks, possibly with different
  /// semantics; true also if this cannot be determined.
  var isRelayed: Bool {
    (try? fileSystem()).map { FileSystemStatus.nameWithoutNotices($0.type) != nil } ?? true
  }
}

extension FileSystemStatus {
  /// The name of a file system that changes without this kernel, or does not report changes to
  /// inotify; nil for any other.
  ///
  /// Each command asks once, as it opens a container: a dictionary would have to be built for it.
  static func nameWithoutNotices(_ type: UInt32) -> String? {
    switch type {
    case 0x6969: "NFS"
    case 0x6573_5546: "FUSE"
    case 0x0102_1997: "9P"
    case 0xFF53_4D42: "CIFS"
    case 0xFE53_4D42, 0x517B: "SMB"
    case 0x00C3_6400: "Ceph"
    case 0x5346_414F: "AFS"
    case 0x0BD0_0BD0: "Lustre"
    case 0x7375_7245: "Coda"
    default: nil
    }
  }
}
