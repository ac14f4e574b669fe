import WormholeContainerStorage

/// A save of a value that was committed without a sync, call by call, in the order of
/// `SlotSaveState`.
extension LockWorld {
  /// A save between its calls.
  struct Save: Hashable {
    enum Phase: Hashable { case link, sync, keep }

    var phase = Phase.link
    var file: File
    /// The previous value when the save began.
    var kept: File?
  }

  private enum Stage {
    static let look: Int8 = 0
    static let link: Int8 = 1
    static let takeAway: Int8 = 2
    static let linkKept: Int8 = 3
    static let rename: Int8 = 4
  }

  mutating func noteCommitted(_ index: Int, _ file: File) {
    state.processes[index].own = file
    let saves = rules.saves > 0 && !state.processes[index].syncs
    state.processes[index].unsaved = saves ? file : nil
  }

  /// Begins or continues a save, between two changes; false if the process makes a change.
  ///
  /// The thread that saves runs beside the thread that changes the value. The model lets the
  /// process make changes between the steps of the save.
  mutating func saves(_ index: Int, _ choices: inout Choices) -> Bool {
    let me = state.processes[index]
    if let save = me.save {
      if me.updates > 0, choices.pick() { return false }
      guard save.phase == .sync else {
        beginTenure(index)
        return true
      }
      if rules.mutant != .saveUnsynced { markSynced(save.file) }
      state.processes[index].save?.phase = .keep
      return true
    }
    guard let file = me.unsaved, me.saves > 0, me.updates == 0 || choices.pick() else {
      return false
    }
    state.processes[index].unsaved = nil
    state.processes[index].saves -= 1
    state.processes[index].save = Save(file: file)
    beginTenure(index)
    return true
  }

  private mutating func beginTenure(_ index: Int) {
    state.processes[index].isBetween = false
    state.processes[index].isSaving = true
    tell(index, .begin)
  }

  /// One call of the save, under the lock.
  mutating func save(_ index: Int) {
    guard let save = state.processes[index].save else { return end(index) }
    save.phase == .link ? link(index, save) : keep(index, save)
  }

  private mutating func link(_ index: Int, _ save: Save) {
    let me = state.processes[index]
    let inode = Int(me.staging)
    if me.step == Stage.look {
      guard state.names.value == save.file, state.names.kept != save.file else {
        return end(index)
      }
      state.processes[index].save?.kept = state.names.kept
      state.processes[index].step = Stage.link
      return
    }
    guard let there = state.inodes[inode] else { return end(index) }
    guard there.save == nil else {
      state.inodes[inode]?.save = nil  // Left by a dead process, or by one that is late.
      return
    }
    state.inodes[inode]?.save = state.names.value
    state.processes[index].save?.phase = .sync
    tell(index, .unchanged)
  }

  private mutating func keep(_ index: Int, _ save: Save) {
    let me = state.processes[index]
    let inode = Int(me.staging)
    guard let file = state.inodes[inode]?.save else { return end(index) }
    switch me.step {
    case Stage.look:
      let isUnchanged = state.names.kept == save.kept || rules.mutant == .saveUnlooked
      guard file == save.file, isUnchanged else { return end(index) }
      let isLatest = state.names.value == save.file
      state.processes[index].step =
        !isLatest ? Stage.rename : state.names.kept == nil ? Stage.linkKept : Stage.takeAway
    case Stage.takeAway:
      rename { $0.kept = nil }
      state.processes[index].step = Stage.linkKept
    default:
      if me.step == Stage.linkKept, state.names.kept != nil { return end(index) }
      rename { $0.kept = file }
      state.inodes[inode]?.save = nil
      end(index)
    }
  }

  private mutating func end(_ index: Int) {
    state.processes[index].save = nil
    if state.inodes[Int(state.processes[index].staging)] == nil {
      state.processes[index].staging = 0
    }
    tell(index, .unchanged)
  }

  /// The content of a file is on disk from now on, under each of its names.
  private mutating func markSynced(_ file: File) {
    func mark(_ found: inout File?) {
      if found == file { found?.isSynced = true }
    }
    func mark(_ names: inout Names) {
      mark(&names.value)
      mark(&names.kept)
    }
    mark(&state.names)
    for place in state.onDisk.indices { mark(&state.onDisk[place]) }
    for inode in state.inodes.indices where state.inodes[inode] != nil {
      mark(&state.inodes[inode]!.next)
      mark(&state.inodes[inode]!.kept)
      mark(&state.inodes[inode]!.save)
    }
    for index in state.processes.indices {
      mark(&state.processes[index].old)
      mark(&state.processes[index].own)
      mark(&state.processes[index].unsaved)
      guard var save = state.processes[index].save else { continue }
      if save.file == file { save.file.isSynced = true }
      mark(&save.kept)
      state.processes[index].save = save
    }
  }
}
