internal import WormholeSyscalls

/// The state of a slot's lock, retained in the process between changes.
///
/// A class, because copying the state would take as long as a system call.
final class LockState: @unchecked Sendable {
  // Only the thread whose turn it is uses the state, so no check is needed at run time either.
  @exclusivity(unchecked) var machine = LockMachine()
  @exclusivity(unchecked) var directory: SlotDirectory?
  @exclusivity(unchecked) var locks: OpenDirectory? { didSet { identity = nil } }
  /// The identity of the directory, once requested: it stays the same as long as the directory is
  /// open.
  @exclusivity(unchecked) var identity: FileIdentity?
  @exclusivity(unchecked) var file: LockFile? {
    didSet { if let oldValue, oldValue !== file { oldValue.retire() } }
  }
  @exclusivity(unchecked) var staging: OpenDirectory?
  @exclusivity(unchecked) var stagingGeneration = 0
  /// This process made the lock file of this generation, but the staging directory already existed.
  @exclusivity(unchecked) var hasPredecessor = false
  /// Since the staging directory was opened.
  @exclusivity(unchecked) var hasLookedForAll = false
  @exclusivity(unchecked) var committed: CommittedFile?
  /// Made for the first tenure: readers need none.
  @exclusivity(unchecked) var mark: HolderMark?
  @exclusivity(unchecked) var stint = LockTenure()

  /// The generation that was looked for last, and its name as the kernel takes it.
  ///
  /// Each change looks for the same one.
  @exclusivity(unchecked) private var lookedFor = (generation: 0, name: [CChar]())

  deinit { file?.retire() }

  func name(of generation: Int) -> [CChar] {
    if lookedFor.generation != generation {
      lookedFor = (generation, Array("\(generation)".utf8CString))
    }
    return lookedFor.name
  }

  /// Forgets all open files, and the generations: the next directory of the name may have different
  /// generations.
  func close() {
    machine = LockMachine()
    directory = nil
    locks = nil
    file = nil
    staging = nil
    stagingGeneration = 0
    committed = nil
    mark = nil
  }
}

extension LockExecutor {
  /// Opens the staging directory behind the fence, as no holder may; for tests.
  func openStagingLate() -> OpenDirectory? {
    let name = "\(state.stagingGeneration).d"
    return try? OpenDirectory(
      slot.container.staging.ensureDirectory(name, in: state.locks!.descriptor))
  }
}
