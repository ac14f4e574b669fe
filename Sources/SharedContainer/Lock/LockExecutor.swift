internal import Syscalls

/// How a lock is waited for, and for how long it may be kept.
package struct LockPolicy: Sendable {
  /// How long the mark of the one who is waited for may stand still before it is superseded; nil:
  /// never.
  package var lease: Duration?
  /// For how long the mark of a running holder is renewed; nil: as long as it holds.
  package var cap: Duration?
  /// Whether ``LockExecutor/wasHereLast`` is to be found out.
  var asksWhoWasLast = false

  package init(lease: Duration?, cap: Duration?) {
    self.lease = lease
    self.cap = cap
  }
}

/// Carries out what ``LockMachine`` decides, on one slot, for the thread whose turn it is.
struct LockExecutor {
  let slot: Slot
  let policy: LockPolicy
  let patience: Patience
  /// What the caller does, for errors.
  var operation: String { object.isEmpty ? verb : "\(verb) \(object)" }
  private let verb: String
  private let object: String
  let state: LockState
  private var tenure: Int?
  private var restarts = 0
  /// Nobody else has had the lock since this process had it.
  private(set) var wasHereLast = false
  /// Set when the tenure ends: its marks were no longer renewed, because it took too long.
  private var wasCapped = false
  /// The first thing that went wrong; what tidying up meets afterwards is not told.
  private(set) var failure: WormholeError?

  private var environment: Environment { slot.container.options.environment }
  var staging: OpenDirectory { state.staging! }
  var directory: SlotDirectory { state.directory! }

  /// - Parameter object: what the operation is done to, where its words do not say so.
  init(
    _ slot: Slot, _ policy: LockPolicy, _ patience: Patience, _ operation: String,
    _ object: String = ""
  ) {
    self.slot = slot
    self.policy = policy
    self.patience = patience
    verb = operation
    self.object = object
    state = slot.lockState
  }

  /// Goes on from an event to where the caller is needed: `run`, `commit` or `finish`.
  mutating func advance(_ event: LockMachine.Event) -> LockMachine.Action {
    var event = event
    while true {
      let action = state.machine.next(
        event, fence: !Mutants.has(.noFence), removal: !Mutants.has(.noRemoval))
      switch action {
      case .run, .commit, .finish: return action
      default:
        do throws(Errno) {
          event = try perform(action)
        } catch {
          if error == .noSuchFile, beginAnewIfRemoved() {
            event = .begin
            continue
          }
          fail(WormholeError(error, operation, slot.name, in: slot.container, slot.locksPath))
          event = .failed
        }
      }
    }
  }

  /// Lets the next tenure look for its staging directory anew: this one is gone, whether another
  /// generation removed it or somebody's hand.
  func forgetStaging() { state.staging = nil }

  /// How often a change begins again because what it went by has gone: others may be removing it
  /// again and again, and each time somebody makes it anew.
  private static let restartLimit = 100

  /// How many lower generations are removed again at each new one.
  private static let lookBack = 16

  /// Somebody may have removed the slot's directory, or `lock/` in it: then all that is open here
  /// leads nowhere, and it begins again with a new one.
  mutating func beginAnewIfRemoved() -> Bool {
    guard let directory = state.directory, restarts < Self.restartLimit else { return false }
    // One that could not be opened was removed before, or has been since.
    guard directory.isStale || state.locks?.isStale ?? true else { return false }
    beginAnew()
    return true
  }

  private mutating func beginAnew() {
    restarts += 1
    endTenure()
    try? state.file?.unlock()
    slot.forgetDirectory()
    state.close()
  }

  /// Begins again if somebody has moved the slot's directory away, or `lock/` in it.
  ///
  /// What is locked then is not what others lock, and what is committed nobody finds.
  ///
  /// Not to be asked while the value that this process has committed last is known to have the
  /// name: whoever has the name's lock would have put another there.
  mutating func beginAnewIfMoved() -> Bool {
    guard restarts < Self.restartLimit, let own = identityOfLocks() else { return false }
    let named = try? directory.parent.descriptor.status(of: slot.escaped + "/lock")
    if let named, FileIdentity(named) == own { return false }
    beginAnew()
    return true
  }

  private func identityOfLocks() -> FileIdentity? {
    if state.identity == nil {
      state.identity = (try? state.locks?.descriptor.status()).map(FileIdentity.init)
    }
    return state.identity
  }

  /// What stands under the slot's name, where that is known without reading it.
  func known() -> FoundFile? {
    guard let committed = state.committed else { return nil }
    if Mutants.has(.trustOpenFile) { return committed.content }
    // By way of the slot's own name, which may be another directory's by now.
    let found = committed.found(as: slot.valuePath, in: directory.parent.descriptor)
    // Others have replaced it, and its space is theirs.
    if found == nil { state.committed = nil }
    return found
  }

  /// - Returns: what was kept before: closing it frees its space, which takes a while, so not
  ///   before the lock is given back.
  func keep(_ committed: CommittedFile?) -> CommittedFile? {
    defer { state.committed = committed }
    return state.committed
  }

