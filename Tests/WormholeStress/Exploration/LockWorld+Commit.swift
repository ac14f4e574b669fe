import WormholeContainerStorage

/// A commit, call by call, in the order of `Commit`.
extension LockWorld {
  private enum Stage {
    static let stage: Int8 = 0
    static let sync: Int8 = 1
    static let link: Int8 = 2
    static let keep: Int8 = 3
    static let publish: Int8 = 4
    static let dispose: Int8 = 5
    static let keepLate: Int8 = 6
  }

  mutating func commit(_ index: Int, _ choices: inout Choices) {
    let me = state.processes[index]
    let inode = Int(me.staging)
    switch me.step {
    case Stage.stage: stage(index, inode, &choices)
    case Stage.sync:
      if state.inodes[inode]?.next?.writer == Int8(index) {
        state.inodes[inode]?.next?.isSynced = true
      }
      state.processes[index].step = Stage.publish
    case Stage.link:
      guard let there = state.inodes[inode] else { return settle(index, inode) }
      if there.kept != nil {
        state.inodes[inode]?.kept = nil  // Left by a dead holder of this generation.
      } else {
        state.inodes[inode]?.kept = state.names.value
        state.processes[index].step = Stage.keep
      }
    case Stage.keep:
      guard let kept = state.inodes[inode]?.kept else { return settle(index, inode) }
      rename { $0.kept = kept }
      state.inodes[inode]?.kept = nil
      state.processes[index].step = Stage.publish
    case Stage.publish: publish(index, inode)
    case Stage.keepLate:
      if let value = me.old { rename { $0.kept = value } }
      conclude(index, inode)
    default: dispose(index, inode)
    }
  }

  private mutating func stage(_ index: Int, _ inode: Int, _ choices: inout Choices) {
    let me = state.processes[index]
    guard let there = state.inodes[inode] else { return tell(index, .superseded) }
    guard there.next == nil else { return state.inodes[inode] = Staging() }
    // If `kept.plist` is too old, the new file must be synced, unless the old value is synced. The
    // age depends on time, so the model tries both.
    let isOldSynced = me.old?.isMarked == true
    let remains = state.names.kept != nil || isOldSynced
    var syncs = rules.hasPower && (me.isPower || !remains || choices.pick())
    if rules.mutant == .noFileSync { syncs = false }
    state.processes[index].syncs = syncs
    state.inodes[inode]?.next = File(
      content: me.base + 1, writer: Int8(index), isMarked: syncs)
    let keeps = !syncs && isOldSynced
    state.processes[index].step =
      syncs ? Stage.sync : keeps && !rules.keepsLate ? Stage.link : Stage.publish
  }

  /// Handles a rename without a source: the process is superseded, or the value was removed.
  private mutating func settle(_ index: Int, _ inode: Int) {
    guard state.inodes[inode]?.next != nil, state.names.value == nil else {
      return tell(index, .superseded)
    }
    moveIn(index, inode)
  }

  private mutating func publish(_ index: Int, _ inode: Int) {
    let me = state.processes[index]
    guard let old = me.old else { return moveIn(index, inode) }
    guard let next = state.inodes[inode]?.next, let value = state.names.value else {
      return settle(index, inode)
    }
    if value != old { state.violation = .overwritten }
    rename { $0.value = next }
    state.inodes[inode]?.next = value
    noteCommitted(index, next)
    let keepsLate = rules.keepsLate && !me.syncs && old.isMarked
    state.processes[index].step = keepsLate ? Stage.keepLate : Stage.dispose
  }

  /// Commits where no value exists.
  private mutating func moveIn(_ index: Int, _ inode: Int) {
    guard let next = state.inodes[inode]?.next else { return tell(index, .superseded) }
    state.inodes[inode]?.next = nil
    guard state.names.value == nil else { return tell(index, .superseded) }
    rename { $0.value = next }
    noteCommitted(index, next)
    tell(index, .committed)
  }

  /// Handles the file that the swap has brought out: the file becomes the previous value, or is
  /// removed.
  private mutating func dispose(_ index: Int, _ inode: Int) {
    let me = state.processes[index]
    if let old = state.inodes[inode]?.next, me.syncs, old.isMarked {
      rename { $0.kept = old }
    }
    conclude(index, inode)
  }

  private mutating func conclude(_ index: Int, _ inode: Int) {
    state.inodes[inode]?.next = nil
    tell(index, .committed)
  }
}
