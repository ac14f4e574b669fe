internal import Synchronization
internal import WormholeSyscalls

/// Carries out the decisions of ``LockMachine``, on one slot, for the thread whose turn it is.
struct LockExecutor {
  let slot: Slot
  let policy: LockPolicy
  let patience: Patience
  /// The caller's operation, for errors.
  var operation: String { object.isEmpty ? verb : "\(verb) \(object)" }
  private let verb: String
  private let object: String
  let state: LockState
  private var tenure: Int?
  private var restarts = 0
  /// No other process has held the lock since the last tenure of this process.
  private(set) var wasHereLast = false
  /// Set when the tenure ends: the mark was no longer renewed, because the tenure took too long.
  private var wasCapped = false
  /// The first error; later errors during clean-up are not reported.
  private(set) var failure: WormholeError?

  var staging: OpenDirectory { state.staging! }
  var directory: SlotDirectory { state.directory! }

  /// - Parameter object: the object of the operation, if the operation's text does not name it.
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

  /// Continues from an event to the next action of the caller: `run`, `commit` or `finish`.
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
          fail(error)
          event = .failed
        }
      }
    }
  }

  /// Makes the next tenure open a new staging directory: the old directory is gone, removed by a
  /// later generation or by another tool.
  func forgetStaging() { state.staging = nil }

  /// How often a change starts again because its directory is gone: other processes may remove and
  /// remake the directory again and again.
  private static let restartLimit = 100

  /// How many lower generations are removed again at each new one.
  private static let lookBack = 16

  /// Starts again with a new directory if another process has removed the slot's directory, or
  /// `lock/` in it: the open files are useless in this case.
  mutating func beginAnewIfRemoved() -> Bool {
    guard let directory = state.directory, restarts < Self.restartLimit else { return false }
    // If opening failed, the directory was removed before or during the opening.
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

  /// Starts again if another process has moved the slot's directory away, or `lock/` in it.
  ///
  /// A lock in the moved directory excludes no other process, and a commit there is invisible.
  ///
  /// The check is not needed while the value that this process committed last is known to have the
  /// name: a holder of the named lock would have replaced the value.
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

  /// Returns the content under the slot's name, if it is known without reading.
  func known() -> FoundFile? {
    guard let committed = state.committed else { return nil }
    if Mutants.has(.trustOpenFile) { return committed.content }
    // Resolved through the slot's own name, which may lead to another directory by now.
    let found = committed.found(as: slot.valuePath, in: directory.parent.descriptor)
    // Another process has replaced the value; its release here frees disk space.
    if found == nil {
      // A save would find another file too.
      state.committed = nil
      slot.saving.unsaved = nil
    }
    return found
  }

  /// - Returns: the previous value. Closing the previous file frees its disk space, which takes a
  ///   while: the caller closes the file after unlocking.
  func keep(_ committed: CommittedFile?) -> CommittedFile? {
    defer { state.committed = committed }
    return state.committed
  }

  /// The error of a call whose body did not run, or whose change did not count.
  var loss: WormholeError {
    failure ?? WormholeError(.system, operation, slot.name, because: "the lock was lost")
  }

  mutating func fail(_ error: WormholeError) {
    if failure == nil { failure = error }
  }

  /// Records the failure of a system call; in a removed container, the error says so.
  mutating func fail(_ error: Errno) {
    let end = error == .noSuchFile ? slot.container.endIfRemoved(slot.folder) : nil
    fail(end?.error(operation, slot.name) ?? WormholeError(error, operation, slot))
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
    case .run, .commit, .finish: preconditionFailure("\(action) is an action of the caller")
    }
  }

  // MARK: The steps

  private mutating func find(from lowest: Int) throws(Errno) -> LockMachine.Event {
    if state.directory == nil || state.locks == nil { try openLocks() }
    // After a known generation, the check that follows locking finds the next one.
    if let file = state.file, file.number == lowest { return .found(lowest) }
    var highest = lowest
    while try isThere(highest + 1) { highest += 1 }
    return .found(highest)
  }

  /// Whether the next generation exists.
  ///
  /// Another tool may have removed the next lock file while its holder continues. After opening a
  /// staging directory, and perhaps making it, this process therefore lists `lock/` once, looks for
  /// the staging directories of all higher generations, and removes those of all lower ones. A
  /// holder makes its own staging directory before it removes the lower ones: either the lower
  /// process finds the higher directory, or the higher process finds and removes the lower one.
  ///
  /// A listing shows each name that exists all the time while it runs, but may miss a name that is
  /// made or removed in the meantime. If takeovers during the listing of a lower process hide all
  /// higher directories from it, the last of these holders made its directory after the lower
  /// process made its own, and so finds that one in its own listing.
  private mutating func look(for generation: Int) throws(Errno) -> LockMachine.Event {
    if state.hasPredecessor {
      state.hasPredecessor = false
      try retractLockFile()
      return .newer
    }
    if try isThere(generation) { return .newer }
    guard !state.hasLookedForAll else { return .newest }
    let generations = Slot.generations(of: try state.locks!.descriptor.names())
    guard (generations.values.max() ?? 0) < generation, try isNamed() else { return .newer }
    if !Mutants.has(.noLowerListing), !Mutants.has(.noRemoval) {
      for (name, number) in generations where number < generation - 1 && name.ends(with: ".d") {
        try removeStaging(name)
      }
    }
    state.hasLookedForAll = true
    return .newest
  }

  /// Removes the lock file that this process has just made, because a file of the same name existed
  /// before and was removed by another tool.
  ///
  /// The holder of the removed file may still use the staging directory of this generation. Another
  /// process that locked the new file would use the same directory, side by side with that holder.
  /// The file is removed under its lock: a process that has the file open then finds it without a
  /// name.
  private func retractLockFile() throws(Errno) {
    guard try isNamed(), !Mutants.has(.keepSecondLock) else { return }
    try ignoring(.noSuchFile, state.locks!.descriptor.unlink("\(state.file!.number)"))
  }

  /// Whether the held lock file still has its name.
  private func isNamed() throws(Errno) -> Bool {
    guard let file = state.file else { return false }
    let named = try ignoring(
      .noSuchFile, state.locks!.descriptor.status(of: "\(file.number)"))
    return try named?.isSameFile(as: file.file.status()) ?? false
  }

  /// The highest generation with a name in `lock/`.
  private func highest() throws(Errno) -> Int {
    Slot.generations(of: try state.locks!.descriptor.names()).values.max() ?? 0
  }

  private mutating func openLocks() throws(Errno) {
    let directory = try slot.openDirectory(making: policy.makesMissing)
    state.directory = directory
    do throws(Errno) {
      state.locks = try openLocks(in: directory)
    } catch {
      guard error == .noSuchFile, policy.makesMissing else { throw error }
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
    try ignoring(
      .noSuchFile, state.locks!.descriptor.status(of: state.name(of: generation))) != nil
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
        guard policy.makesMissing else { throw .noSuchFile }
        // Another tool has removed the file, and its holder may still hold the lock. A new file of
        // the same name would be a different lock; holders check for a next generation.
        slot.container.log(
          .warning, "the lock of \(slot.title) '\(slot.name)' was removed; a new lock is created",
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

  /// A forked child must not inherit the lock: it would hold the lock of a dead process.
  private func openLockFile(_ name: String) throws(Errno) -> Descriptor {
    try state.locks!.descriptor.open(
      name, [.readWrite, .nonBlocking], isGuarded: !Mutants.has(.noForkGuard))
  }

  private func checked(_ file: consuming Descriptor) throws(Errno) -> Descriptor {
    let status = try file.status()
    // The mark is written into the file: a link to some other file must not pass for a lock.
    guard status.kind == .regular, status.size <= WaiterFlag.end else { throw .noDevice }
    return file
  }

  private mutating func make(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if Mutants.has(.stealWithoutGeneration) { return .locked }
    let locks = state.locks!
    // If the lock file of a generation was removed by another tool, its directory remains.
    if try highest() >= generation { return .existed }
    state.hasPredecessor = false
    return try ignoring(.fileExists) { () throws(Errno) -> LockMachine.Event in
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
      // Through FUSE and NFS the name may lead to a different file, which is not locked yet.
      guard !locks.descriptor.isRelayed else {
        try? file.unlock()
        return .existed
      }
      state.file = LockFile(number: generation, file: file)
      state.stint.begin()
      return .made
    } ?? .existed
  }

  private mutating func openStaging(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if state.staging != nil, state.stagingGeneration == generation { return .opened }
    let (name, locks) = ("\(generation).d", state.locks!)
    let open = OpenDirectory(
      try policy.makesMissing
        ? slot.container.staging.ensureDirectory(name, in: locks.descriptor)
        : slot.container.options.sharing.openExisting(name, in: locks.descriptor))
    // A save of the holder before may have taken the previous value out.
    directory.keptFresh.store(0, ordering: .relaxed)
    state.staging = open
    state.stagingGeneration = generation
    state.hasLookedForAll = false
    return .opened
  }

  /// Removes by number and not by listing: a listing that runs while other processes make and
  /// remove files may miss a name.
  ///
  /// The 16 previously removed generations are removed once more, at almost no cost: a process that
  /// missed a generation, because another tool removed its lock file, uses a lower one and makes
  /// its directory again.
  private mutating func removeStaging(below limit: Int) throws(Errno) -> LockMachine.Event {
    let lowest = max(1, state.machine.removedBelow - Self.lookBack)
    for generation in stride(from: limit - 1, through: lowest, by: -1) {
      try removeStaging("\(generation).d")
    }
    return .removed
  }

  /// Removes the directory of a superseded generation, or fails: as long as the directory exists,
  /// the superseded holder could still commit.
  private mutating func removeStaging(_ name: String) throws(Errno) {
    var tries = 0
    while true {
      do throws(Errno) {
        return try slot.container.staging.clear(away: name, in: state.locks!.descriptor)
      } catch {
        guard [.directoryNotEmpty, .busy].contains(error) else { throw error }
        // A superseded holder may stage once more, before it notices.
        tries += 1
        guard tries >= 100 || patience.hasEnded(at: .now) else { continue }
        let place = (try? state.locks!.descriptor.fileSystem()).map { " (\($0.name))" } ?? ""
        fail(
          WormholeError(
            .system, operation, slot.name,
            because: "the lock was taken over, but '\(slot.path)/lock/\(name)' of the suspended "
              + "holder could not be removed from the file system\(place): \(error)",
            hint: "end the holder, or move the container to a local file system", errno: error))
        throw error
      }
    }
  }

  private mutating func leaveMark() throws(Errno) -> LockMachine.Event {
    if policy.asksWhoWasLast {
      wasHereLast = false
      // After a renewal, the mark counts as another process's mark.
      if let mark = state.mark { wasHereLast = try HolderMark(in: state.file!.file) == mark }
    }
    var mark = state.mark ?? HolderMark(of: .current)
    if !mark.isWhole { mark = HolderMark(of: .current) }
    mark.begin()
    state.mark = mark
    try mark.write(to: state.file!.file)
    tenure = try slot.container.leases.begin(
      mark, in: state.file!.file, lease: slot.container.shownLease, cap: policy.cap,
      at: .now)
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
      state.file = nil  // Closing unlocks too.
    }
    return .unlocked
  }

  /// Stops the renewal; true if the cap had stopped the renewal.
  @discardableResult
  mutating func endTenure() -> Bool {
    if let tenure { wasCapped = slot.container.leases.end(tenure) }
    tenure = nil
    return wasCapped
  }

  /// Whether the next generation exists already.
  func isSuperseded() throws(WormholeError) -> Bool {
    do throws(Errno) {
      return try isThere(state.machine.generation + 1)
    } catch {
      throw WormholeError(error, operation, slot)
    }
  }

  /// Returns the holder named in the mark.
  func holder() -> LockHolder? {
    guard let file = state.file else { return nil }
    return (try? HolderMark(in: file.file)).flatMap(LockHolder.init)
  }
}