  mutating func fail(_ error: WormholeError) {
    if failure == nil { failure = error }
  }

  private mutating func perform(_ action: LockMachine.Action) throws(Errno) -> LockMachine.Event {
    switch action {
    case .find(let lowest): return try find(from: lowest)
    case .tryLock(let generation): return try tryLock(generation)
    case .wait(let generation): return try wait(generation)
    case .make(let generation): return try make(generation)
    case .openStaging(let generation): return try openStaging(generation)
    case .removeStaging(let limit): return try removeStaging(below: limit)
    case .look(let generation): return try look(for: generation)
    case .mark: return try leaveMark()
    case .unlock: return unlock()
    case .run, .commit, .finish: preconditionFailure("\(action) is the caller's")
    }
  }

  // MARK: The steps

  private mutating func find(from lowest: Int) throws(Errno) -> LockMachine.Event {
    if state.directory == nil || state.locks == nil { try openLocks() }
    // On the way up again after a known generation, the look after locking finds the next one.
    if let file = state.file, file.number == lowest { return .found(lowest) }
    var highest = lowest
    while try isThere(highest + 1) { highest += 1 }
    return .found(highest)
  }

  /// Whether there is a next generation.
  ///
  /// Somebody may have removed its lock file by hand, and its holder goes on all the same. So who
  /// has opened a staging directory, perhaps made it, looks once for those of all higher ones, too.
  /// A holder makes its own before it removes the lower ones: it is seen here, or the one that was
  /// opened is dead.
  private func look(for generation: Int) throws(Errno) -> LockMachine.Event {
    // Made a moment ago, and another one of that name had been removed just before.
    if state.hasPredecessor {
      state.hasPredecessor = false
      return .newer
    }
    if try isThere(generation) { return .newer }
    guard !state.hasLookedForAll else { return .newest }
    guard try highest() < generation, try isNamed() else { return .newer }
    state.hasLookedForAll = true
    return .newest
  }

  /// Whether the lock file that this process holds still has its name.
  private func isNamed() throws(Errno) -> Bool {
    guard let file = state.file else { return false }
    do throws(Errno) {
      let named = try state.locks!.descriptor.status(of: "\(file.number)")
      return named.isSameFile(as: try file.file.status())
    } catch {
      if error == .noSuchFile { return false }
      throw error
    }
  }

  /// The highest generation that has left a name in `lock/`.
  private func highest() throws(Errno) -> Int {
    try state.locks!.descriptor.names().compactMap(Slot.generation).max() ?? 0
  }

  private mutating func openLocks() throws(Errno) {
    let directory = try slot.openDirectory(making: true)
    state.directory = directory
    do throws(Errno) {
      state.locks = try openLocks(in: directory)
    } catch {
      guard error == .noSuchFile else { throw error }
      guard !directory.isStale else {
        slot.forgetDirectory()
        throw error
      }
      try SlotDirectory.makeLocks(in: directory.descriptor, slot.container)
      state.locks = try openLocks(in: directory)
    }
  }

  private func openLocks(in directory: SlotDirectory) throws(Errno) -> OpenDirectory {
    OpenDirectory(
      try slot.container.options.sharing.openExisting("lock", in: directory.descriptor))
  }

  func isThere(_ generation: Int) throws(Errno) -> Bool {
    do throws(Errno) {
      _ = try state.locks!.descriptor.status(of: "\(generation)")
      return true
    } catch {
      if error == .noSuchFile { return false }
      throw error
    }
  }

  private mutating func tryLock(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if state.file?.number != generation {
      state.file = nil
      do throws(Errno) {
        let file = try checked(try openLockFile("\(generation)"))
        state.file = LockFile(number: generation, file: file)
      } catch {
        guard error == .noSuchFile, state.locks?.isStale == false else { throw error }
        let highest = try highest()
        if highest > generation { return .found(highest) }
        // Somebody has removed it, and others may hold it still. One of the same name would be
        // another lock; a next generation is what they look for.
        slot.container.log(
          .warning, "the lock of \(slot.title) '\(slot.name)' was removed; it is made anew",
          about: slot.logSubject)
        return .stoodStill
      }
    }
    let file = state.file!
    try state.stint.stepAside(file.file, state.mark, until: patience.deadline)
    guard try file.tryLock() else { return .contended }
    state.stint.goOn()
    return .locked
  }

  /// A copy of this process must not have it: it would keep the lock of one that has died.
  private func openLockFile(_ name: String) throws(Errno) -> Descriptor {
    try state.locks!.descriptor.open(
      name, [.readWrite, .nonBlocking], isGuarded: !Mutants.has(.noForkGuard))
  }

  private func checked(_ file: consuming Descriptor) throws(Errno) -> Descriptor {
    let status = try file.status()
    // A mark is written into it: a link to some other file must not pass for a lock.
    guard status.kind == .regular, status.size <= WaiterSign.end else { throw .noDevice }
    return file
  }

