/// What a slot's lock remembers from one change to the next.
///
/// A class, as copying what it holds would take as long as a system call.
final class LockState: @unchecked Sendable {
  // Touched only by the thread whose turn it is: so no check is needed at run time either.
  @exclusivity(unchecked) var machine = LockMachine()
  @exclusivity(unchecked) var directory: SlotDirectory?
  @exclusivity(unchecked) var locks: OpenDirectory? { didSet { identity = nil } }
  /// Which directory that is, once somebody has asked: it stays the same for as long as it is open.
  @exclusivity(unchecked) var identity: FileIdentity?
  @exclusivity(unchecked) var file: LockFile? {
    didSet { if let oldValue, oldValue !== file { oldValue.retire() } }
  }
  @exclusivity(unchecked) var staging: OpenDirectory?
  @exclusivity(unchecked) var stagingGeneration = 0
  /// The lock file of this generation was made, and somebody had its staging directory already.
  @exclusivity(unchecked) var hasPredecessor = false
  /// Since the staging directory was opened.
  @exclusivity(unchecked) var hasLookedForAll = false
  @exclusivity(unchecked) var committed: CommittedFile?
  /// Made for the first tenure: who only reads needs none.
  @exclusivity(unchecked) var mark: HolderMark?
  @exclusivity(unchecked) var stint = Stint()

  deinit { file?.retire() }

  /// Forgets all that is open, and the generations: the directory that has the name next may have
  /// others.
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
