internal import Synchronization
internal import Syscalls

/// What a slot's lock remembers from one change to the next.
///
/// A class, as copying what it holds would take as long as a system call.
final class LockState: @unchecked Sendable {
  // Touched only by the thread whose turn it is: so no check is needed at run time either.
  @exclusivity(unchecked) var machine = LockMachine()
  @exclusivity(unchecked) var directory: SlotDirectory?
  @exclusivity(unchecked) var locks: OpenDirectory?
  @exclusivity(unchecked) var file: GenerationFile?
  @exclusivity(unchecked) var staging: OpenDirectory?
  @exclusivity(unchecked) var stagingGeneration = 0
  @exclusivity(unchecked) var committed: CommittedFile?
  /// Made for the first tenure: who only reads needs none.
  @exclusivity(unchecked) var mark: HolderMark?

  /// Forgets all that is open; the tenures go on being counted.
  func close() {
    directory = nil
    locks = nil
    file = nil
    staging = nil
    stagingGeneration = 0
    committed = nil
  }
}

/// How a lock is waited for, and for how long it may be kept.
package struct LockPolicy: Sendable {
  /// How long a holder's mark may stand still before it is superseded; nil: never.
  package var lease: Duration?
  /// For how long the mark of a running holder is renewed; nil: as long as it holds.
  package var cap: Duration?

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
      let mutants = environment.mutants
      let action = state.machine.next(
        event, fence: !mutants.has(.noFence), removal: !mutants.has(.noRemoval))
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
          fail(WormholeError(error, operation, slot.name))
          event = .failed
        }
      }
    }
  }

  /// Lets the next tenure look for its staging directory anew: this one is gone, whether another
  /// generation removed it or somebody's hand.
  func forgetStaging() { state.staging = nil }

  /// Somebody may have removed the slot's directory by hand, or `lock/` in it: then all that is
  /// open here leads nowhere, and it begins again with a new one.
  mutating func beginAnewIfRemoved() -> Bool {
    let isGone = state.directory?.isStale == true || state.locks?.isStale == true
    guard isGone, restarts < 3 else { return false }
    restarts += 1
    endTenure()
    try? state.file?.unlock()
    slot.forgetDirectory()
    state.close()
    state.machine = LockMachine()
    return true
  }

  /// What stands under the slot's name, where that is known without reading it.
  func known() -> FoundFile? {
    guard let committed = state.committed else { return nil }
    if environment.mutants.has(.trustOpenFile) { return committed.content }
    let found =
      if let home = slot.home { committed.found(as: home.file, in: home.directory.descriptor) } else
      { committed.found(as: Slot.File.value.name, in: directory.descriptor) }
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
    case .look(let generation): return try isThere(generation) ? .newer : .newest
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

  private mutating func openLocks() throws(Errno) {
    let directory = try slot.openDirectory(making: true)
    state.directory = directory
    do throws(Errno) {
      state.locks = OpenDirectory(try directory.descriptor.open("lock", [.readOnly, .directory]))
    } catch {
      guard error == .noSuchFile else { throw error }
      guard !directory.isStale else {
        slot.forgetDirectory()
        throw error
      }
      try SlotDirectory.makeLocks(in: directory.descriptor, slot.container)
      state.locks = OpenDirectory(try directory.descriptor.open("lock", [.readOnly, .directory]))
    }
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
      state.file = GenerationFile(number: generation, file: try openLockFile(generation))
    }
    return try state.file!.tryLock() ? .locked : .contended
  }

  private func openLockFile(_ generation: Int) throws(Errno) -> Descriptor {
    let name = "\(generation)"
    do throws(Errno) {
      return try checked(try state.locks!.descriptor.open(name, [.readWrite, .nonBlocking]))
    } catch {
      guard error == .noSuchFile, generation == 1 else { throw error }
    }
    try SlotDirectory.makeLocks(in: state.directory!.descriptor, slot.container)
    return try checked(try state.locks!.descriptor.open(name, [.readWrite, .nonBlocking]))
  }

  private func checked(_ file: consuming Descriptor) throws(Errno) -> Descriptor {
    let status = try file.status()
    // A mark is written into it: a link to some other file must not pass for a lock.
    guard status.kind == .regular, status.size <= HolderMark.size else { throw .noDevice }
    return file
  }

  private mutating func make(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if environment.mutants.has(.stealWithoutGeneration) { return .locked }
    let locks = state.locks!
    do throws(Errno) {
      let file = try slot.container.withNewLockFile { name, file throws(Errno) in
        try slot.container.staging.directory.link(name, to: locks.descriptor, "\(generation)")
        return try file.duplicate()
      }
      let before = holder()
      state.file = GenerationFile(number: generation, file: file)
      slot.container.count { $0.takeovers += 1 }
      slot.container.log(
        .warning,
        "took over the lock of \(slot.title) '\(slot.name)' as generation \(generation)"
          + (before.map { " from \($0)" } ?? ""))
      return .made
    } catch {
      if error == .fileExists { return .existed }
      throw error
    }
  }

  private mutating func openStaging(_ generation: Int) throws(Errno) -> LockMachine.Event {
    if state.staging != nil, state.stagingGeneration == generation { return .opened }
    let open = OpenDirectory(try makeStaging("\(generation).d", in: state.locks!.descriptor))
    let sharing = slot.container.options.sharing
    if sharing == .group, try open.descriptor.status().owner == Processes.effectiveUser {
      try open.descriptor.setMode(sharing.directoryMode)
    }
    state.staging = open
    state.stagingGeneration = generation
    return .opened
  }

  private func makeStaging(
    _ name: String, in locks: borrowing Descriptor
  ) throws(Errno) -> Descriptor {
    var tries = 0
    while true {
      do throws(Errno) {
        try locks.makeDirectory(name, mode: 0o700)
      } catch {
        guard error == .fileExists else { throw error }
      }
      do throws(Errno) {
        return try locks.open(name, [.readOnly, .directory])
      } catch {
        // A successor has removed it in between. Made anew it does no harm: the look for the next
        // generation comes after this.
        tries += 1
        guard error == .noSuchFile, tries < 1000 else { throw error }
      }
    }
  }

  /// By number and not by listing: a listing taken while others make and remove may miss a name.
  private func removeStaging(below limit: Int) throws(Errno) -> LockMachine.Event {
    for generation in stride(from: limit - 1, to: state.machine.removedBelow - 1, by: -1)
    where generation > 0 {
      let name = "\(generation).d"
      var tries = 0
      while true {
        do throws(Errno) {
          try removeTree(name, in: state.locks!.descriptor)
          break
        } catch {
          if error == .noSuchFile { break }
          // A superseded holder that has not noticed yet may stage once more meanwhile.
          tries += 1
          guard error == .directoryNotEmpty, tries < 1000 else { throw error }
        }
      }
    }
    return .removed
  }

  private mutating func leaveMark() throws(Errno) -> LockMachine.Event {
    var mark = state.mark ?? HolderMark(of: .current)
    mark.tenure += 1
    mark.renewals = 0
    state.mark = mark
    try mark.write(to: state.file!.file)
    tenure = LeaseKeeper.shared.begin(
      mark, in: state.file!.file, lease: policy.lease ?? slot.container.options.lease,
      cap: policy.cap, at: environment.now())
    return .marked
  }

  private mutating func unlock() -> LockMachine.Event {
    endTenure()
    do throws(Errno) {
      try state.file?.unlock()
    } catch {
      state.file = nil  // Closing gives it back too.
    }
    return .unlocked
  }

  /// Stops the renewal; true if it had stopped by itself.
  @discardableResult
  mutating func endTenure() -> Bool {
    if let tenure { wasCapped = LeaseKeeper.shared.end(tenure) }
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