  private mutating func make(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if Mutants.has(.stealWithoutGeneration) { return .locked }
    let locks = state.locks!
    // Of one whose lock file was removed by hand, the directory is left.
    if try highest() >= generation { return .existed }
    state.hasPredecessor = false
    do throws(Errno) {
      let file = try slot.container.withNewLockFile { name, file throws(Errno) in
        try slot.container.staging.directory().descriptor.link(
          name, to: locks.descriptor, "\(generation)")
        state.hasPredecessor = (try? locks.descriptor.status(of: "\(generation).d")) != nil
        return try file.duplicate()
      }
      let before = holder()
      slot.container.count { $0.takeovers += 1 }
      slot.container.log(
        .warning,
        "took over the lock of \(slot.title) '\(slot.name)' as generation \(generation)"
          + (before.map { " from \($0)" } ?? ""), about: slot.logSubject)
      // Through FUSE and NFS the name may lead to another file, of which nobody has the lock yet.
      guard isSameFileThroughLinks else {
        try? file.unlock()
        return .existed
      }
      state.file = LockFile(number: generation, file: file)
      state.stint.begin()
      return .made
    } catch {
      if error == .fileExists { return .existed }
      throw error
    }
  }

  /// Whether a lock on a file is seen through all of its names.
  private var isSameFileThroughLinks: Bool {
    !state.locks!.descriptor.isRelayed
  }

  private mutating func openStaging(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if state.staging != nil, state.stagingGeneration == generation { return .opened }
    let open = OpenDirectory(
      try slot.container.staging.ensureDirectory(
        "\(generation).d", in: state.locks!.descriptor))
    state.staging = open
    state.stagingGeneration = generation
    state.hasLookedForAll = false
    return .opened
  }

  /// By number and not by listing: a listing taken while others make and remove may miss a name.
  ///
  /// Those that were removed before are removed once more, as far as that costs next to nothing:
  /// whoever missed a generation that somebody's hand took away goes by a lower one, and makes its
  /// directory anew.
  private mutating func removeStaging(below limit: Int) throws(Errno) -> LockMachine.Event {
    let lowest = max(1, state.machine.removedBelow - Self.lookBack)
    for generation in stride(from: limit - 1, through: lowest, by: -1) {
      try removeStaging("\(generation).d")
    }
    return .removed
  }

  /// Removes the directory of a superseded generation, or gives up: as long as it is there, its
  /// holder could still commit.
  private mutating func removeStaging(_ name: String) throws(Errno) {
    var tries = 0
    while true {
      do throws(Errno) {
        return try slot.container.staging.clear(away: name, in: state.locks!.descriptor)
      } catch {
        guard [.directoryNotEmpty, .busy].contains(error) else { throw error }
        // A superseded holder that has not noticed yet may stage once more meanwhile.
        tries += 1
        guard tries >= 100 || patience.hasEnded(at: environment.now()) else { continue }
        let place = (try? state.locks!.descriptor.fileSystem()).map { " (\($0.name))" } ?? ""
        fail(
          WormholeError(
            .system, operation, slot.name,
            because: "its lock was taken over, but '\(slot.path)/lock/\(name)' of the holder that "
              + "stood still cannot be removed from this file system\(place): \(error)",
            hint: "end that process, or keep the container on a local file system", errno: error))
        throw error
      }
    }
  }

  private mutating func leaveMark() throws(Errno) -> LockMachine.Event {
    if policy.asksWhoWasLast {
      wasHereLast = false
      // One that was renewed is taken for somebody else's.
      if let mark = state.mark { wasHereLast = try HolderMark(in: state.file!.file) == mark }
    }
    var mark = state.mark ?? HolderMark(of: .current)
    if !mark.isWhole { mark = HolderMark(of: .current) }
    mark.begin()
    state.mark = mark
    try mark.write(to: state.file!.file)
    tenure = try slot.container.leases.begin(
      mark, in: state.file!.file, lease: slot.container.options.shownLease, cap: policy.cap,
      at: environment.now())
    return .marked
  }

  private mutating func unlock() -> LockMachine.Event {
    endTenure()
    do throws(Errno) {
      if let file = state.file, !Mutants.has(.noSteppingAside) {
        state.stint.pause(file.file)
      }
      try state.file?.unlock()
    } catch {
      state.file = nil  // Closing gives it back too.
    }
    return .unlocked
  }

  /// Stops the renewal; true if it had stopped by itself.
  @discardableResult
  mutating func endTenure() -> Bool {
    if let tenure { wasCapped = slot.container.leases.end(tenure) }
    tenure = nil
    return wasCapped
  }

  /// Whether there is a next generation already.
  func isSuperseded() throws(WormholeError) -> Bool {
    do throws(Errno) {
      return try isThere(state.machine.generation + 1)
    } catch {
      throw WormholeError(error, operation, slot.name)
    }
  }

  /// What the holder's mark says of it.
  func holder() -> LockHolder? {
    guard let file = state.file else { return nil }
    return (try? HolderMark(in: file.file)).flatMap(LockHolder.init)
  }
}
